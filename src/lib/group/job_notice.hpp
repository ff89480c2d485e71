// A notice outside of any job's scope of the store: "rank r of group g joins under job j". Nobody connects by it. It is
// read only when a rank has been missing until the deadline, to tell a rank that never came from one that was started
// under another COL_JOB_ID and therefore looks in another place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <col/store.hpp>

namespace col::group {

void post_job_notice(Store& unscoped, std::string_view group, int rank, std::string_view job);
void remove_job_notice(Store& unscoped, std::string_view group, int rank, std::string_view job) noexcept;

struct ForeignRank {
  int rank = 0;
  std::string job;
};
// The first of `ranks` whose notice names another job than `job`.
std::optional<ForeignRank> find_foreign_rank(Store& unscoped, std::string_view group, int world_size,
                                             std::string_view job);

}  // namespace col::group
