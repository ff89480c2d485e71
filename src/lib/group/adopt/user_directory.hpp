// The directory on one host with all jobs of one user that were not started by colrun.
#pragma once

#include <string>

#include <col/job.hpp>

#include "core/unique_fd.hpp"

namespace col::group::adopt {

// $TMPDIR, else /tmp; absolute.
std::string temporary_directory();

// Holds the lock of <parent>/col-<user id> as long as it lives, so nothing in it changes. The directory is made with
// mode 0700 if it does not exist, and removed at the end if it is empty.
class UserDirectory {
 public:
  // Blocks while another process holds the lock, until `deadline`: then timeout. Errors: io if the directory cannot be
  // made or locked, or if it does not belong to this user alone; resource.
  UserDirectory(const std::string& parent, const Deadline& deadline);
  ~UserDirectory();
  UserDirectory(const UserDirectory&) = delete;
  UserDirectory& operator=(const UserDirectory&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  bool open();
  void lock(const Deadline& deadline);
  bool still_there() const;

  std::string path_;
  core::UniqueFd directory_;
};

// Throws "cannot <action> '<path>' (<errno text>); <what to do>": resource if space or descriptors ran out, else io.
[[noreturn]] void throw_directory_error(int error, const std::string& action, const std::string& path);

}  // namespace col::group::adopt
