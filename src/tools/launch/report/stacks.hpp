// Where processes are that do not go on: their stacks, taken while they still live.
//
// By gdb where it is installed, else, or where it fails, by eu-stack (elfutils), else by what /proc says. The work is
// done by child processes, a few at once; the caller only waits for a descriptor.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

//   StackTaker taker(pids, StackTaker::Clock::now() + StackTaker::kUsualTime);
//   … epoll or poll says that taker.fd() is readable: taker.on_readable(), until taker.finished()
//   stacks = taker.take();
//
// Its children are no business of the caller, who may reap them or not; none outlives it, or the calling thread.
// Requires: the processes are the caller's children and not reaped, so that their pids mean them; a single thread.
class StackTaker {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kUsualTime{10'000};

  struct Options {
    std::size_t most_processes = 8;  // the first of those given; the others have no stack
    std::size_t most_lines = 40;     // of one process
    std::size_t at_once = 2;
    std::chrono::milliseconds per_process{8'000};  // then its debugger is killed, and /proc is asked
    std::string path = {};                         // where debuggers are looked for, as $PATH; empty: $PATH
  };

  // Throws nothing but std::bad_alloc and std::system_error (no more descriptors).
  StackTaker(std::vector<pid_t> pids, Clock::time_point deadline) : StackTaker(std::move(pids), deadline, Options()) {}
  StackTaker(std::vector<pid_t> pids, Clock::time_point deadline, const Options& options);
  ~StackTaker();
  StackTaker(const StackTaker&) = delete;
  StackTaker& operator=(const StackTaker&) = delete;

  // Readable when on_readable() has something to do; it is also when time is up, so the caller needs no timer for it.
  // Always the same descriptor.
  int fd() const noexcept { return epoll_.get(); }
  void on_readable();
  // All stacks are there, or were given up; at the latest at the deadline.
  bool finished() const noexcept;
  // What there is, in the order of the pids; nothing for a process that has ended, or that time was too short for.
  std::vector<std::optional<Stack>> take();

 private:
  enum class Way { gdb, eu_stack, proc };
  struct Process {
    pid_t pid;
    std::deque<Way> ways;  // that were not tried yet; none: it is done
    bool running = false;
  };
  struct Child {
    std::size_t process = 0;
    Way way = Way::proc;
    pid_t pid = -1;
    tools::UniqueFd pidfd, pipe;
    std::string text;
    Clock::time_point until;
  };

  void start_more(Clock::time_point now);
  bool start(std::size_t process, Clock::time_point now);
  pid_t spawn_debugger(Way way, pid_t pid, int output) const;
  pid_t spawn_proc_reader(pid_t pid, int output) const;
  bool read(Child& child);  // false at the end
  void finish(Child& child);
  void give_up(Child& child);
  void keep_time(Clock::time_point now);
  void set_timer();

  Options options_;
  std::string gdb_, eu_stack_;  // their paths; empty: not installed
  Clock::time_point deadline_;
  Clock::time_point debuggers_until_;  // so that there is time left for /proc
  tools::UniqueFd epoll_, timer_;
  std::vector<Process> processes_;
  std::vector<std::optional<Stack>> stacks_;
  std::vector<Child> children_;          // that run
  std::vector<tools::UniqueFd> ending_;  // children that have nothing more to say, not known to be reaped
};

}  // namespace col::launch
