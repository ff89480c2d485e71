// A scheduler of which only time is not the kernel's: the base of those that make time pass in tests of one process.
#pragma once

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/clock/scheduler.hpp"

namespace col::test {

class SameProcess : public core::Scheduler {
 public:
  void may_yield() noexcept override {}
  int listen(const std::string& /*host*/, int /*port*/) override { return no_socket(); }
  int connect(const std::string& /*host*/, int /*port*/) override { return no_socket(); }

  core::ProcessState& process() noexcept override { return state_; }
  std::int64_t pid() noexcept override { return ::getpid(); }
  const core::Host& host() noexcept override { return host_; }
  core::ProcessCondition condition_of(std::int64_t pid) noexcept override {
    const bool is_gone = ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
    return is_gone ? core::ProcessCondition::gone : core::ProcessCondition::runs;
  }
  void random(std::span<std::byte> bytes) noexcept override {
    while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) continue;
  }
  std::optional<std::string> environment(const std::string& name) override {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }
  void log(std::string_view line) noexcept override { std::cerr << line; }

 private:
  static int no_socket() noexcept {
    errno = ENOSYS;
    return -1;
  }

  core::ProcessState state_;
  core::Host host_;
};

}  // namespace col::test
