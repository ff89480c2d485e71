// A process that is started to be harmed.
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
  bool without_memfd = false;                     // memfd_create() says that there is no such call
};

// How a process ended.
struct Ending {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
};

// One child process, killed and reaped by the destructor. Its stdin is /dev/null, nothing but what the spec names is
// open in it, its signals are as usual, and it is killed when the thread that made it ends.
class Child {
 public:
  // Throws std::system_error when there can be no more processes or descriptors. A program that cannot be executed is
  // a child that writes so and exits with 127.
  explicit Child(const ChildSpec& spec);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Readable once the process has ended; -1 where the system refuses one, and then how long to sleep between looks.
  int pidfd() const { return pidfd_.get(); }
  std::optional<int> longest_nap_ms() const { return pidfd_ ? std::nullopt : std::optional(5); }
  bool running() const { return !ending_; }
  // Nothing while it runs. Does not block; reaps it.
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
