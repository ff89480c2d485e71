// The directory by which ranks meet cannot be made (Case::variant 0), is removed before they meet (1), after their
// group stands (2), or before they make another one (3). A clean `io` error, in time; a group that stands needs no
// directory.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

namespace fs = std::filesystem;

enum Way : std::uint64_t { kCannotBeMade, kGoneBefore, kGoneAfter, kGoneAfterNewGroup, kWays };
constexpr Duration kTimeout = std::chrono::seconds(2);
constexpr double kTimeoutSeconds = 2, kEpsilonSeconds = 1;

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  for (const std::string& backend : selection.backends) {
    for (std::uint64_t way = 0; way < kWays && !sizes.empty(); ++way) {
      Case c;
      c.property = "no_store";
      c.backend = backend;
      c.seed = mix(selection.seed, way);
      c.ranks = sizes.front();
      c.primitive = Primitive::allreduce;
      c.dtype = DType::float32;
      c.count = 24;
      c.variant = way;
      all.push_back(c);
    }
  }
}

// Somebody else's doing, in the middle of the job.
void remove_store(Job& job, const Case& c, const char* point) {
  for (int rank = 0; rank < c.ranks; ++rank) job.await_point(rank, point);
  std::error_code ignored;
  fs::remove_all(job.store_directory(), ignored);
  for (int rank = 0; rank < c.ranks; ++rank) job.go_on(rank);
}

std::string problem_with_io(const JobEnd& end, const Case& c) {
  for (int rank = 0; rank < c.ranks; ++rank) {
    const std::string problem = problem_with_end(end, rank);
    if (!problem.empty()) return problem + "; expected io";
    const Report& report = *end.ranks[static_cast<std::size_t>(rank)].report;
    if (report.code != to_string(ErrorCode::io)) return describe(end, rank) + "; expected io";
    if (report.seconds > kTimeoutSeconds + kEpsilonSeconds) return describe(end, rank) + "; that is too late";
  }
  return {};
}

Finding run(Rank& /*rank*/, const Case& c) {
  Drill drill{.c = c};
  drill.asks_to_join = c.variant == kGoneBefore;
  drill.asks_to_call = c.variant == kGoneAfter || c.variant == kGoneAfterNewGroup;
  drill.more_groups = c.variant == kGoneAfterNewGroup ? 1 : 0;
  JobSpec spec{.ranks = c.ranks, .arguments = {"--fault-rank", encode(drill)}, .timeout = kTimeout};
  // Not even root can make a directory there.
  if (c.variant == kCannotBeMade) spec.store = "file:///dev/null/store";
  Job job(spec);
  if (drill.asks_to_join) remove_store(job, c, "ready");
  if (drill.asks_to_call) remove_store(job, c, "call");
  const JobEnd end = job.finish();
  const std::string problem = c.variant == kGoneAfter ? problem_with_success(end) : problem_with_io(end, c);
  return Finding::of(first_of({problem, problem_with_traces(end)}));
}

}  // namespace

const Property kFaultNoStore{"no_store", "a store that cannot be made, or is removed: a clean error in time",
                             Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck
