// A slow rank is not a dead one: one that pauses before a step of its plan for a while, or for nearly as long as the
// timeout (Case::variant 0 and 1), is waited for, and the data is right.
#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/faults/steps.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

enum Way : std::uint64_t { kAWhile, kNearlyTooLong, kWays };
constexpr int kCalls = 2;
constexpr int kDelayMs[] = {300, 700};
// The second one leaves room for a machine that is busy with other things.
constexpr Duration kTimeouts[] = {std::chrono::seconds(5), std::chrono::milliseconds(1500)};

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  std::vector<std::pair<Primitive, const char*>> calls = {{Primitive::allreduce, "bde"}};
  if (selection.effort == Effort::full)
    calls.insert(calls.end(), {{Primitive::reduce, "linear"},
                               {Primitive::reduce_scatter, "pairwise"},
                               {Primitive::alltoallv, "pairwise"},
                               {Primitive::barrier, "dissemination"}});
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (const auto& [primitive, algorithm] : calls) {
      for (std::uint64_t way = kAWhile; way < kWays && !sizes.empty(); ++way) {
        Case c;
        c.property = "late";
        c.backend = backend;
        c.seed = mix(selection.seed, ++number);
        c.ranks = sizes[number % sizes.size()];
        c.primitive = primitive;
        c.algorithm = algorithm;
        if (primitive != Primitive::barrier) {
          c.dtype = DType::int32;
          c.count = number % 2 == 0 ? 24 : 50'000;
        }
        c.variant = way;
        if (is_rooted(c.primitive)) c.root = static_cast<int>(mix(c.seed, 1) % static_cast<std::uint64_t>(c.ranks));
        all.push_back(c);
      }
    }
  }
}

Finding run(Rank& /*rank*/, const Case& c) {
  const auto slow = static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
  const auto steps = static_cast<std::uint64_t>(count_steps(numbered(c, kCalls), slow));
  const std::uint64_t way = c.variant % kWays;
  Job job(
      {.ranks = c.ranks,
       .arguments = {"--fault-rank", encode(Drill{.c = c, .calls = kCalls})},
       .timeout = kTimeouts[way],
       .fault = fmt::format("delay:rank={},op={},step={},ms={}", slow, kCalls, mix(c.seed, 3) % steps, kDelayMs[way])});
  const double started = job.now();
  const JobEnd end = job.finish();
  const RankEnd& delayed = end.ranks[static_cast<std::size_t>(slow)];
  const bool struck = delayed.ended_at - started >= kDelayMs[way] * 1e-3;
  return Finding::of(
      first_of({problem_with_success(end), struck ? "" : "the delay did not happen", problem_with_traces(end)}));
}

}  // namespace

const Property kFaultLate{"late", "a rank that is slow, but not slower than the timeout, is waited for",
                          Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck
