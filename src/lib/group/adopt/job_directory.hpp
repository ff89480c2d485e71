// Where the ranks of a job that was not started by colrun meet: a directory that its first rank makes, that its last
// rank removes, and that no other job's rank ever takes for its own.
//
//   $TMPDIR/col-<user id>/             mode 0700; whoever changes anything in it holds its lock (user_directory.hpp)
//     <job>.<random>/                  one run of the job
//       members                        a line for each rank that has entered, and a lock that each of them shares
//       store/  control                what the job keeps there
//
// The lock on `members` says who lives: the kernel takes a rank's share away when the rank ends, in whatever way. So
//
//   - a directory that nobody shares the lock of is left over, and the next rank of any job removes it;
//   - a rank joins the directory of its job when somebody lives in it, and its line, of as many as the world has ranks,
//     is still free. A directory that all ranks have entered is never joined again, so what is left of an earlier job
//     of the same name (a restart, a port used again) is never mistaken for this one;
//   - else it makes a new one. No rank waits for another here, so it does not matter which comes first, nor whether one
//     never comes: that is found when they make a group, which names who is missing.
#pragma once

#include <sys/types.h>

#include <string>

#include <col/types.hpp>

#include "core/unique_fd.hpp"

namespace col::group::adopt {

class UserDirectory;

// What a rank has to know to find its job.
struct JobKey {
  std::string job;  // what the launcher calls it, as a file name: "openmpi-0123456789abcdef"
  int rank = 0;
  int world_size = 1;
};

// One rank's stay in the directory of its job. Not thread safe.
class JobDirectory {
 public:
  // Does not enter yet. `parent` is the directory for temporary files.
  JobDirectory(JobKey key, std::string parent);
  ~JobDirectory();  // leave()
  JobDirectory(const JobDirectory&) = delete;
  JobDirectory& operator=(const JobDirectory&) = delete;

  // Joins or makes the job's directory; one that was left before is entered again as long as it exists. Removes what
  // ended jobs have left. Blocks for `timeout` at most, for processes that hold the lock. Errors: those of
  // UserDirectory; not_initialized in a process that was forked from the one that entered.
  void enter(Duration timeout);
  // The last to leave removes the directory. Blocks for two seconds at most, and gives up then: the next job removes
  // it. A process that was forked from the one that entered does nothing.
  void leave() noexcept;

  bool entered() const noexcept { return static_cast<bool>(members_); }
  // Requires: it was entered once.
  const std::string& path() const noexcept { return path_; }

 private:
  bool join(const std::string& path, bool again);
  void make(const UserDirectory& user);

  JobKey key_;
  std::string parent_;
  std::string path_;
  core::UniqueFd members_;  // holds this rank's share of the lock
  pid_t owner_ = 0;
};

}  // namespace col::group::adopt
