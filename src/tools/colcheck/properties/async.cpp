// Many asynchronous calls in flight at once, and every way for them to come to their end.
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

constexpr std::size_t kInFlight = 20;

// Case::variant. How the calls are waited for.
enum Way : std::uint64_t {
  kAnyOrder,  // wait() in a random order of each rank's own
  kTest,      // test() until all have ended
  kWaitFor,   // wait_for() with short budgets, until all have ended
  kDrop,      // not at all: the handles are dropped, other calls follow, the group is destroyed
  kDestroy,   // not before the group is destroyed, which ends what is left
  kWayCount
};

void cases(const Selection& selection, std::vector<Case>& all) {
  const bool quick = selection.effort == Effort::quick;
  if (!selection.wants_algorithm("")) return;
  const auto ranks = ranks_for_sequences(selection);
  std::size_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (int p = 0; p < kPrimitiveCount; ++p) {
      const auto primitive = static_cast<Primitive>(p);
      if (!has_i_form(primitive)) continue;
      const std::uint64_t ways = quick ? std::uint64_t{1} : kWayCount;
      for (std::uint64_t way = 0; way < ways; ++way) {
        Case c;
        c.property = "async";
        c.backend = backend;
        c.primitive = primitive;
        c.asynchronous = true;
        c.ranks = in_turn(ranks, number);
        c.variant = quick ? number % kWayCount : way;
        if (primitive == Primitive::recv_any && c.variant == kDrop) c.variant = kDestroy;
        c.seed = mix(selection.seed, 51, ++number);
        all.push_back(std::move(c));
      }
    }
  }
}

// Looks at all that are open again and again, until all have ended. The order is another one on each rank.
void poll(OpenCalls& calls, Duration budget, Duration timeout, std::mt19937_64& random) {
  const Deadline deadline = Deadline::after(timeout);
  const std::size_t first = random();
  for (bool all = false; !all;) {
    all = true;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (Work& work : calls[(first + i) % calls.size()].works())
        all = (budget > Duration::zero() ? work.wait_for(budget) : work.test()) && all;
    }
    if (deadline.expired()) throw std::runtime_error("test() or wait_for() never said that all calls have ended");
    std::this_thread::yield();
  }
}

// What becomes of calls that nobody waits for before their group is gone.
std::string leave_open(Rank& rank, const Case& c, Program& program, std::mt19937_64& own) {
  Group group = rank.make_group();
  OpenCalls calls;
  for (std::size_t i = 0; i < kInFlight; ++i) calls.start(group, program.next());
  if (c.variant == kDrop) {
    for (std::size_t i = 0; i < calls.size(); ++i) calls[i].drop();
    std::vector<std::int64_t> sum{rank.rank() + 1};
    group.allreduce(sum);
    const std::int64_t n = rank.size();
    if (sum[0] != n * (n + 1) / 2) return fmt::format("a sum with others in flight is {}", sum[0]);
  }
  rank.drop(group);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (Work& work : calls[i].works()) {
      if (!work.test()) return "test() says that a call has not ended whose group was destroyed";
    }
  }
  calls.end_all(own);
  return calls.problem();
}

Finding run(Rank& rank, const Case& c) {
  const ProgramStyle style{.about = c.primitive,
                           .blocking = false,
                           .any_source = c.variant != kDrop,
                           .backend = c.backend,
                           .devices = c.devices};
  Program program(style, rank.size(), c.seed);
  std::mt19937_64 own(mix(c.seed, 1, static_cast<std::uint64_t>(rank.rank())));
  if (c.variant == kDrop || c.variant == kDestroy) return Finding::of(leave_open(rank, c, program, own));
  OpenCalls calls;
  for (std::size_t i = 0; i < kInFlight; ++i) calls.start(rank.group(), program.next());
  if (c.variant == kTest) poll(calls, {}, rank.timeout(), own);
  if (c.variant == kWaitFor) poll(calls, std::chrono::microseconds(1 + own() % 100), rank.timeout(), own);
  calls.end_all(own);
  rank.group().barrier();  // no later message may meet a receive from any rank of this case
  return Finding::of(calls.problem());
}

}  // namespace

const Property kAsync{"async",
                      "many calls in flight end rightly in any order, polled, dropped, or drained by destroy",
                      Property::Kind::group,
                      &cases,
                      &run,
                      OnGpus::buffers};

}  // namespace col::colcheck
