// A /dev/shm of a job's own, as small as one likes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "common/unique_fd.hpp"

namespace col::colcheck {

// A mount namespace in which /dev/shm is a tmpfs of that size, kept alive by a process that does nothing else. Root
// just makes one; others need a user namespace for it, in which they keep their ids.
class PrivateShm {
 public:
  // Throws std::system_error when this system does not let us.
  explicit PrivateShm(std::size_t bytes);
  ~PrivateShm();
  PrivateShm(const PrivateShm&) = delete;
  PrivateShm& operator=(const PrivateShm&) = delete;

  int user_namespace() const { return user_.get(); }  // -1: the caller's
  int mount_namespace() const { return mount_.get(); }
  // Where its files are seen from outside.
  std::string path() const;

 private:
  void end() noexcept;
  pid_t holder_ = -1;
  tools::UniqueFd user_, mount_;
};

}  // namespace col::colcheck
