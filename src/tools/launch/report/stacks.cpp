#include "launch/report/stacks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "launch/processes/program.hpp"
#include "launch/processes/signals.hpp"

namespace col::launch {
namespace {

using std::chrono::milliseconds;
using tools::UniqueFd;

constexpr std::size_t kMaxOutputBytes = 1024 * 1024;
// Frames of one thread that a debugger is asked for.
constexpr const char* kMaxFrames = "32";
// What is kept for /proc of the time in all, at most.
constexpr milliseconds kForProc{1000};
// How long the destructor waits for a child that it has killed. This ends at once, except for a debugger that is stuck
// in the kernel.
constexpr milliseconds kReapWait{500};

// "" when there is no such program in `path`.
std::string find_program(const std::string& name, std::string_view path) {
  while (!path.empty()) {
    const std::string_view folder = take(path, ':');
    const std::string file = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// The process group goes with it. Its number cannot be another's: the process is not reaped where signal 0 reaches it.
void kill_group(pid_t pid, int pidfd) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0) == 0) ::kill(-pid, SIGKILL);
}

// False when it is still there.
bool reap(int pidfd) {
  siginfo_t info{};
  return ::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) != 0 || info.si_pid != 0;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

StackTaker::StackTaker(Events& events, const std::vector<pid_t>& pids, Clock::time_point deadline,
                       const Options& options)
    : options_(options),
      deadline_(deadline),
      events_(events, [this](std::size_t pipe) { on_output(static_cast<int>(pipe)); }),
      stacks_(pids.size()) {
  const char* given = std::getenv("PATH");
  const std::string path = !options.path.empty() ? options.path : given != nullptr ? given : "/usr/bin:/bin";
  gdb_ = find_program("gdb", path);
  eu_stack_ = find_program("eu-stack", path);
  const auto now = Clock::now();
  const auto for_proc = std::min<Clock::duration>(kForProc, std::max(deadline - now, Clock::duration(0)) / 4);
  debuggers_until_ = deadline - for_proc;
  for (const pid_t pid : pids) {
    Process process{pid, {}};
    if (processes_.size() < options_.most_processes) {
      if (!gdb_.empty()) process.ways.push_back(Way::gdb);
      if (!eu_stack_.empty()) process.ways.push_back(Way::eu_stack);
      process.ways.push_back(Way::proc);
    }
    processes_.push_back(std::move(process));
  }
  keep_time(now);
  start_more(now);
}

StackTaker::~StackTaker() {
  for (Child& child : children_) give_up(child);
  const auto latest = Clock::now() + kReapWait;
  for (const UniqueFd& pidfd : ending_) {
    pollfd event{pidfd.get(), POLLIN, 0};
    core::poll_for({&event, 1}, latest - Clock::now());
    reap(pidfd.get());
  }
}

bool StackTaker::finished() const noexcept {
  return std::ranges::all_of(processes_,
                             [](const Process& process) { return process.ways.empty() && !process.running; });
}

std::vector<std::optional<Stack>> StackTaker::take() {
  return std::exchange(stacks_, std::vector<std::optional<Stack>>(processes_.size()));
}

std::vector<std::pair<pid_t, Stack>> StackTaker::take_by_pid() {
  std::vector<std::pair<pid_t, Stack>> found;
  for (std::size_t i = 0; i < stacks_.size(); ++i) {
    if (stacks_[i]) found.emplace_back(processes_[i].pid, *std::move(stacks_[i]));
  }
  return found;
}

void StackTaker::on_output(int pipe) {
  const auto child = std::ranges::find_if(children_, [&](const Child& c) { return c.pipe.get() == pipe; });
  if (child == children_.end() || read(*child)) return;
  finish(*child);
  children_.erase(child);
}

void StackTaker::work(Clock::time_point now) {
  keep_time(now);
  start_more(now);
}

void StackTaker::start_more(Clock::time_point now) {
  for (std::size_t index = 0; index < processes_.size() && children_.size() < options_.at_once; ++index) {
    Process& process = processes_[index];
    while (!process.running && !process.ways.empty() && !start(index, now)) process.ways.pop_front();
  }
}

// Starts the next way for that process; false when it could not be.
bool StackTaker::start(std::size_t index, Clock::time_point now) {
  Process& process = processes_[index];
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  UniqueFd pipe(ends[0]), output(ends[1]);
  ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  if (!events_.add(pipe.get(), EPOLLIN, static_cast<std::size_t>(pipe.get()))) return false;
  const Way way = process.ways.front();
  const pid_t pid =
      way == Way::proc ? spawn_proc_reader(process.pid, output.get()) : spawn_debugger(way, process.pid, output.get());
  if (pid < 0) return false;
  UniqueFd pidfd = open_pidfd(pid);
  if (!pidfd) {  // it could not be ended in time; nobody else has reaped it yet
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return false;
  }
  Child child{.process = index,
              .way = way,
              .pid = pid,
              .pidfd = std::move(pidfd),
              .pipe = std::move(pipe),
              .text = {},
              .until = std::min(now + options_.per_process, way == Way::proc ? deadline_ : debuggers_until_)};
  process.ways.pop_front();
  process.running = true;
  children_.push_back(std::move(child));
  return true;
}

pid_t StackTaker::spawn_debugger(Way way, pid_t pid, int output) const {
  const std::string number = fmt::to_string(pid);
  // The main thread first. No settings of the user's, no look for symbols on the network.
  std::vector<std::string> words;
  if (way == Way::gdb)
    words = {gdb_, "-nx", "-batch", "-p", number, "-ex", fmt::format("thread apply all -ascending bt {}", kMaxFrames)};
  else
    words = {eu_stack_, "-n", kMaxFrames, "-p", number};
  const char* path = std::getenv("PATH");
  std::vector<std::string> settings = {fmt::format("PATH={}", path != nullptr ? path : "/usr/bin:/bin"),
                                       "LC_ALL=C.UTF-8", "TERM=dumb"};
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> environment = pointers_to(settings);
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return -1;
  rlimit open_files{};
  ::getrlimit(RLIMIT_NOFILE, &open_files);
  const std::vector<int> changed = changed_signals();
  return spawn({.path = words.front().c_str(),
                .arguments = arguments.data(),
                .environment = environment.data(),
                .descriptors = {.stdin_fd = null.get(), .stdout_fd = output, .stderr_fd = null.get()},
                .keep_fds = {},
                .open_files = open_files,
                .changed_signals = changed})
      .pid;
}

// A fork without exec: what it reads in /proc may hold it up, and must not hold up the caller.
pid_t StackTaker::spawn_proc_reader(pid_t pid, int output) const {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(output, STDOUT_FILENO);
  ::close_range(STDERR_FILENO, ~0U, 0);
  for (const std::string& line : proc_stack(pid, options_.most_lines)) write_all(STDOUT_FILENO, line + "\n");
  ::_exit(0);
}

bool StackTaker::read(Child& child) {
  std::array<char, 64 * 1024> buffer;
  while (true) {
    const ssize_t length = ::read(child.pipe.get(), buffer.data(), buffer.size());
    if (length < 0) return errno == EAGAIN || errno == EINTR;
    if (length == 0) return false;
    const std::size_t room = kMaxOutputBytes - child.text.size();
    child.text.append(buffer.data(), std::min(static_cast<std::size_t>(length), room));
  }
}

// A child has said all that it will say.
void StackTaker::finish(Child& child) {
  Process& process = processes_[child.process];
  process.running = false;
  // Not left to the close: a child that was born meanwhile may hold the pipe for a moment.
  events_.remove(child.pipe.get());
  if (!reap(child.pidfd.get())) ending_.push_back(std::move(child.pidfd));
  Stack stack;
  if (child.way == Way::proc) {
    stack.source = "/proc";
    for (std::string_view rest = child.text; rest.find('\n') != std::string_view::npos;)
      stack.lines.emplace_back(tools::take(rest, '\n'));
  } else {
    stack.source = child.way == Way::gdb ? "gdb" : "eu-stack";
    stack.lines = trim_stack(child.text, options_.most_lines);
  }
  if (stack.lines.empty()) return;
  stacks_[child.process] = std::move(stack);
  process.ways.clear();
}

// Its time is over. What it has said so far may do.
void StackTaker::give_up(Child& child) {
  kill_group(child.pid, child.pidfd.get());
  read(child);
  Process& process = processes_[child.process];
  // One debugger was too slow, so the next would be.
  if (child.way != Way::proc) process.ways = {Way::proc};
  finish(child);
}

void StackTaker::keep_time(Clock::time_point now) {
  for (Child& child : children_) {
    if (child.until <= now) give_up(child);
  }
  std::erase_if(children_, [&](const Child& child) { return child.until <= now; });
  for (Process& process : processes_) {
    if (now >= debuggers_until_ && !process.ways.empty()) process.ways = {Way::proc};
    if (now >= deadline_) process.ways.clear();
  }
}

std::optional<StackTaker::Clock::time_point> StackTaker::deadline() const {
  if (finished()) return std::nullopt;
  Clock::time_point next = deadline_;
  for (const Child& child : children_) next = std::min(next, child.until);
  return next;
}

void take_stacks(const std::vector<RankStory*>& ranks, std::size_t most_processes) {
  std::vector<RankStory*> alive;
  std::vector<pid_t> pids;
  for (RankStory* rank : ranks) {
    const bool gone = rank->status.exited || (rank->last && rank->last->gone);
    if (rank->status.pid == 0 || gone) continue;
    alive.push_back(rank);
    pids.push_back(rank->last && rank->last->pid != 0 ? static_cast<pid_t>(rank->last->pid) : rank->status.pid);
  }
  Events events;
  StackTaker taker(events, pids, StackTaker::Clock::now() + StackTaker::kUsualTime, {.most_processes = most_processes});
  while (const auto due = taker.deadline()) {
    events.serve(*due - StackTaker::Clock::now());
    taker.work(StackTaker::Clock::now());
  }
  std::vector<std::optional<Stack>> stacks = taker.take();
  for (std::size_t i = 0; i < stacks.size(); ++i) alive[i]->stack = std::move(stacks[i]);
}

}  // namespace col::launch
