// A notice outside of any job's scope of the store: "rank r of group g waits to join, under job j". It is not used to
// connect. It is read only when a rank has been missing until the deadline. It shows whether that rank never came, or
// was started under another COL_JOB_ID and therefore looks in another place.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <col/store.hpp>

namespace col::group {

// The notice of this process, written when it has waited for a while. A process that has not joined leaves it behind,
// for others who give up later. It counts as long as the process lives.
class JobNotice {
 public:
  JobNotice(Store& unscoped, std::string_view group, int rank, std::string_view job);
  // Writes it, the first time.
  void post();
  void remove() noexcept;
  JobNotice(const JobNotice&) = delete;
  JobNotice& operator=(const JobNotice&) = delete;

 private:
  Store& unscoped_;
  std::string key_;
  std::string text_;
  bool is_posted_ = false;
};

struct ForeignRank {
  int rank = 0;
  std::string job;
};
// The first rank other than `own_rank` that waits for the group under another job than `job`. Processes that are gone
// do not count.
std::optional<ForeignRank> find_foreign_rank(Store& unscoped, std::string_view group, int world_size, int own_rank,
                                             std::string_view job);

}  // namespace col::group
