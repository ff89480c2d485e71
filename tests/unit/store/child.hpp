// A forked process that runs a function of the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <col/error.hpp>
#include <col/types.hpp>

#include "core/unique_fd.hpp"

namespace col::test {

// For expectations inside a child, where Catch2's assertions reach nobody.
inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

// Calls it and wants an Error of that code whose message has all of `parts`.
template <class Call>
void require_error(ErrorCode code, const std::vector<std::string>& parts, Call call) {
  try {
    call();
  } catch (const Error& error) {
    require(error.code() == code, "another code: " + std::string(error.what()));
    for (const auto& part : parts)
      require(error.message().find(part) != std::string::npos, "no '" + part + "' in: " + error.what());
    require(error.message().find('\n') == std::string::npos, "more than one line");
    return;
  }
  throw std::runtime_error("nothing was thrown");
}

class Child {
 public:
  // Forks. What `body` throws is the child's outcome; it ends without running the parent's destructors.
  explicit Child(const std::function<void()>& body);
  ~Child();  // kills it if it still runs
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;

  pid_t pid() const { return pid_; }
  // Waits for its end: "" when the body returned, what it threw, "signal N", or "still running" after `limit`, when it
  // is killed.
  std::string outcome(Duration limit = std::chrono::seconds(30));
  void kill() const;

 private:
  pid_t pid_ = -1;
  core::UniqueFd report_;  // what the body threw; its end is the child's
};

}  // namespace col::test
