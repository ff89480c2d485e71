#include "launch/report/stacks.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "launch/processes/processes.hpp"
#include "unit/launch/fake_files.hpp"

using namespace col::launch;
using std::chrono::seconds;
using Clock = StackTaker::Clock;

namespace {

// A child that waits for good in a function of that name, so that its stack can be told.
[[gnu::noinline]] void wait_for_the_end_of_time() {
  while (true) ::pause();
}
[[gnu::noinline]] void wait_in_another_thread() {
  while (true) ::pause();
}

class Sleeper {
 public:
  explicit Sleeper(bool two_threads = false) {
    std::array<int, 2> ready{};
    REQUIRE(::pipe2(ready.data(), O_CLOEXEC) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_NAME, "sleeper");
      const auto tell = [&] { return ::write(ready[1], "x", 1) == 1; };
      if (two_threads) {
        std::thread([&] {
          ::prctl(PR_SET_NAME, "second");
          tell();
          wait_in_another_thread();
        }).detach();
      } else {
        tell();
      }
      tell();
      wait_for_the_end_of_time();
    }
    std::array<char, 1> byte{};
    for (int thread = 0; thread < 2; ++thread) REQUIRE(::read(ready[0], byte.data(), 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
    // What they have told, they have told before they sleep.
    const auto latest = Clock::now() + seconds(30);
    while (!all_sleep() && Clock::now() < latest) std::this_thread::yield();
    REQUIRE(all_sleep());
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t pid() const { return pid_; }
  char state() const { return state_in(fmt::format("/proc/{}/stat", pid_)); }

 private:
  static char state_in(const std::string& path) {
    const std::string line = col::test::content_of(path);
    return line.at(line.rfind(')') + 2);
  }
  bool all_sleep() const {
    const std::filesystem::directory_iterator tasks(fmt::format("/proc/{}/task", pid_));
    return std::all_of(begin(tasks), end(tasks),
                       [](const auto& task) { return state_in(task.path() / "stat") == 'S'; });
  }

  pid_t pid_ = 0;
};

struct OwnEvents {
  Events events;
};

struct Taker : OwnEvents, StackTaker {
  Taker(const std::vector<pid_t>& pids, Clock::time_point deadline, const Options& options = Options())
      : StackTaker(events, pids, deadline, options) {}
};

// Works as an event loop would, in which it is always `now`: a slow machine takes no time. Signals wake nobody: no
// child needs to be reaped.
std::vector<std::optional<Stack>> take_all(Taker& taker, Clock::time_point now = Clock::now()) {
  const auto latest = Clock::now() + seconds(90);  // gdb reads hundreds of megabytes of a program with a sanitizer
  while (const auto due = taker.deadline()) {
    REQUIRE(Clock::now() < latest);
    taker.events.serve(std::min<col::Duration>(*due - now, seconds(1)));
    taker.work(now);
  }
  REQUIRE(taker.finished());
  return taker.take();
}

std::string text_of(const std::optional<Stack>& stack) {
  if (!stack) return "(none)";
  std::string text = stack->source;
  for (const std::string& line : stack->lines) text += "\n" + line;
  return text;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A directory with programs that are called as debuggers are.
class Debuggers {
 public:
  void add(const std::string& name, const std::string& script) const {
    const std::string path = directory_ / name;
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    REQUIRE(::chmod(path.c_str(), 0700) == 0);
  }
  const std::string& path() const { return directory_.path(); }
  std::string read(const std::string& name) const { return col::test::content_of(directory_ / name); }
  // Waits until one of them has written a line there.
  std::string await_line(const std::string& name) const {
    const auto latest = Clock::now() + seconds(60);
    while (!read(name).ends_with('\n') && Clock::now() < latest) std::this_thread::yield();
    INFO(name);
    REQUIRE(read(name).ends_with('\n'));
    return read(name);
  }

 private:
  col::test::TempDir directory_;
};

StackTaker::Options with_path(const std::string& path) {
  StackTaker::Options options;
  options.path = path;
  return options;
}

constexpr const char* kNoDebugger = "/nonexistent";
constexpr std::chrono::milliseconds kTime{30'000};
const auto in_time = [] { return Clock::now() + kTime; };

bool is_installed(const char* program) {
  return ::access(fmt::format("/usr/bin/{}", program).c_str(), X_OK) == 0;
}

}  // namespace

TEST_CASE("stacks: without a debugger /proc says where a process is", "[launch]") {
  const Sleeper sleeper, other(true);
  Taker taker({sleeper.pid(), other.pid()}, in_time(), with_path(kNoDebugger));
  const auto stacks = take_all(taker);
  REQUIRE(stacks.size() == 2);
  INFO(text_of(stacks[0]) << "\n" << text_of(stacks[1]));
  REQUIRE(stacks[0]);
  CHECK(stacks[0]->source == "/proc");
  REQUIRE(stacks[0]->lines.size() == 1);
  CHECK(contains(stacks[0]->lines[0], fmt::format("thread {} \"sleeper\" sleeps", sleeper.pid())));
  REQUIRE(stacks[1]);
  REQUIRE(stacks[1]->lines.size() == 2);
  CHECK(contains(stacks[1]->lines[0], "\"sleeper\" sleeps"));
  CHECK(contains(stacks[1]->lines[1], "\"second\" sleeps"));
}

TEST_CASE("stacks: /proc names the system call, where it may be read", "[launch]") {
  const Sleeper sleeper;
  const bool readable = !col::test::content_of(fmt::format("/proc/{}/syscall", sleeper.pid())).empty();
  Taker taker({sleeper.pid()}, in_time(), with_path(kNoDebugger));
  const auto stacks = take_all(taker);
  INFO(text_of(stacks[0]));
  CHECK((contains(text_of(stacks[0]), "sleeps in pause") || contains(text_of(stacks[0]), "sleeps in ppoll")) ==
        readable);
}

TEST_CASE("stacks: /proc tells a stopped process from one that waits", "[launch]") {
  const Sleeper sleeper;
  REQUIRE(::kill(sleeper.pid(), SIGSTOP) == 0);
  int status = 0;
  REQUIRE(::waitpid(sleeper.pid(), &status, WUNTRACED) == sleeper.pid());
  Taker taker({sleeper.pid()}, in_time(), with_path(kNoDebugger));
  CHECK(contains(text_of(take_all(taker)[0]), "\"sleeper\" is stopped by a signal"));
}

TEST_CASE("stacks: a process that has ended has none", "[launch]") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  const Sleeper sleeper;
  Taker taker({child, sleeper.pid()}, in_time(), with_path(kNoDebugger));
  const auto stacks = take_all(taker);
  CHECK_FALSE(stacks[0]);
  CHECK(stacks[1]);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("stacks: gdb shows functions, threads in their order", "[launch][rest]") {
  INFO("install gdb");
  REQUIRE(is_installed("gdb"));
  const Sleeper sleeper(true);
  Taker taker({sleeper.pid()}, in_time());
  const auto stacks = take_all(taker);
  const std::string text = text_of(stacks[0]);
  INFO(text);
  REQUIRE(stacks[0]);
  REQUIRE(stacks[0]->source == "gdb");
  CHECK(stacks[0]->lines.front().starts_with("Thread 1 "));
  CHECK(stacks[0]->lines.size() <= 40);
  const std::size_t first = text.find("wait_for_the_end_of_time"), second = text.find("wait_in_another_thread");
  CHECK(first < second);
  CHECK(second != std::string::npos);
  for (const char* chatter : {"[New LWP", "[Thread debugging", "[Inferior", "warning", "detached"})
    CHECK_FALSE(contains(text, chatter));
  // It goes on.
  const auto latest = in_time();
  while (sleeper.state() != 'S' && Clock::now() < latest) std::this_thread::yield();
  CHECK(sleeper.state() == 'S');
}

TEST_CASE("stacks: eu-stack where there is no gdb", "[launch][rest]") {
  INFO("install elfutils");
  REQUIRE(is_installed("eu-stack"));
  const Debuggers debuggers;
  REQUIRE(::symlink("/usr/bin/eu-stack", (debuggers.path() + "/eu-stack").c_str()) == 0);
  const Sleeper sleeper;
  Taker taker({sleeper.pid()}, in_time(), with_path(debuggers.path()));
  const auto stacks = take_all(taker);
  INFO(text_of(stacks[0]));
  REQUIRE(stacks[0]);
  CHECK(stacks[0]->source == "eu-stack");
  CHECK(stacks[0]->lines.front() == fmt::format("TID {}:", sleeper.pid()));
  CHECK(contains(text_of(stacks[0]), "#0  "));
}

TEST_CASE("stacks: a debugger that fails is followed by the next", "[launch]") {
  const Debuggers debuggers;
  debuggers.add("gdb", "echo 'ptrace: Operation not permitted.'; exit 1");
  const Sleeper sleeper;
  SECTION("eu-stack") {
    debuggers.add("eu-stack", "echo \"PID $4 - process\"; echo \"TID $4:\"; echo '#0  0x0012 work'");
    Taker taker({sleeper.pid()}, in_time(), with_path(debuggers.path()));
    CHECK(text_of(take_all(taker)[0]) == fmt::format("eu-stack\nTID {}:\n#0  work", sleeper.pid()));
  }
  SECTION("/proc") {
    debuggers.add("eu-stack", "exit 1");
    Taker taker({sleeper.pid()}, in_time(), with_path(debuggers.path()));
    CHECK(take_all(taker)[0].value().source == "/proc");
  }
  SECTION("one that is no program at all") {
    debuggers.add("eu-stack", "");
    std::ofstream(debuggers.path() + "/gdb", std::ios::trunc) << "\x7f"
                                                                 "ELF";
    Taker taker({sleeper.pid()}, in_time(), with_path(debuggers.path()));
    CHECK(take_all(taker)[0].value().source == "/proc");
  }
}

TEST_CASE("stacks: a debugger that hangs is killed with what it started, and /proc is asked", "[launch]") {
  const Debuggers debuggers;
  debuggers.add("gdb", "echo $$ >\"${0%/*}/gdb.pid\"; sleep 1000 & echo $! >\"${0%/*}/child.pid\"; wait");
  const Sleeper sleeper;
  StackTaker::Options options = with_path(debuggers.path());
  SECTION("each has a time of its own") {}
  SECTION("and there is one for all") {
    options.per_process = 2 * kTime;
  }
  Taker taker({sleeper.pid()}, in_time(), options);
  const std::array<std::string, 2> pids = {debuggers.await_line("gdb.pid"), debuggers.await_line("child.pid")};
  const auto due = taker.deadline();
  REQUIRE(due);
  taker.work(*due - std::chrono::milliseconds(1));
  CHECK(taker.deadline() == due);
  const auto stacks = take_all(taker, *due);
  REQUIRE(stacks[0]);
  CHECK(stacks[0]->source == "/proc");
  for (const std::string& pid : pids) {
    const auto latest = Clock::now() + seconds(20);
    const auto is_gone = [&] {
      const std::string line = col::test::content_of(fmt::format("/proc/{}/stat", std::stoi(pid)));
      return line.empty() || contains(line, ") Z ");
    };
    while (!is_gone() && Clock::now() < latest) std::this_thread::yield();
    CHECK(is_gone());
  }
}

TEST_CASE("stacks: what a slow debugger has said is kept", "[launch]") {
  const Debuggers debuggers;
  debuggers.add("gdb",
                "echo 'Thread 1 (LWP 7):'; echo '#0  0x0000000000000001 in work ()'; echo yes >\"${0%/*}/said\"; "
                "exec sleep 1000");
  const Sleeper sleeper;
  Taker taker({sleeper.pid()}, in_time(), with_path(debuggers.path()));
  debuggers.await_line("said");
  CHECK(text_of(take_all(taker, *taker.deadline())[0]) == "gdb\nThread 1 (LWP 7):\n#0  work ()");
}

TEST_CASE("stacks: a few processes at most, and a few debuggers at once", "[launch]") {
  const Debuggers debuggers;
  // Each counts those that are there with it.
  debuggers.add(
      "gdb",
      "d=${0%/*}; : >\"$d/run.$$\"; ls \"$d\" | grep -c '^run' >>\"$d/counts\"; echo '#0  f ()'; rm \"$d/run.$$\"");
  const Sleeper sleeper;
  Taker taker(std::vector<pid_t>(10, sleeper.pid()), in_time(), with_path(debuggers.path()));
  const auto stacks = take_all(taker);
  REQUIRE(stacks.size() == 10);
  for (std::size_t index = 0; index < stacks.size(); ++index) CHECK(stacks[index].has_value() == (index < 8));
  const std::string counts = debuggers.read("counts");
  CHECK(std::count(counts.begin(), counts.end(), '\n') == 8);
  CHECK(counts.find_first_not_of("12\n") == std::string::npos);
}

TEST_CASE("stacks: time that is up already gives nothing, and nobody waits", "[launch]") {
  const Sleeper sleeper;
  Taker taker({sleeper.pid()}, Clock::now(), with_path(kNoDebugger));
  CHECK(taker.finished());
  CHECK_FALSE(taker.take()[0]);
  Taker none({}, in_time());
  CHECK(none.finished());
}

TEST_CASE("stacks: a debugger gets no blocked signals, no descriptors and no settings of the user", "[launch]") {
  const Debuggers debuggers;
  debuggers.add("gdb",
                "{ echo \"home=$HOME\"; grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd; } "
                ">\"${0%/*}/seen\"; echo '#0  f ()'");
  const Sleeper sleeper;
  std::array<int, 2> held{};
  REQUIRE(::pipe(held.data()) == 0);  // not close-on-exec
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  const auto old = ::signal(SIGUSR2, SIG_IGN);
  {
    Taker taker({sleeper.pid()}, in_time(), with_path(debuggers.path()));
    CHECK(text_of(take_all(taker)[0]) == "gdb\n#0  f ()");
  }
  ::signal(SIGUSR2, old);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(held[0]);
  ::close(held[1]);
  const std::string seen = debuggers.read("seen");
  INFO(seen);
  CHECK(contains(seen, "home=\n"));
  CHECK(contains(seen, "SigBlk:\t0000000000000000"));
  CHECK(contains(seen, "SigIgn:\t0000000000000000"));
  CHECK_FALSE(contains(seen, fmt::format("\n{}\n", held[1])));
}

TEST_CASE("stacks: whoever ends it early has no child left of it", "[launch]") {
  const Debuggers debuggers;
  debuggers.add("gdb", "exec sleep 1000");
  const Sleeper sleeper, other;
  { Taker taker({sleeper.pid(), other.pid()}, in_time(), with_path(debuggers.path())); }
  std::vector<pid_t> children;
  for (const ProcessInfo& child : children_of(::getpid())) children.push_back(child.pid);
  std::sort(children.begin(), children.end());
  CHECK(children == std::vector<pid_t>{std::min(sleeper.pid(), other.pid()), std::max(sleeper.pid(), other.pid())});
}

TEST_CASE("stacks: somebody else may reap its children", "[launch]") {
  const Debuggers debuggers;
  debuggers.add("gdb", "echo '#0  f ()'");
  const Sleeper sleeper;
  Taker taker(std::vector<pid_t>(4, sleeper.pid()), in_time(), with_path(debuggers.path()));
  const auto latest = Clock::now() + seconds(60);
  while (!taker.finished() && Clock::now() < latest) {
    taker.events.serve(std::chrono::milliseconds(10));
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    taker.work(Clock::now());
  }
  REQUIRE(taker.finished());
  for (const auto& stack : taker.take()) CHECK(text_of(stack) == "gdb\n#0  f ()");
}

TEST_CASE("stacks: what gdb prints is cut down to threads and frames", "[launch]") {
  constexpr const char* kOutput =
      "[New LWP 12]\n"
      "[Thread debugging using libthread_db enabled]\n"
      "0x00007f84fd553e53 in nanosleep () from /lib/libc.so.6\n"
      "\n"
      "Thread 1 (Thread 0x7f84fd47d740 (LWP 11) \"sleep\"):\n"
      "#0  0x00007f84fd553e53 in nanosleep (req=0x7ffe) at nanosleep.c:25\n"
      "#1  0x000056100664b4af in ?? ()\n"
      "#2  main () at main.c:1\n"
      "42\tmain.c: No such file or directory.\n"
      "\n"
      "Thread 2 (Thread 0x7f84fd47d741 (LWP 12) \"x\x1b[31m\"):\n"
      "#0  work () at w.c:2\n"
      "[Inferior 1 (process 11) detached]\n";
  const std::vector<std::string> lines = trim_stack(kOutput, 40);
  CHECK(lines ==
        std::vector<std::string>{
            "Thread 1 (Thread 0x7f84fd47d740 (LWP 11) \"sleep\"):", "#0  nanosleep (req=0x7ffe) at nanosleep.c:25",
            "#1  0x000056100664b4af in ?? ()", "#2  main () at main.c:1",
            "Thread 2 (Thread 0x7f84fd47d741 (LWP 12) \"x\\x1b[31m\"):", "#0  work () at w.c:2"});
  CHECK(trim_stack(kOutput, 3) == std::vector<std::string>{lines[0], lines[1], "(4 more lines)"});
  CHECK(trim_stack("#0  " + std::string(5000, 'x'), 40)[0].size() == 400);
}

TEST_CASE("stacks: what eu-stack prints is cut down likewise", "[launch]") {
  CHECK(trim_stack("PID 1 - process\nTID 1:\n#0  0x00007f84fd54f503 poll@GLIBC_2.2.5\n#1  0x000056100664b4af\n", 40) ==
        std::vector<std::string>{"TID 1:", "#0  poll@GLIBC_2.2.5", "#1  0x000056100664b4af"});
}

TEST_CASE("stacks: output without a frame is no stack", "[launch]") {
  for (const char* text :
       {"", "\n", "#", "# 1", "Thread 1 (LWP 3):\n", "ptrace: Operation not permitted.\n", "0x12 in f ()"})
    CHECK(trim_stack(text, 40).empty());
  for (const char* text : {"#0", "#0 ", "#0  0x", "#0  0x12", "#0  0x12 ", "#0  0x12 in "})
    CHECK(trim_stack(text, 40).size() == 1);
}

TEST_CASE("stacks: two that differ in addresses and numbers of threads only have one key", "[launch]") {
  CHECK(stack_key({"Thread 1 (Thread 0x7f (LWP 11)):", "#0  f (x=0xab, n=3)"}) ==
        stack_key({"Thread 1 (Thread 0x12345 (LWP 4711)):", "#0  f (x=0x0, n=3)"}));
  CHECK(stack_key({"thread 7 \"x\" sleeps in poll"}) == stack_key({"thread 88 \"x\" sleeps in poll"}));
  CHECK(stack_key({"TID 7:"}) == stack_key({"TID 8:"}));
  CHECK(stack_key({"#0  f (n=3)"}) != stack_key({"#0  f (n=4)"}));
  CHECK(stack_key({"a", "b"}) != stack_key({"ab"}));
}
