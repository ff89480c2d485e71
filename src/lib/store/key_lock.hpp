// Mutual exclusion of the writers of one file of a FileStore, between threads, processes and hosts.
//
// It locks one byte of the store's lock file, at an offset that is a hash of the name. So writers of different keys do
// not block each other. The lock belongs to the open file (F_OFD_SETLK): it also works between threads, and the kernel
// releases it when its holder dies.
#pragma once

#include <sys/types.h>

#include <string_view>

#include <col/types.hpp>

#include "core/unique_fd.hpp"
#include "store/directory.hpp"

namespace col::store {

class KeyLock {
 public:
  // Blocks until the lock is held; throws io after `timeout`. `key` is for that message.
  KeyLock(const Directory& directory, std::string_view name, std::string_view key, Duration timeout);
  ~KeyLock();
  KeyLock(const KeyLock&) = delete;
  KeyLock& operator=(const KeyLock&) = delete;

 private:
  bool apply(short type) noexcept;

  core::UniqueFd file_;
  off_t offset_;
};

}  // namespace col::store
