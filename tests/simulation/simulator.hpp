// The scheduler of a simulated job. Ranks are processes of it, and their threads are real threads, of which one runs at
// a time: until it waits, yields or ends. Then a seed chooses who goes on, and what time it is.
//
// Time passes where all wait: it jumps to the moment at which the first of them goes on. A process can be stopped and
// killed at any of these places. A thread of a killed process stays where it is for ever: nothing of it is unwound, and
// the locks that it holds stay held. So a simulator is never destroyed; a program that has simulated jobs ends by
// _exit().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock/scheduler.hpp"
#include "simulation/random.hpp"
#include "simulation/trace.hpp"

namespace col::test {

// The wire between the processes: see Streams.
class Wires {
 public:
  virtual ~Wires() = default;
  virtual int listen(int port) = 0;
  virtual int connect(int port) = 0;
  // Called whenever a thread stands still.
  virtual void take() = 0;
};

class Simulator final : public core::Scheduler {
 public:
  Simulator(std::uint64_t seed, Trace& trace);
  ~Simulator() override;

  // ---- Before the run

  // A process on that host, of which `main` is the first thread. Its number counts from 0.
  int add_process(std::function<void()> main, core::Host host);
  void connect_by(Wires& wires) { wires_ = &wires; }
  // Free locks are taken without a choice, as before version 3 of the draws.
  void pass_over_free_locks() noexcept { chooses_at_free_locks_ = false; }
  // For all processes.
  void set_environment(const std::string& name, std::string value) { environment_[name] = std::move(value); }

  // ---- The run

  enum class End { all_ended, stuck, endless };
  // Runs until the first threads of all processes have ended, or their process has. Stuck: some wait, and nothing will
  // ever happen. Requires: no other simulator runs.
  End run();
  // The places of all threads that have not ended, a line each.
  std::string places() const;

  // ---- From inside of the run, and from events

  // Calls `event` at that time. It must not wait.
  void at(Time time, std::function<void()> event);
  void kill(int process);
  void stop(int process);
  void go_on(int process);
  // Says where the calling thread is in its program.
  void say_place(std::string place);
  // An event for the trace.
  void note(std::string_view what, std::string_view more = {});
  int current_process() const noexcept;
  core::ProcessCondition state_of(int process) const noexcept;
  // Threads that a process has started and that have not ended, when its first thread had; -1: it did not end.
  int left_threads(int process) const;
  Random& choices() noexcept { return random_; }
  // Lets those go on that poll for descriptors and have them by now.
  void look_at_polls() noexcept;
  // Something has happened that a thread may poll for. Those who poll for a while without it do so ever more rarely.
  void count_progress() noexcept { ++progress_; }
  std::uint64_t switches() const noexcept { return switches_; }
  static std::int64_t ns_of(Time time) noexcept { return std::chrono::nanoseconds(time - kBegin).count(); }

  static int process_of(std::int64_t pid) noexcept { return static_cast<int>(pid - kFirstPid); }

  // Above all real ones, and within the 22 bits of a record.
  static constexpr std::int64_t kFirstPid = 4'190'000;
  // A place in time that no real clock has reached.
  static constexpr Time kBegin{std::chrono::hours(240)};

  // ---- core::Scheduler

  Time now() noexcept override { return now_; }
  std::chrono::system_clock::time_point wall_now() noexcept override;
  void yield() noexcept override;
  void may_yield() noexcept override;
  void block(const void* address, Time until) noexcept override;
  void wake(const void* address, bool all) noexcept override;
  int poll(std::span<pollfd> descriptors, Time until) noexcept override;
  int listen(const std::string& host, int port) override;
  int connect(const std::string& host, int port) override;
  int start_thread(std::function<void()> body) override;
  void join_thread(int number) noexcept override;
  core::ProcessState& process() noexcept override;
  std::int64_t pid() noexcept override;
  const core::Host& host() noexcept override;
  core::ProcessCondition condition_of(std::int64_t pid) noexcept override;
  void random(std::span<std::byte> bytes) noexcept override;
  std::optional<std::string> environment(const std::string& name) override;
  void log(std::string_view line) noexcept override;

 private:
  struct Thread;
  struct Process;
  struct Event {
    Time time;
    std::uint64_t number;  // of two at one time, the first comes first
    std::function<void()> run;
  };

  Thread& add_thread(int process, std::function<void()> body);
  void start(Thread& thread);
  void live(Thread& thread);
  void leave(Thread& self, std::string_view why);
  Thread* choose();
  bool can_go_on(const Thread& thread) const;
  void run_events();
  Time next_moment() const;
  void finish(End end);
  Time stretched(Thread& thread, Time until);
  void end_process(Process& process);

  Trace& trace_;
  Random random_;
  Time now_ = kBegin;
  bool chooses_at_free_locks_ = true;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;  // by number
  std::vector<Event> events_;                     // a heap, the earliest first
  std::vector<Thread*> ready_;                    // of choose(): kept, so that nothing is allocated
  std::uint64_t numbers_ = 0, progress_ = 0, switches_ = 0;
  Wires* wires_ = nullptr;
  std::map<std::string, std::string> environment_;
  std::atomic<std::uint32_t> is_over_{0};
  End end_ = End::all_ended;
};

}  // namespace col::test
