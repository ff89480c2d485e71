// One rank may have only a few descriptors (ulimit -n): `resource` on that rank and an error on the others, or success
// where they suffice; no hang. Case::variant is how many it may have beyond those that it starts with; or kStanding: a
// group that stands needs none, not even when a call takes so long that a rank looks for the reason.
#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(1);
constexpr double kTimeoutSeconds = 1, kEpsilonSeconds = 1;
// So many suffice for a group of four on any backend.
constexpr std::uint64_t kEnough = 40, kStanding = 1000;
constexpr int kSlowMs = 400;

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  std::vector<std::uint64_t> limits = {0, 4, 8, kEnough, kStanding};
  if (selection.effort == Effort::full) {
    limits.clear();
    for (std::uint64_t limit = 0; limit <= 20; ++limit) limits.push_back(limit);
    limits.insert(limits.end(), {kEnough, kStanding});
  }
  std::uint64_t number = 0;
  for (const std::string& backend : selection.backends) {
    for (const std::uint64_t limit : limits) {
      if (sizes.empty()) continue;
      Case c;
      c.property = "descriptor_limit";
      c.backend = backend;
      c.seed = mix(selection.seed, ++number);
      c.ranks = sizes.front();
      c.primitive = Primitive::allreduce;
      c.dtype = DType::float32;
      c.count = 24;
      c.variant = limit;
      all.push_back(c);
    }
  }
}

std::string problem_with(const JobEnd& end, const Case& c, int poor) {
  const auto problem = problem_with_end(end, poor);
  if (!problem.empty()) return problem;
  const Report& own = *end.ranks[static_cast<std::size_t>(poor)].report;
  // Without a single one it cannot even look for the others.
  if (own.good()) return c.variant == 0 ? describe(end, poor) + "; expected resource" : problem_with_success(end);
  if (c.variant >= kEnough || own.code != to_string(ErrorCode::resource))
    return describe(end, poor) + (c.variant >= kEnough ? "; expected success" : "; expected resource");
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (rank == poor) continue;
    const auto other = problem_with_end(end, rank);
    if (!other.empty()) return other;
    const Report& report = *end.ranks[static_cast<std::size_t>(rank)].report;
    if (report.good() || report.code == "exception" || report.code == "wrong_data")
      return describe(end, rank) + "; expected an error";
    if (report.seconds > kTimeoutSeconds + kEpsilonSeconds) return describe(end, rank) + "; that is too late";
  }
  return {};
}

Finding run(Rank& /*rank*/, const Case& c) {
  const auto poor = static_cast<int>(mix(c.seed, 2) % static_cast<std::uint64_t>(c.ranks));
  Drill drill{.c = c, .odd = poor};
  drill.descriptors = c.variant == kStanding ? 0 : static_cast<int>(c.variant);
  drill.descriptors_late = c.variant == kStanding;
  JobSpec spec{.ranks = c.ranks, .arguments = {"--fault-rank", encode(drill)}, .timeout = kTimeout};
  if (c.variant == kStanding) spec.fault = fmt::format("delay:rank={},ms={}", (poor + 1) % c.ranks, kSlowMs);
  Job job(spec);
  const JobEnd end = job.finish();
  return Finding::of(first_of({problem_with(end, c, poor), problem_with_traces(end)}));
}

}  // namespace

const Property kFaultDescriptorLimit{"descriptor_limit",
                                     "a rank without descriptors gets resource, the others an error, and none hangs",
                                     Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck
