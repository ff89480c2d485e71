// Why a job could not be started; used inside the engine. run() turns it into a JobResult.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace col::launch {

class LaunchError : public std::runtime_error {
 public:
  LaunchError(int exit_code, const std::string& message) : std::runtime_error(message), exit_code_(exit_code) {}
  template <class Arg, class... Args>
  LaunchError(int exit_code, fmt::format_string<Arg, Args...> message, Arg&& arg, Args&&... args)
      : LaunchError(exit_code, fmt::format(message, std::forward<Arg>(arg), std::forward<Args>(args)...)) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace col::launch
