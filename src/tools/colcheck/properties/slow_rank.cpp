// Late is not dead: a rank that comes to a call long after the others, but within the timeout, spoils nothing. The
// others have waited long enough to begin to look for what is wrong.
#include <chrono>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

// Case::variant: how late, in milliseconds. Waits begin to look for the reason after 100 ms, and again at intervals
// that grow.
constexpr std::uint64_t kSoon = 150, kLate = 700;
constexpr std::size_t kInFlight = 12;

void cases(const Selection& selection, std::vector<Case>& all) {
  const bool quick = selection.effort == Effort::quick;
  const auto ranks = ranks_for_sequences(selection, 2);
  if (ranks.empty() || !selection.wants_algorithm("")) return;
  std::size_t number = 0;
  const auto add = [&](const std::string& backend, Primitive primitive, bool asynchronous, std::uint64_t late) {
    Case c;
    c.property = "slow_rank";
    c.backend = backend;
    c.ranks = in_turn(ranks, number);
    c.primitive = primitive;
    c.count = 100;
    c.dtype = DType::float32;
    c.asynchronous = asynchronous;
    c.variant = late;
    c.seed = mix(selection.seed, 64, ++number);
    all.push_back(std::move(c));
  };
  for (const std::string& backend : selection.backends) {
    if (quick) {
      add(backend, Primitive::allreduce, number % 2 == 1, kSoon);
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
Finding run(Rank& rank, const Case& c) {
  const int late = static_cast<int>(mix(c.seed) % static_cast<std::uint64_t>(rank.size()));
  const std::chrono::milliseconds delay(c.variant);
  if (2 * delay >= rank.timeout())
    throw std::invalid_argument(fmt::format("a rank that is {} ms late is not within the timeout", c.variant));
  rank.group().barrier();
  if (rank.rank() == late) std::this_thread::sleep_for(delay);
  if (!c.asynchronous) return Finding::of(run_case(rank.group(), c));
  Program program({.about = c.primitive, .blocking = false, .any_source = false}, rank.size(), c.seed);
  OpenCalls calls;
  for (std::size_t i = 0; i < kInFlight; ++i) calls.start(rank.group(), program.next());
  std::mt19937_64 own(mix(c.seed, 1, static_cast<std::uint64_t>(rank.rank())));
  calls.end_all(own);
  return Finding::of(calls.problem());
}

}  // namespace

const Property kSlowRank{"slow_rank",
                         "a rank that is late, but within the timeout, gets right data and so do the others",
                         Property::Kind::group, &cases, &run};

}  // namespace col::colcheck
