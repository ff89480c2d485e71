// The seam between the clock and a simulated job: whoever stands in for the kernel where threads wait.
//
// In a program of a user, nobody does, and each function of clock.hpp and lock.hpp asks the kernel. A test puts a
// scheduler here: of its threads one runs at a time, and at each of these calls it chooses who goes on, and what time
// it is. So one seed is one run.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <col/job.hpp>

#include "core/export/module_export.hpp"

namespace col::core {

// The machine that a process runs on, as the network sees it. Host names do not count, because containers copy them.
struct Host {
  std::string hostname;           // for messages only
  std::string boot_id;            // changes with every boot of every machine
  std::string pid_namespace;      // process ids have the same meaning in processes with equal boot id and pid namespace
  std::string network_namespace;  // processes share loopback exactly if boot id and network namespace are equal
};

// The objects of which a process has one, and in a simulated job each rank.
struct ProcessState {
  std::atomic<int> unattended_groups{0};  // see Background
  std::atomic<void*> unattended{nullptr}, progress_thread{nullptr};
};

enum class ProcessCondition { runs, stopped, gone };

class COL_MODULE_EXPORT Scheduler {
 public:
  using Time = Deadline::Clock::time_point;

  virtual ~Scheduler();

  // Only yield(), may_yield(), block(), poll() and join_thread() let another thread run: a lock may be held over any
  // of the others, and nobody comes between the end of a look at something and the block for it.

  // A little later each time, as some loops only look at the clock.
  virtual Time now() noexcept = 0;
  virtual std::chrono::system_clock::time_point wall_now() noexcept = 0;

  // Another thread may run in between.
  virtual void yield() noexcept = 0;
  // Another thread may run in between, now and then: before the calling thread takes a lock.
  virtual void may_yield() noexcept = 0;
  // Blocks the calling thread until wake() of the same address, or until the time. Between the caller's last look at
  // what it waits for and this call, no other thread runs. A null address is a sleep.
  virtual void block(const void* address, Time until) noexcept = 0;
  // Lets one of those that block on the address go on, or all.
  virtual void wake(const void* address, bool all) noexcept = 0;
  // poll(2), with its result and its errno.
  virtual int poll(std::span<pollfd> descriptors, Time until) noexcept = 0;
  // Sockets of a stream: one that listens, or one that is connected. Both do not block. -1 with errno if there is none.
  virtual int listen(const std::string& host, int port) = 0;
  virtual int connect(const std::string& host, int port) = 0;

  // Starts a thread of the calling thread's process. Its number is for join_thread().
  virtual int start_thread(std::function<void()> body) = 0;
  virtual void join_thread(int number) noexcept = 0;

  // The calling thread's process: its state, and its questions to the kernel.
  virtual ProcessState& process() noexcept = 0;
  virtual std::int64_t pid() noexcept = 0;
  virtual const Host& host() noexcept = 0;
  virtual ProcessCondition condition_of(std::int64_t pid) noexcept = 0;
  virtual void random(std::span<std::byte> bytes) noexcept = 0;
  virtual std::optional<std::string> environment(const std::string& name) = 0;
  virtual void log(std::string_view line) noexcept = 0;
};

// Null, but in a simulated job. It changes only while the process has one thread.
COL_MODULE_EXPORT extern std::atomic<Scheduler*> installed_scheduler;

inline Scheduler* scheduler() noexcept {
  return installed_scheduler.load(std::memory_order_relaxed);
}

}  // namespace col::core
