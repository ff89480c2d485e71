// Distinguishes the process that made an object from a child that was forked later, without a system call for each
// check.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "core/module_export.hpp"

namespace col::core {

class COL_MODULE_EXPORT ForkGuard {
 public:
  ForkGuard() noexcept;
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool is_forked_child() const noexcept;

 private:
  pid_t pid_;
  // In a page that the kernel zeroes in a forked child; null where it cannot.
  std::atomic<int>* word_ = nullptr;
};

}  // namespace col::core
