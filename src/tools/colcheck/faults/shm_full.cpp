// No room for shared memory: a clean `resource` or `io` error on every rank, or success; never SIGBUS, never a hang.
//
// Case::variant 0: the kernel has no memfd_create(), and /dev/shm is smaller than a group needs. 1: it is full after a
// few groups; then the next one fails, and those that stand go on. 2: files may not become long enough (ulimit -f).
// 3: they may hardly have a byte, so that not even a key of the store fits. 4: as 0, but /dev/shm has room: success,
// and nothing is left in it.
#include <system_error>

#include <fmt/format.h>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/drill.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

enum Way : std::uint64_t { kTooSmall, kFillsUp, kShortFiles, kNoFiles, kRoomy, kWays };
// More than enough for one group of four, not for thirty.
constexpr std::size_t kSmallBytes = 64 << 10, kFewGroupsBytes = 12 << 20, kRoomyBytes = 64 << 20;
constexpr int kManyGroups = 30;
constexpr Duration kTimeout = std::chrono::seconds(3);
constexpr double kTimeoutSeconds = 3, kEpsilonSeconds = 1;

void cases(const Selection& selection, std::vector<Case>& all) {
  const std::vector<int> sizes = drill_ranks(selection);
  for (const std::string& backend : selection.backends) {
    for (std::uint64_t way = 0; way < kWays && !sizes.empty(); ++way) {
      // Others than shm use shared memory for nothing; but their ranks meet by files as well.
      if (backend != "shm" && way != kNoFiles) continue;
      Case c;
      c.property = "shm_full";
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

bool is_clean(const Report& report) {
  return report.good() || report.code == to_string(ErrorCode::resource) || report.code == to_string(ErrorCode::io);
}

// The same on all ranks: if one rank cannot get it, the others cannot either, and get an error that says why.
std::string problem_with(const JobEnd& end, const Case& c) {
  for (int rank = 0; rank < c.ranks; ++rank) {
    const std::string problem = problem_with_end(end, rank);
    if (!problem.empty()) return problem;
    const RankEnd& one = end.ranks[static_cast<std::size_t>(rank)];
    if (!is_clean(*one.report)) return describe(end, rank) + "; expected resource, io or success";
    if (one.report->seconds > kTimeoutSeconds + kEpsilonSeconds) return describe(end, rank) + "; that is too late";
    const bool small = c.variant == kTooSmall || c.variant == kFillsUp || c.variant == kShortFiles;
    if (small && one.report->good()) return describe(end, rank) + "; expected resource or io";
    if (c.variant == kFillsUp && one.report->later != "success")
      return fmt::format("{}; a call on a group that stood before ended with {}, expected success", describe(end, rank),
                         one.report->later);
  }
  return c.variant == kRoomy ? problem_with_success(end) : "";
}

Finding run(Rank& /*rank*/, const Case& c) {
  Drill drill{.c = c};
  JobSpec spec{.ranks = c.ranks, .timeout = kTimeout};
  if (c.variant == kShortFiles) drill.file_bytes = static_cast<std::int64_t>(kSmallBytes);
  if (c.variant == kNoFiles) drill.file_bytes = 1;
  if (c.variant == kFillsUp) drill.more_groups = kManyGroups;
  std::unique_ptr<PrivateShm> shm;
  if (c.variant == kTooSmall || c.variant == kFillsUp || c.variant == kRoomy) {
    spec.without_memfd = true;
    try {
      shm = std::make_unique<PrivateShm>(c.variant == kTooSmall  ? kSmallBytes
                                         : c.variant == kFillsUp ? kFewGroupsBytes
                                                                 : kRoomyBytes);
    } catch (const std::system_error& error) {
      return Finding::skip(error.what());
    }
    spec.shm = shm.get();
  }
  spec.arguments = {"--fault-rank", encode(drill)};
  Job job(spec);
  const JobEnd end = job.finish();
  return Finding::of(first_of({problem_with(end, c), problem_with_traces(end)}));
}

}  // namespace

const Property kFaultShmFull{"shm_full", "no room for shared memory, or for files: a clean error, never SIGBUS",
                             Property::Kind::fault, &cases, &run};

}  // namespace col::colcheck
