// A process that is started so that it can be harmed.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"

namespace col::colcheck {

struct ChildSpec {
  std::string program;
  std::vector<std::string> arguments;             // after the program's name
  std::vector<std::string> environment;           // "NAME=value"; all of it
  int talk_fd = -1;                               // becomes descriptor 3
  int output_fd = -1;                             // becomes 1 and 2
  int user_namespace = -1, mount_namespace = -1;  // to be entered; -1: the caller's
  bool without_memfd = false;                     // memfd_create() fails as if there were no such call
};

// How a process ended.
struct Ending {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
};

// One child process, which the destructor kills and reaps. Its stdin is /dev/null. Only what the spec names is open in
// it, its signals have their defaults, and it is killed when the thread that made it ends.
class Child {
 public:
  // Throws std::system_error if there can be no more processes or descriptors. For a program that cannot be executed,
  // the child writes so and exits with 127.
  explicit Child(const ChildSpec& spec);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Readable once the process has ended; -1 if the system refuses one. Then poll, with this time between polls.
  int pidfd() const { return pidfd_.get(); }
  std::optional<int> longest_nap_ms() const { return pidfd_ ? std::nullopt : std::optional(5); }
  bool running() const { return !ending_; }
  // Nothing while it runs. Does not block. Reaps it.
  const std::optional<Ending>& try_end();
  // Whether it is stopped (SIGSTOP). Does not block.
  bool stopped() const;
  void signal(int number) const;

 private:
  pid_t pid_ = -1;
  tools::UniqueFd pidfd_;
  std::optional<Ending> ending_ = {};
};

}  // namespace col::colcheck
