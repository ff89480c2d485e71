// Sequences of calls: back to back, by many ranks, in flight at once, with a rank that is late.
#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"
#include "core/clock/clock.hpp"

namespace col::colcheck {
namespace {

// ---- programs: Programs: different collectives and messages one right after the other, with nothing in between that
// would let the ranks catch up with each other, and what is asynchronous waited for in another order on each rank.

constexpr std::size_t kProgramLength = 20;

// A program for each primitive on each backend; with --algo, and for what a backend does in its own way, one for each
// of those algorithms.
void add_programs(Draw& draw) {
  for (const std::string& backend : draw.selection().backends) {
    for (const Form& form : draw.forms()) {
      if (form.is_native() && form.backend != backend) continue;
      if (draw.quick() && form.built_in != nullptr && draw.selection().algorithms.empty()) continue;
      std::vector<int> served = draw.ranks();
      std::erase_if(served, [&](int n) { return !serves(form, n); });
      if (served.empty()) continue;
      // In a full run, what is chosen by default comes with every number of ranks.
      const std::size_t wanted = !draw.quick() && form.algorithm.empty() ? served.size() : 1;
      for (std::size_t i = 0; i < wanted; ++i)
        draw.add(backend, form.primitive, 0, in_turn(served, draw.number())).algorithm = form.algorithm;
    }
  }
}

Finding run_programs(Rank& rank, const Case& c) {
  const ProgramStyle style{.about = c.primitive, .algorithm = c.algorithm, .backend = c.backend, .devices = c.devices};
  std::string problem = run_program(rank.group(), style, c.seed, kProgramLength);
  rank.group().barrier();  // no later message may meet a receive from any rank of this program
  return Finding::of(std::move(problem));
}

// ---- many_ranks: Four times as many ranks as the machine has cores: most of the awaited ranks do not run.

constexpr unsigned kRanksPerCore = 4;
constexpr std::size_t kQuickLength = 6, kLength = 24;

// The fewest that are enough, so that there are add_many_ranks on as many machines as can be; nothing when none of the
// selection are.
std::optional<int> enough(const Selection& selection) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const auto found = std::find_if(selection.ranks.begin(), selection.ranks.end(),
                                  [&](int n) { return static_cast<unsigned>(n) >= kRanksPerCore * cores; });
  if (found == selection.ranks.end()) return std::nullopt;
  return *found;
}

void add_many_ranks(Draw& draw) {
  const auto ranks = enough(draw.selection());
  if (!ranks) return;
  for (const std::string& backend : draw.backends()) {
    // In the first few, ranks wait for all others.
    for (int i = 0; i < kPrimitiveCount; i += draw.quick() ? 6 : 1)
      draw.add(backend, primitive_in_turn(static_cast<std::size_t>(i) + draw.number() / 4),
               draw.quick() ? kQuickLength : kLength, *ranks);
  }
}

// The variant is the number of calls.
Finding run_many_ranks(Rank& rank, const Case& c) {
  std::string problem = run_program(rank.group(), {.about = c.primitive}, c.seed, c.variant);
  rank.group().barrier();
  return Finding::of(std::move(problem));
}

// ---- async: Many asynchronous calls in flight at once, and every way for them to come to their end.

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

void add_async(Draw& draw) {
  for (const std::string& backend : draw.backends()) {
    for (int p = 0; p < kPrimitiveCount; ++p) {
      const auto primitive = static_cast<Primitive>(p);
      if (!has_i_form(primitive)) continue;
      for (std::uint64_t way = 0; way < (draw.quick() ? std::uint64_t{1} : kWayCount); ++way) {
        Case& c = draw.add(backend, primitive, draw.quick() ? draw.number() % kWayCount : way);
        if (primitive == Primitive::recv_any && c.variant == kDrop) c.variant = kDestroy;
        c.asynchronous = true;
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
    core::yield();
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

Finding run_async(Rank& rank, const Case& c) {
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

// ---- slow_rank: Late is not dead: a rank that comes to a call long after the others, but within the timeout, spoils
// nothing. The others have waited long enough to begin to look for what is wrong.

// Case::variant: how late, in milliseconds. Waits begin to look for the reason after 100 ms, and again at intervals
// that grow.
constexpr std::uint64_t kSoon = 150, kLate = 700;
constexpr std::size_t kInFlightMeanwhile = 12;

void add_slow_rank(Draw& draw) {
  const auto add = [&](const std::string& backend, Primitive primitive, bool asynchronous, std::uint64_t late) {
    Case& c = draw.add(backend, primitive, late);
    c.count = 100;
    c.dtype = DType::float32;
    c.asynchronous = asynchronous;
  };
  for (const std::string& backend : draw.backends()) {
    if (draw.quick()) {
      add(backend, Primitive::allreduce, draw.number() % 2 == 1, kSoon);
      continue;
    }
    for (int p = 0; p < kPrimitiveCount; ++p) add(backend, static_cast<Primitive>(p), false, kSoon);
    for (const Primitive p :
         std::initializer_list<Primitive>{Primitive::allreduce, Primitive::alltoallv, Primitive::batch}) {
      add(backend, p, true, kSoon);
      add(backend, p, true, kLate);
    }
  }
}

// The variant's milliseconds pass on one rank before its first call. Asynchronous: the others have many calls in flight
// by then.
Finding run_slow_rank(Rank& rank, const Case& c) {
  const int late = static_cast<int>(mix(c.seed) % static_cast<std::uint64_t>(rank.size()));
  const std::chrono::milliseconds delay(c.variant);
  if (2 * delay >= rank.timeout())
    throw std::invalid_argument(fmt::format("a rank that is {} ms late is not within the timeout", c.variant));
  rank.group().barrier();
  if (rank.rank() == late) core::sleep_for(delay);
  if (!c.asynchronous) return Finding::of(run_case(rank.group(), c));
  Program program({.about = c.primitive, .blocking = false, .any_source = false}, rank.size(), c.seed);
  OpenCalls calls;
  for (std::size_t i = 0; i < kInFlightMeanwhile; ++i) calls.start(rank.group(), program.next());
  std::mt19937_64 own(mix(c.seed, 1, static_cast<std::uint64_t>(rank.rank())));
  calls.end_all(own);
  return Finding::of(calls.problem());
}

}  // namespace

const Property kPrograms =
    in_group("programs", "different calls back to back, waited for in other orders on each rank, are all right",
             &add_programs, &run_programs, OnGpus::buffers);
const Property kManyRanks = in_group("many_ranks", "four times as many ranks as cores get the right data, only later",
                                     &add_many_ranks, &run_many_ranks);
const Property kAsync =
    in_group("async", "many calls in flight end rightly in any order, polled, dropped, or drained by destroy",
             &add_async, &run_async, OnGpus::buffers);
const Property kSlowRank =
    in_group("slow_rank", "a rank that is late, but within the timeout, gets right data and so do the others",
             &add_slow_rank, &run_slow_rank, OnGpus::nothing, 2);

}  // namespace col::colcheck
