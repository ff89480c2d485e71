// A forked process that runs a function of the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

#include <col/types.hpp>

#include "core/unique_fd.hpp"

namespace col::test {

// For expectations inside a child, where Catch2's assertions reach nobody.
inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
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
