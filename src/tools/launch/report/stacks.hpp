// The stacks of processes that hang, taken while they still live.
//
// It uses gdb if it is installed. If it is not, or if it fails, it uses eu-stack (elfutils), and otherwise /proc. Child
// processes do the work, a few at a time. The caller only waits for a descriptor.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/processes/events.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

//   StackTaker taker(events, pids, StackTaker::Clock::now() + StackTaker::kUsualTime);
//   … events.serve() up to taker.deadline(), and then taker.work(now), until taker.finished()
//   stacks = taker.take();
//
// Its children do not concern the caller, who may reap them or not. None of them outlives the object, or the calling
// thread. Requires: the processes are the caller's children and not reaped, so that their pids identify them; and a
// single thread.
class StackTaker {
 public:
  using Clock = core::Clock;
  static constexpr std::chrono::milliseconds kUsualTime{10'000};

  struct Options {
    std::size_t most_processes = 8;  // only the first of the given ones get a stack
    std::size_t most_lines = 40;     // of one process
    std::size_t at_once = 2;
    std::chrono::milliseconds per_process{8'000};  // then its debugger is killed, and /proc is used
    std::string path = {};                         // where to look for debuggers, like $PATH; empty: $PATH
  };

  StackTaker(Events& events, const std::vector<pid_t>& pids, Clock::time_point deadline)
      : StackTaker(events, pids, deadline, Options()) {}
  StackTaker(Events& events, const std::vector<pid_t>& pids, Clock::time_point deadline, const Options& options);
  ~StackTaker();
  StackTaker(const StackTaker&) = delete;
  StackTaker& operator=(const StackTaker&) = delete;

  // The time at which work() has something to do: a child's is up. Nothing once it has finished.
  std::optional<Clock::time_point> deadline() const;
  // Call it after events, too.
  void work(Clock::time_point now);
  // Whether all stacks are there or were given up. This is true at the deadline at the latest.
  bool finished() const noexcept;
  // The stacks, in the order of the pids; nothing for a process that has ended, or for which there was not enough time.
  std::vector<std::optional<Stack>> take();
  // The stacks that there are, with their processes.
  std::vector<std::pair<pid_t, Stack>> take_by_pid();

 private:
  enum class Way { gdb, eu_stack, proc };
  struct Process {
    pid_t pid;
    std::deque<Way> ways;  // ways that were not tried yet; empty: it is done
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
  void on_output(int pipe);
  bool read(Child& child);  // false at the end
  void finish(Child& child);
  void give_up(Child& child);
  void keep_time(Clock::time_point now);

  Options options_;
  std::string gdb_, eu_stack_;  // their paths; empty: not installed
  Clock::time_point deadline_;
  Clock::time_point debuggers_until_;  // leaves time for /proc
  EventSource events_;
  std::vector<Process> processes_;
  std::vector<std::optional<Stack>> stacks_;
  std::vector<Child> children_;          // children that run
  std::vector<tools::UniqueFd> ending_;  // children that have nothing more to say, and may not be reaped yet
};

// The stacks of these ranks, at most so many; blocks for StackTaker::kUsualTime at most. A process that has taken the
// place of another one since has none.
void take_stacks(const std::vector<RankStory*>& ranks, std::size_t most_processes);

// The threads and frames in the output of `gdb` or `eu-stack`, without other text, and without addresses for frames
// with a name. At most `most_lines`. Empty if there is no frame in it.
std::vector<std::string> trim_stack(std::string_view output, std::size_t most_lines);

// The lines as one text, without what differs between processes that do the same: addresses and thread numbers.
std::string stack_key(const std::vector<std::string>& lines);

// The kernel's words about a process, without a debugger: one line for each thread: its state, its system call, and
// where it waits in the kernel. For a thread that no signal can reach, the kernel's own stack follows, if it may be
// read. At most `most_lines`. Empty if the process has ended.
//
// May block while the process is in execve, so call it in a separate process.
std::vector<std::string> proc_stack(pid_t pid, std::size_t most_lines);

}  // namespace col::launch
