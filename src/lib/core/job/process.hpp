// The identity of a process in a control page: pid and start time in one word. So it changes atomically, and a reused
// pid is recognised.
#pragma once

#include <cstdint>
#include <optional>

#include "core/clock/scheduler.hpp"

namespace col::core {

// 22 bits of pid (the kernel's limit) above 42 bits of start time in clock ticks since boot (more than 1000 years).
class ProcessId {
 public:
  constexpr ProcessId() = default;  // nobody
  constexpr ProcessId(std::int64_t pid, std::uint64_t start) noexcept
      : word_(static_cast<std::uint64_t>(pid) << kStartBits | (start & kStartMask)) {}
  static constexpr ProcessId from_word(std::uint64_t word) noexcept {
    ProcessId id;
    id.word_ = word;
    return id;
  }
  static ProcessId self();

  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr std::int64_t pid() const noexcept { return static_cast<std::int64_t>(word_ >> kStartBits); }
  constexpr std::uint64_t start() const noexcept { return word_ & kStartMask; }
  constexpr bool nobody() const noexcept { return word_ == 0; }
  bool operator==(const ProcessId&) const = default;

  // Whether exactly this process still runs. A zombie does not count as running, because its parent may not reap it for
  // a while.
  bool alive() const;
  // Whether it is alive and stopped: by SIGSTOP, ^Z or a debugger.
  bool stopped() const { return condition() == Condition::stopped; }
  using Condition = ProcessCondition;
  // Both in one look. Without /proc, nothing is known of a process that lives but that it runs.
  Condition condition() const;

 private:
  static constexpr int kStartBits = 42;
  static constexpr std::uint64_t kStartMask = (std::uint64_t{1} << kStartBits) - 1;
  std::uint64_t word_ = 0;
};

}  // namespace col::core
