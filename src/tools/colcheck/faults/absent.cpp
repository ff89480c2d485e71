// A rank that never comes: the others wait for as long as COL_TIMEOUT says, and then name it. It stays away from the
// making of the group (Case::variant 0), or from a call after some that went well (1).
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

enum Way : std::uint64_t { kFromGroup, kFromCall };
constexpr Duration kTimeout = std::chrono::seconds(1);
constexpr double kTimeoutSeconds = 1, kEpsilonSeconds = 1;
// Ranks give up nearly at once, and the first takes the others along.
constexpr double kAlmost = 0.9;

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  const bool full = selection.effort == Effort::full;
  const std::vector<Primitive> calls =
      full
          ? std::vector<Primitive>{Primitive::allreduce, Primitive::broadcast, Primitive::reduce,    Primitive::gatherv,
                                   Primitive::scatter,   Primitive::alltoall,  Primitive::allgather, Primitive::exscan}
          : std::vector<Primitive>{Primitive::allreduce};
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (std::size_t i = 0; i <= calls.size() && !sizes.empty(); ++i) {
      Case c;
      c.property = "absent";
      c.backend = backend;
      c.seed = mix(selection.seed, ++number);
      c.ranks = sizes[number % sizes.size()];
      c.variant = i == 0 ? kFromGroup : kFromCall;
      c.primitive = i == 0 ? Primitive::allreduce : calls[i - 1];
      c.dtype = DType::float32;
      c.count = 24;
      if (is_rooted(c.primitive)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
      all.push_back(c);
    }
  }
}

Finding run(Rank& /*rank*/, const Case& c) {
  const auto absent = static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
  Drill drill{.c = c, .calls = 2, .odd = absent};
  drill.oddity = c.variant == kFromGroup ? Drill::Oddity::never_joins : Drill::Oddity::stays_away;
  Job job({.ranks = c.ranks, .arguments = {"--fault-rank", encode(drill)}, .timeout = kTimeout});
  job.await_point(absent, "away");
  const double away = job.now();
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (rank != absent) job.await_report(rank);
  }
  job.go_on(absent);
  const JobEnd end = job.finish();
  return Finding::of(first_of({problem_with_errors(end, {.code = ErrorCode::timeout,
                                                         .culprit = absent,
                                                         .exempt = {absent},
                                                         .since = away + kTimeoutSeconds,
                                                         .within = kEpsilonSeconds,
                                                         .not_before = kAlmost * kTimeoutSeconds}),
                               problem_with_end(end, absent), problem_with_traces(end)}));
}

}  // namespace

const Property kFaultAbsent{"absent",
                            "a rank that never comes is named by the others when the timeout is over, not later",
                            Property::Kind::fault,
                            &cases,
                            &run,
                            OnGpus::buffers};

}  // namespace col::colcheck
