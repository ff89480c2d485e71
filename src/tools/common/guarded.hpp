// How a tool ends when its work throws.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"

namespace col::tools {

// Ends the tool with this code. what() is one line.
class ToolError : public std::runtime_error {
 public:
  ToolError(int exit_code, const std::string& what) : std::runtime_error(what), exit_code_(exit_code) {}
  template <class Arg, class... Args>
  ToolError(int exit_code, fmt::format_string<Arg, Args...> what, Arg&& arg, Args&&... args)
      : ToolError(exit_code, fmt::format(what, std::forward<Arg>(arg), std::forward<Args>(args)...)) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

struct Guard {
  const char* tool;
  int failure = exit_code::kUsage;    // of any other error
  int unwritten = exit_code::kUsage;  // what was found could not be written
  bool has_ranks = false;             // a col::Error is about them, unless something was asked for wrongly
};

// Returns the exit code of `work`. What that throws is said in one line on stderr, as far as stderr takes it, and
// becomes an exit code, too.
int guarded(const Guard& guard, const std::function<int()>& work);

}  // namespace col::tools
