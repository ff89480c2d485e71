// SIGKILL while the group is being made: within a second, the survivors get an error that names the rank, and nothing
// is left behind. Case::variant is how many microseconds after the order to join it strikes; 0: before the victim gets
// the order.
#include <csignal>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// A group of four is made in about ten milliseconds.
constexpr std::uint64_t kLatestUs = 15'000;

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  const std::uint64_t blows = selection.effort == Effort::full ? 20 : 4;
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (std::uint64_t blow = 0; blow < blows && !sizes.empty(); ++blow) {
      Case c;
      c.property = "killed_joining";
      c.backend = backend;
      c.seed = mix(selection.seed, ++number);
      c.ranks = sizes[number % sizes.size()];
      c.primitive = Primitive::barrier;
      if (blow > 0) c.variant = 1 + mix(c.seed, 1) % kLatestUs;
      all.push_back(c);
    }
  }
}

Finding run(Rank& /*rank*/, const Case& c) {
  const auto victim = static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
  Drill drill{.c = c};
  // Should the group be made before the blow, then the victim waits there, and the others miss it in the call.
  drill.asks_to_join = drill.asks_to_call = true;
  Job job({.ranks = c.ranks, .arguments = {"--fault-rank", encode(drill)}});
  for (int rank = 0; rank < c.ranks; ++rank) job.await_point(rank, "ready");
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (rank != victim || c.variant > 0) job.go_on(rank);
  }
  job.pause(std::chrono::microseconds(c.variant));
  job.signal(victim, SIGKILL);
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (rank != victim && job.await_point(rank, "call")) job.go_on(rank);
  }
  const JobEnd end = job.finish();
  return Finding::of(
      first_of({problem_with_errors(end, {.code = ErrorCode::peer_lost,
                                          .culprit = victim,
                                          .exempt = {victim},
                                          .since = end.ranks[static_cast<std::size_t>(victim)].ended_at}),
                problem_with_traces(end)}));
}

}  // namespace

const Property kFaultKilledJoining{"killed_joining",
                                   "a rank killed while its group is being made is named by all others within a second",
                                   Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck
