// What the tests of core share: child processes, and environment variables for a while.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/error.hpp>

#include "core/kernels/instructions.hpp"

namespace core_test {

// The instruction sets that this machine has.
std::vector<col::core::Instructions> available_instructions();

// How many files a directory holds.
std::size_t entries(const std::string& directory);

// Sets a variable, or removes it (nullopt), until the end of the scope.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, std::optional<std::string> value);
  ~ScopedVariable();
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> old_;
};

// A forked process that runs `body` and exits with what it returns (99 when it throws). Killed at the end of the scope.
class Child {
 public:
  // `body` gets the child; signal_parent() and wait_for_parent() pair with those of the parent.
  explicit Child(const std::function<int(Child&)>& body);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }
  // One byte to the other side; waits for one. False when none came in 20 s or the other side is gone.
  void signal() const;
  bool wait_for_signal() const;
  void kill_without_reaping() const;  // SIGKILL, and waits until it is a zombie
  // The exit code, 128 + signal, or -1 after 20 s.
  int wait();

 private:
  int socket_ = -1;
  pid_t pid_ = 0;
};

// What a program prints to stderr, run as this test program with one hidden test case and some variables.
std::string run_self(const std::string& test_name,
                     const std::vector<std::pair<std::string, std::optional<std::string>>>& variables);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

// The col::Error that `body` throws; fails the test when it throws none.
col::Error error_of(const std::function<void()>& body);

}  // namespace core_test
