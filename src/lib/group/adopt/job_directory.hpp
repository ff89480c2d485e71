// Where the ranks of a job meet that was not started by colrun: in a directory. The first rank makes it, the last rank
// removes it, and no rank of another job ever takes it for its own.
//
//   $TMPDIR/col-<user id>/             mode 0700; a process that changes anything in it holds its lock
//   (user_directory.hpp)
//     <job>.<random>/                  one run of the job
//       members                        a line for each rank that has entered, and a lock that each of them shares
//       store/  control                what the job keeps there
//       refused                        why its ranks wait in vain, if one of them has found out: see why_apart()
//
// The lock on `members` shows which ranks live: the kernel takes a rank's share away when the rank ends, in any way. So
//
//   - if nobody shares the lock of a directory, the directory is left over, and the next rank of any job removes it;
//   - a rank joins the directory of its job if a rank lives in it, and the line for this rank is still free. A
//     directory that all ranks have entered is never joined again. So what is left of an earlier job of the same name
//     (a restart, a port used again) is never taken for this one;
//   - otherwise it makes a new directory. No rank waits for another here, so the order does not matter. If a rank never
//     comes, this is found when the ranks make a group, and the error names the missing rank.
//
// So ranks that were told different world sizes, or one number twice, are in different directories. Two jobs of one
// name that start at the same time are, too. Who waits for others for long looks which it is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>
#include <col/types.hpp>

#include "core/job/process.hpp"
#include "core/unique_fd.hpp"

namespace col::group::adopt {

class UserDirectory;

// What a rank must know to find its job.
struct JobKey {
  std::string job;  // the launcher's name for it, as a file name: "openmpi-0123456789abcdef"
  int rank = 0;
  int world_size = 1;
};

// One rank's stay in the directory of its job. Not thread safe, but for what says so.
class JobDirectory {
 public:
  // Does not enter yet. `parent` is the directory for temporary files.
  JobDirectory(JobKey key, std::string parent);
  ~JobDirectory();  // leave()
  JobDirectory(const JobDirectory&) = delete;
  JobDirectory& operator=(const JobDirectory&) = delete;

  // Joins or makes the job's directory. A directory that was left before is entered again as long as it exists. Removes
  // what ended jobs have left. Blocks for `timeout` at most, for processes that hold the lock. Errors: those of
  // UserDirectory; not_initialized in a process that was forked from the one that entered.
  void enter(Duration timeout);
  // The last rank to leave removes the directory. Blocks for two seconds at most, and then gives up: the next job
  // removes it. Does nothing in a process that was forked from the one that entered.
  void leave() noexcept;

  // For a rank that has entered `entered_path` and waited for others for long: why they may not come. Other ranks live
  // in another directory of the job with another world size (mismatch), or this rank does, by another process
  // (already_initialized). Before the last look, only if that is no other job of that name; then those who wait in
  // either directory are told the same when they ask. Nothing if nothing is known, or all have entered this one. Blocks
  // as enter() does. Any thread may call it.
  std::optional<Error> why_apart(const std::string& entered_path, Duration timeout, bool is_last_look) const;

  bool entered() const noexcept { return static_cast<bool>(members_); }
  // Requires: it was entered once.
  const std::string& path() const noexcept { return path_; }

 private:
  bool join(const std::string& path, bool again);
  void make(const UserDirectory& user);

  const JobKey key_;
  const std::string parent_;
  std::string path_;
  core::UniqueFd members_;  // holds this rank's share of the lock
  pid_t owner_ = 0;
};

// ---- The list

// The file `members` in the directory of a job: a list of the ranks that have entered, and a lock that all ranks in it
// share.
//
//   col members 2 <world size> <time of its making, ns>
//   <rank> <its process, a word of ProcessId; 0: it has left>
//   …
//
// The last line of a rank counts.
//
// All functions require the lock of the UserDirectory, so no process writes while another one reads.
struct Members {
  int world_size = 1;
  std::int64_t made_ns = 0;  // since the epoch
  std::vector<int> ranks = {};
  std::vector<core::ProcessId> processes = {};  // of the ranks, in this order

  void enter(int rank, core::ProcessId process);
  bool has(int rank) const;
  core::ProcessId process_of(int rank) const;  // nobody, if it is not there
  bool complete() const { return ranks.size() >= static_cast<std::size_t>(world_size); }
  std::string encode() const;
  // Nothing if `text` is not from encode().
  static std::optional<Members> decode(std::string_view text);
};

// Makes the file in `directory`, with a share of the lock. Throws io, resource.
core::UniqueFd make_members(const std::string& directory, const Members& members);
// Opens it and takes a share of the lock. Nothing if that is not possible.
core::UniqueFd open_members(const std::string& directory);
// Throws io, resource.
void add_member(const core::UniqueFd& file, int rank, core::ProcessId process, const std::string& directory);

std::optional<Members> read_members(const std::string& directory);
// Whether nobody has a share of the lock. Also false if this cannot be known.
bool is_left_over(const std::string& directory) noexcept;

}  // namespace col::group::adopt
