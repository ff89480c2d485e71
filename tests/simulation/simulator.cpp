#include "simulation/simulator.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/clock/this_process.hpp"

namespace col::test {
namespace {

using Time = core::Scheduler::Time;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The simulated time of a thread's work between two places at which others may run.
constexpr std::uint64_t kLeastStep = 100, kMostStep = 1100;
// One decision in so many, the chosen thread stands still for up to so long: as on a machine with other work.
constexpr std::uint64_t kHesitatesOneIn = 256;
constexpr auto kLongestHesitation = milliseconds(2);
// One lock in so many, others may go on before it is taken: most are far from anything that another thread touches.
constexpr std::uint64_t kLocksOneIn = 8;
// A thread that polls, while nothing happens, sleeps longer and longer, up to so long: minutes of polling then take
// no more than some thousand turns.
constexpr auto kLongestPoll = milliseconds(10);
// A job that takes more turns than this, or more time, does not end: the longest waits are a minute or two.
constexpr std::uint64_t kMostTurns = 5'000'000;
constexpr auto kMostTime = std::chrono::minutes(20);

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void rouse(std::atomic<std::uint32_t>& word) noexcept {
  word.store(1, std::memory_order_release);
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

struct Simulator::Process {
  int number = 0;
  core::Host host;
  core::ProcessState state;
  core::ProcessCondition condition = core::ProcessCondition::runs;
  int threads = 0;  // that it has had
  int left = -1;
};

struct Simulator::Thread {
  int number = 0;   // of all
  int process = 0;  // whose
  int index = 0;    // in its process
  std::function<void()> body;
  std::atomic<std::uint32_t> may_run{0};
  enum class State { ready, blocked, ended } state = State::ready;
  const void* address = nullptr;  // for which it blocks
  std::span<pollfd> polls;        // or these
  Time until = Time::min();       // when it goes on by itself
  std::string_view why = "start";
  std::string place;
  nanoseconds poll{0};  // how long it has slept at last, while nothing happened
  std::uint64_t progress = 0;
};

namespace {

thread_local int own_thread = -1;  // -1: of no simulated job

}  // namespace

Simulator::Simulator(std::uint64_t seed, Trace& trace) : trace_(trace), random_(seed) {}
// Threads that have not ended sleep on their words for ever: in memory that was used anew, such a word would be that of
// a thread of the next simulator, which would then not be roused.
Simulator::~Simulator() {
  for (auto& thread : threads_) {
    if (thread->state != Thread::State::ended) static_cast<void>(thread.release());
  }
}

// ---- Processes and threads

int Simulator::add_process(std::function<void()> main, core::Host host) {
  const int number = static_cast<int>(processes_.size());
  processes_.push_back(std::make_unique<Process>());
  processes_.back()->number = number;
  processes_.back()->host = std::move(host);
  add_thread(number, std::move(main));
  return number;
}

Simulator::Thread& Simulator::add_thread(int process, std::function<void()> body) {
  threads_.push_back(std::make_unique<Thread>());
  Thread& thread = *threads_.back();
  thread.number = static_cast<int>(threads_.size()) - 1;
  thread.process = process;
  thread.index = processes_[static_cast<std::size_t>(process)]->threads++;
  thread.body = std::move(body);
  return thread;
}

void Simulator::start(Thread& thread) {
  std::thread([this, &thread] { live(thread); }).detach();
}

void Simulator::live(Thread& thread) {
  own_thread = thread.number;
  while (thread.may_run.exchange(0, std::memory_order_acquire) == 0) sleep_while(thread.may_run, 0);
  thread.body();
  thread.body = nullptr;
  thread.state = Thread::State::ended;
  Process& process = *processes_[static_cast<std::size_t>(thread.process)];
  if (thread.index == 0) end_process(process);
  wake(&thread, true);  // those who join it
  leave(thread, "ended");
}

// By the end of its first thread, or killed: its other threads are not heard of any more.
void Simulator::end_process(Process& process) {
  const auto lives = [&](const auto& thread) {
    return thread->process == process.number && thread->state != Thread::State::ended;
  };
  process.left = static_cast<int>(std::count_if(threads_.begin(), threads_.end(), lives));
  process.condition = core::ProcessCondition::gone;
}

Simulator::End Simulator::run() {
  core::installed_scheduler.store(this);
  for (std::size_t i = 0, mains = threads_.size(); i < mains; ++i) start(*threads_[i]);
  if (Thread* const first = choose()) rouse(first->may_run);
  while (is_over_.load(std::memory_order_acquire) == 0) sleep_while(is_over_, 0);
  core::installed_scheduler.store(nullptr);
  return end_;
}

void Simulator::finish(End end) {
  end_ = end;
  rouse(is_over_);
}

// ---- The choice

void Simulator::leave(Thread& self, std::string_view why) {
  self.why = why;
  if (wires_ != nullptr) wires_->take();
  const bool has_ended = self.state == Thread::State::ended;
  Thread* const next = choose();
  if (next == &self) return;
  if (next != nullptr) {
    ++switches_;
    rouse(next->may_run);
  }
  if (has_ended) return;  // the simulator may be gone, if the run is over
  while (self.may_run.exchange(0, std::memory_order_acquire) == 0) sleep_while(self.may_run, 0);
}

bool Simulator::can_go_on(const Thread& thread) const {
  if (thread.state == Thread::State::ended) return false;
  if (processes_[static_cast<std::size_t>(thread.process)]->condition != core::ProcessCondition::runs) return false;
  return thread.state == Thread::State::ready || thread.until <= now_;
}

// Null when the run is over.
Simulator::Thread* Simulator::choose() {
  now_ += nanoseconds(kLeastStep + random_.below(kMostStep - kLeastStep));
  if (++numbers_ > kMostTurns || now_ - kBegin > kMostTime) return finish(End::endless), nullptr;
  for (;;) {
    run_events();
    const auto is_gone = [](const auto& one) { return one->condition == core::ProcessCondition::gone; };
    if (std::all_of(processes_.begin(), processes_.end(), is_gone)) return finish(End::all_ended), nullptr;
    ready_.clear();
    for (const auto& thread : threads_) {
      if (can_go_on(*thread)) ready_.push_back(thread.get());
    }
    if (ready_.empty()) {
      const Time next = next_moment();
      if (next == Time::max()) return finish(End::stuck), nullptr;
      now_ = std::max(now_, next);
      continue;
    }
    Thread& chosen = *ready_[random_.below(ready_.size())];
    if (random_.one_in(kHesitatesOneIn)) {
      chosen.state = Thread::State::blocked;
      chosen.address = nullptr;
      chosen.until = now_ + nanoseconds(random_.skewed_below(nanoseconds(kLongestHesitation).count()));
      continue;
    }
    chosen.state = Thread::State::ready;
    trace_.add(ns_of(now_), chosen.process, chosen.index, chosen.why);
    return &chosen;
  }
}

// The moment at which something happens by itself.
Time Simulator::next_moment() const {
  Time next = events_.empty() ? Time::max() : events_.front().time;
  for (const auto& thread : threads_) {
    const bool runs = processes_[static_cast<std::size_t>(thread->process)]->condition == core::ProcessCondition::runs;
    if (runs && thread->state == Thread::State::blocked) next = std::min(next, thread->until);
  }
  return next;
}

// ---- Events

namespace {

constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.time != b.time ? a.time > b.time : a.number > b.number;
};

}  // namespace

void Simulator::at(Time time, std::function<void()> event) {
  events_.push_back({time, ++numbers_, std::move(event)});
  std::push_heap(events_.begin(), events_.end(), kLater);
}

void Simulator::run_events() {
  while (!events_.empty() && events_.front().time <= now_) {
    std::pop_heap(events_.begin(), events_.end(), kLater);
    const Event event = std::move(events_.back());
    events_.pop_back();
    event.run();
  }
}

void Simulator::kill(int process) {
  Process& one = *processes_[static_cast<std::size_t>(process)];
  if (one.condition == core::ProcessCondition::gone) return;
  note("kill", std::to_string(process));
  one.condition = core::ProcessCondition::gone;
}

void Simulator::stop(int process) {
  Process& one = *processes_[static_cast<std::size_t>(process)];
  if (one.condition != core::ProcessCondition::runs) return;
  note("stop", std::to_string(process));
  one.condition = core::ProcessCondition::stopped;
}

void Simulator::go_on(int process) {
  Process& one = *processes_[static_cast<std::size_t>(process)];
  if (one.condition != core::ProcessCondition::stopped) return;
  note("continue", std::to_string(process));
  one.condition = core::ProcessCondition::runs;
}

void Simulator::note(std::string_view what, std::string_view more) {
  trace_.add(ns_of(now_), own_thread < 0 ? -1 : current_process(), 0, what, more);
}

void Simulator::say_place(std::string place) {
  threads_[static_cast<std::size_t>(own_thread)]->place = std::move(place);
}

int Simulator::current_process() const noexcept {
  return own_thread < 0 ? -1 : threads_[static_cast<std::size_t>(own_thread)]->process;
}

core::ProcessCondition Simulator::state_of(int process) const noexcept {
  return processes_[static_cast<std::size_t>(process)]->condition;
}

int Simulator::left_threads(int process) const {
  return processes_[static_cast<std::size_t>(process)]->left;
}

std::string Simulator::places() const {
  std::string text;
  for (const auto& thread : threads_) {
    if (thread->state == Thread::State::ended) continue;
    const auto condition = processes_[static_cast<std::size_t>(thread->process)]->condition;
    const char* const how = condition == core::ProcessCondition::gone      ? ", its process has ended"
                            : condition == core::ProcessCondition::stopped ? ", stopped"
                                                                           : "";
    text += fmt::format("  {}.{} {}{}{}{}\n", thread->process, thread->index, thread->why,
                        thread->place.empty() ? "" : " in ", thread->place, how);
  }
  return text;
}

// ---- What the library asks for

std::chrono::system_clock::time_point Simulator::wall_now() noexcept {
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(now_.time_since_epoch()));
}

void Simulator::yield() noexcept {
  if (own_thread < 0) return;
  leave(*threads_[static_cast<std::size_t>(own_thread)], "yields");
}

void Simulator::may_yield() noexcept {
  if (own_thread < 0 || !chooses_at_free_locks_ || !random_.one_in(kLocksOneIn)) return;
  leave(*threads_[static_cast<std::size_t>(own_thread)], "locks");
}

// Longer than asked for, where it polls.
Time Simulator::stretched(Thread& thread, Time until) {
  const nanoseconds length = until - now_;
  if (length >= kLongestPoll || std::exchange(thread.progress, progress_) != progress_) {
    thread.poll = length;
    return until;
  }
  thread.poll = std::clamp<nanoseconds>(2 * thread.poll, length, kLongestPoll);
  return now_ + thread.poll;
}

void Simulator::block(const void* address, Time until) noexcept {
  if (own_thread < 0) return;
  Thread& self = *threads_[static_cast<std::size_t>(own_thread)];
  self.state = Thread::State::blocked;
  self.address = address;
  self.until = until == Time::max() ? until : stretched(self, until);
  leave(self, address == nullptr ? "sleeps" : "waits");
}

void Simulator::wake(const void* address, bool all) noexcept {
  std::vector<Thread*> waiting;
  for (const auto& thread : threads_) {
    const bool lives = processes_[static_cast<std::size_t>(thread->process)]->condition != core::ProcessCondition::gone;
    if (lives && thread->state == Thread::State::blocked && thread->address == address) waiting.push_back(thread.get());
  }
  if (waiting.empty()) return;
  const auto rouse_one = [](Thread& thread) {
    thread.state = Thread::State::ready;
    thread.address = nullptr;
  };
  if (all)
    for (Thread* const thread : waiting) rouse_one(*thread);
  else
    rouse_one(*waiting[random_.below(waiting.size())]);
}

int Simulator::poll(std::span<pollfd> descriptors, Time until) noexcept {
  Thread& self = *threads_[static_cast<std::size_t>(own_thread)];
  for (;;) {
    const int ready = ::poll(descriptors.data(), descriptors.size(), 0);
    now_ += nanoseconds(kLeastStep);  // who polls up to a deadline comes beyond it
    if (ready != 0 || now_ >= until) return ready;
    self.polls = descriptors;
    block(descriptors.data(), until);
    self.polls = {};
  }
}

void Simulator::look_at_polls() noexcept {
  for (const auto& thread : threads_) {
    if (thread->state != Thread::State::blocked || thread->polls.empty()) continue;
    if (::poll(thread->polls.data(), thread->polls.size(), 0) != 0) thread->state = Thread::State::ready;
  }
}

int Simulator::listen(const std::string& /*host*/, int port) {
  return wires_->listen(port);
}

int Simulator::connect(const std::string& /*host*/, int port) {
  return wires_->connect(port);
}

int Simulator::start_thread(std::function<void()> body) {
  Thread& thread = add_thread(current_process(), std::move(body));
  start(thread);
  return thread.number;
}

void Simulator::join_thread(int number) noexcept {
  Thread& other = *threads_[static_cast<std::size_t>(number)];
  look_at_polls();  // it may have been told to end
  while (other.state != Thread::State::ended) block(&other, Time::max());
}

core::ProcessState& Simulator::process() noexcept {
  if (own_thread < 0) return core::state_of_process;
  return processes_[static_cast<std::size_t>(current_process())]->state;
}

std::int64_t Simulator::pid() noexcept {
  return kFirstPid + current_process();
}

const core::Host& Simulator::host() noexcept {
  return processes_[static_cast<std::size_t>(current_process())]->host;
}

core::ProcessCondition Simulator::condition_of(std::int64_t pid) noexcept {
  const int process = process_of(pid);
  if (process < 0 || process >= static_cast<int>(processes_.size())) return core::ProcessCondition::gone;
  return state_of(process);
}

void Simulator::random(std::span<std::byte> bytes) noexcept {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_.next());
}

std::optional<std::string> Simulator::environment(const std::string& name) {
  const auto found = environment_.find(name);
  return found == environment_.end() ? std::nullopt : std::optional(found->second);
}

void Simulator::log(std::string_view line) noexcept {
  if (line.ends_with('\n')) line.remove_suffix(1);
  note("log", line);
}

}  // namespace col::test
