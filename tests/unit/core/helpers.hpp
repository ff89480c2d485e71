// What the tests of core share: numbers, child processes, and environment variables for a while.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <col/error.hpp>
#include <col/job.hpp>

#include "core/kernels/instructions.hpp"
#include "support/temp_dir.hpp"

namespace core_test {

// The instruction sets that this machine has.
std::vector<col::core::Instructions> available_instructions();

// Random bits in an array of that type, with the values in between that break things.
void randomize(std::span<std::byte> bytes, col::DType dtype, std::mt19937& random);

// What becomes of an exact float32 in an array of that type: rounded there, once.
float rounded(col::DType dtype, float exact);

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
// Checks that it has this code, and each of `parts` in its message.
void check_error(col::ErrorCode code, const std::vector<std::string>& parts, const std::function<void()>& body);

// A control page for one local rank of job "job", in a file that other processes can open.
struct PageFile {
  col::test::TempDir directory;
  std::string path = directory / "page";
  std::shared_ptr<col::ControlPage> page = col::ControlPage::create(path, 1, "job");
};

}  // namespace core_test
