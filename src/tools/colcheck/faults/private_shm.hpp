// A private /dev/shm for a job, of any small size.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "common/unique_fd.hpp"

namespace col::colcheck {

// A mount namespace in which /dev/shm is a tmpfs of that size. A process that does nothing else keeps it alive. Root
// just makes one. Other users need a user namespace for it, in which they keep their ids.
class PrivateShm {
 public:
  // Throws std::system_error if this system does not allow it.
  explicit PrivateShm(std::size_t bytes);
  ~PrivateShm();
  PrivateShm(const PrivateShm&) = delete;
  PrivateShm& operator=(const PrivateShm&) = delete;

  int user_namespace() const { return user_.get(); }  // -1: the caller's
  int mount_namespace() const { return mount_.get(); }
  // Where its files are visible from outside.
  std::string path() const;

 private:
  void end() noexcept;
  pid_t holder_ = -1;
  tools::UniqueFd user_, mount_;
};

}  // namespace col::colcheck
