// A rank that ends with exit code 0 while the others still need it: they name it within a second. It ends inside of a
// call (Case::variant 0), between two calls without a word (1), or after col::finalize() (2), when it has not died, but
// made fewer calls than the others.
#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/faults/steps.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

enum Way : std::uint64_t { kInside, kBetween, kAfterFinalize, kWays };
constexpr int kCalls = 2;

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  std::vector<Primitive> calls = {Primitive::allreduce, Primitive::gather};
  if (selection.effort == Effort::full)
    calls.insert(calls.end(), {Primitive::broadcast, Primitive::scatterv, Primitive::alltoall, Primitive::scan});
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (const Primitive call : calls) {
      for (std::uint64_t way = 0; way < kWays && !sizes.empty(); ++way) {
        Case c;
        c.property = "exits_early";
        c.backend = backend;
        c.seed = mix(selection.seed, ++number);
        c.ranks = sizes[number % sizes.size()];
        c.primitive = call;
        c.algorithm = collective_of(call) == Collective::allreduce ? "ring" : "";
        c.dtype = DType::float32;
        c.count = 24;
        c.variant = way;
        if (is_rooted(c.primitive)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
        all.push_back(c);
      }
    }
  }
}

Finding run(Rank& /*rank*/, const Case& c) {
  const auto leaver = static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
  Drill drill{.c = c, .calls = kCalls};
  JobSpec spec{.ranks = c.ranks};
  if (c.variant == kInside) {
    // Without a named algorithm, the first step is the only one that is there for certain.
    const int steps = c.algorithm.empty() ? 1 : count_steps(numbered(c, kCalls), leaver);
    spec.fault = fmt::format("exit:rank={},op={},step={},code=0", leaver, kCalls,
                             mix(c.seed, 3) % static_cast<std::uint64_t>(steps));
  } else {
    drill.odd = leaver;
    drill.oddity = c.variant == kBetween ? Drill::Oddity::walks_out : Drill::Oddity::leaves;
  }
  spec.arguments = {"--fault-rank", encode(drill)};
  Job job(spec);
  const JobEnd end = job.finish();
  const RankEnd& left = end.ranks[static_cast<std::size_t>(leaver)];
  const bool as_planned = left.ending.exit_code == 0 && !left.report;
  return Finding::of(first_of(
      {as_planned ? "" : "the fault did not strike: " + describe(end, leaver),
       problem_with_errors(end, {.code = c.variant == kAfterFinalize ? ErrorCode::mismatch : ErrorCode::peer_lost,
                                 .culprit = leaver,
                                 .exempt = {leaver},
                                 .since = left.ended_at}),
       problem_with_traces(end)}));
}

}  // namespace

const Property kFaultExitsEarly{"exits_early",
                                "a rank that ends too early, with exit code 0, is named within a second",
                                Property::Kind::fault,
                                &cases,
                                &run,
                                OnGpus::buffers};

}  // namespace col::colcheck
