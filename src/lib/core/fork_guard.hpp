// Distinguishes the process that made an object from a child that was forked later, without a system call for each
// check.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "core/export/module_export.hpp"

namespace col::core {

class COL_MODULE_EXPORT ForkGuard {
 public:
  ForkGuard() noexcept;
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool is_forked_child() const noexcept {
    // relaxed: the number stands for itself.
    return word_ != nullptr ? word_->load(std::memory_order_relaxed) != process_ : is_other_process();
  }

 private:
  bool is_other_process() const noexcept;

  // In a page that the kernel zeroes in a forked child, one for all objects; null where it cannot.
  std::atomic<std::uint64_t>* const word_;
  const std::uint64_t process_;  // what the word said then: every process that makes such objects has its own number
  const pid_t pid_;              // where there is no word
};

}  // namespace col::core
