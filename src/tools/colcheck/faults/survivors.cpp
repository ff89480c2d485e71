// After a death there is a way on: the others make a group without the dead rank, and the data is right there.
#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

constexpr int kCalls = 2;

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  std::vector<Primitive> calls = {Primitive::allreduce};
  if (selection.effort == Effort::full)
    calls.insert(calls.end(), {Primitive::reduce, Primitive::allgatherv, Primitive::alltoall, Primitive::barrier});
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (const Primitive call : calls) {
      if (sizes.empty()) continue;
      Case c;
      c.property = "survivors";
      c.backend = backend;
      c.seed = mix(selection.seed, ++number);
      c.ranks = sizes.back();
      c.primitive = call;
      if (call != Primitive::barrier) {
        c.dtype = DType::int32;
        c.count = 1009;
      }
      if (is_rooted(call)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
      all.push_back(c);
    }
  }
}

Finding run(Rank& /*rank*/, const Case& c) {
  const auto victim = static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
  Drill drill{.c = c, .calls = kCalls};
  drill.regroups = true;
  Job job({.ranks = c.ranks,
           .arguments = {"--fault-rank", encode(drill)},
           .fault = fmt::format("kill:rank={},op={}", victim, kCalls)});
  const JobEnd end = job.finish();
  std::string problem = problem_with_errors(end, {.code = ErrorCode::peer_lost,
                                                  .culprit = victim,
                                                  .exempt = {victim},
                                                  .since = end.ranks[static_cast<std::size_t>(victim)].ended_at});
  for (int rank = 0; rank < c.ranks && problem.empty(); ++rank) {
    if (rank == victim) continue;
    const std::string& regrouped = end.ranks[static_cast<std::size_t>(rank)].report->regrouped;
    if (regrouped != "success") problem = fmt::format("rank {} in a new group of the others: {}", rank, regrouped);
  }
  return Finding::of(first_of({problem, problem_with_traces(end)}));
}

}  // namespace

const Property kFaultSurvivors{"survivors",
                               "after a death the others make a new group and go on, with the right data",
                               Property::Kind::fault,
                               &cases,
                               &run,
                               OnGpus::buffers};

}  // namespace col::colcheck
