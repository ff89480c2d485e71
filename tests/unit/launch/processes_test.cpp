#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/events.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/processes/processes.hpp"
#include "launch/watcher.hpp"
#include "support/catch.hpp"
#include "support/jumping_time.hpp"
#include "support/temp_dir.hpp"

using namespace col::launch;
using col::launch::read_error_file;
using col::launch::read_error_files;
using col::launch::read_torch_error_file;
using std::chrono::seconds;

namespace {

const auto soon = [] { return std::chrono::steady_clock::now() + seconds(20); };

// SIGCHLD must be blocked for kill_children to wait for it; orphans must come to us.
struct Guardian {
  Guardian() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, &before);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  ~Guardian() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
  }
  sigset_t before;
};

// A child with a detached grandchild; returns once both are there.
pid_t start_family() {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::fork() == 0) {
      ::setsid();
      ::signal(SIGTERM, SIG_IGN);
    }
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

}  // namespace

TEST_CASE("processes: children are found, and only direct ones", "[launch]") {
  Guardian guardian;
  CHECK(has_no_children());
  const pid_t child = start_family();
  CHECK_FALSE(has_no_children());
  const auto children = children_of(::getpid());
  REQUIRE(children.size() == 1);
  CHECK(children[0].pid == child);
  CHECK(children[0].parent == ::getpid());
  CHECK(children[0].start_ticks >= read_process(::getpid()).start_ticks);
  REQUIRE(children_of(child).size() == 1);
  CHECK(descendants_of(::getpid()) == std::vector<pid_t>{child, children_of(child)[0].pid});
  CHECK(descendants_of(child) == std::vector<pid_t>{children_of(child)[0].pid});
  CHECK(kill_children(0, soon()) == 0);
  CHECK(descendants_of(::getpid()).empty());
}

TEST_CASE("processes: killing takes detached descendants with it", "[launch]") {
  Guardian guardian;
  const pid_t child = start_family();
  const auto grandchildren = children_of(child);
  REQUIRE(grandchildren.size() == 1);
  CHECK(kill_children(0, soon()) == 0);
  CHECK(has_no_children());
  CHECK(read_process(grandchildren[0].pid).start_ticks != grandchildren[0].start_ticks);
}

TEST_CASE("processes: older children of the caller are left alone", "[launch]") {
  Guardian guardian;
  const pid_t child = start_family();
  const auto started = read_process(child).start_ticks;
  CHECK(kill_children(started + 1, soon()) == 0);
  CHECK(::kill(child, 0) == 0);
  CHECK(kill_children(started, soon()) == 0);
  CHECK(has_no_children());
}

TEST_CASE("processes: children that are to be kept stay, with what they started, and nobody waits for them",
          "[launch]") {
  Guardian guardian;
  const pid_t kept = start_family();
  const pid_t other = start_family();
  const pid_t list[] = {kept};
  const auto began = std::chrono::steady_clock::now();
  CHECK(kill_children(0, soon(), list) == 0);
  CHECK(std::chrono::steady_clock::now() - began < seconds(15));
  CHECK(::kill(kept, 0) == 0);
  CHECK(children_of(kept).size() == 1);
  CHECK(read_process(other).parent != ::getpid());
  CHECK(kill_children(0, soon()) == 0);
  CHECK(has_no_children());
}

TEST_CASE("processes: a name with brackets and spaces does not confuse the reader", "[launch]") {
  char before[16];
  ::prctl(PR_GET_NAME, before);
  ::prctl(PR_SET_NAME, "a) S 1 (b) 2");
  const ProcessInfo info = read_process(::getpid());
  ::prctl(PR_SET_NAME, before);
  CHECK(info.pid == ::getpid());
  CHECK(info.parent == ::getppid());
  CHECK(read_process(0).pid == 0);
}

TEST_CASE("events: are handled in the order in which they happened, and what is there takes no time", "[launch]") {
  col::test::JumpingTime time;
  const auto begin = time.now();
  Events events;
  std::array<PipeEnds, 3> pipes = {make_output_pipe(), make_output_pipe(), make_output_pipe()};
  std::vector<std::size_t> seen;
  EventSource source(events, [&](std::size_t index) { seen.push_back(index); });
  for (std::size_t i = 0; i < pipes.size(); ++i) source.add_readable(pipes[i].read.get(), i);
  events.serve({});
  CHECK(time.now() == begin);
  events.serve(seconds(300));
  CHECK(seen.empty());
  CHECK(time.now() - begin == seconds(300));
  for (const std::size_t i : {2, 0, 1}) REQUIRE(::write(pipes[i].write.get(), "x", 1) == 1);
  events.serve(seconds(300));
  CHECK(seen == std::vector<std::size_t>{2, 0, 1});
  CHECK(time.now() - begin == seconds(300));
}

TEST_CASE("events: each part hears of its own, and of none when it or its descriptor is gone", "[launch]") {
  Events events;
  const PipeEnds one = make_output_pipe(), other = make_output_pipe();
  REQUIRE(::write(one.write.get(), "x", 1) == 1);
  REQUIRE(::write(other.write.get(), "x", 1) == 1);
  std::vector<std::string> heard;
  std::optional<EventSource> second;
  EventSource first(events, [&](std::size_t) {
    heard.emplace_back("first");
    second.reset();  // whose event is already taken
  });
  second.emplace(events, [&](std::size_t) { heard.emplace_back("second"); });
  first.add_readable(one.read.get());
  second->add_readable(other.read.get());
  events.serve({});
  CHECK(heard == std::vector<std::string>{"first"});
  // Its descriptor is still there. Another part must not be taken for it.
  second.emplace(events, [&](std::size_t) { heard.emplace_back("third"); });
  first.remove(one.read.get());
  events.serve({});
  CHECK(heard == std::vector<std::string>{"first"});
  CHECK_FALSE(first.add(-1, EPOLLIN));
  CHECK_THROWS_AS(first.add_readable(-1), LaunchError);
}

TEST_CASE("leftovers: shared memory that nobody has open is removed, everything else stays", "[launch]") {
  col::test::TempDir directory;
  const std::string stale = directory / ("col-" + std::string(32, 'a'));
  const std::string open = directory / ("col-" + std::string(32, 'b'));
  const std::vector<std::string> others = {directory / "col-abc", directory / ("col-" + std::string(33, 'a')),
                                           directory / ("col-" + std::string(32, 'g')),
                                           directory / ("xol-" + std::string(32, 'a'))};
  for (const std::string& path : others) std::ofstream(path) << "x";
  std::ofstream(stale) << "x";
  std::ofstream(open) << "x";
  const std::string link = directory / ("col-" + std::string(32, 'c'));
  std::filesystem::create_symlink(others[0], link);
  const std::string folder = directory / ("col-" + std::string(32, 'd'));
  std::filesystem::create_directory(folder);
  {
    const col::tools::UniqueFd held(::open(open.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(held);
    CHECK(remove_leftover_shared_memory(directory.path()) == std::vector<std::string>{stale});
  }
  CHECK_FALSE(std::filesystem::exists(stale));
  for (const std::string& path : others) CHECK(std::filesystem::exists(path));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(std::filesystem::exists(folder));
  CHECK(remove_leftover_shared_memory(directory.path()) == std::vector<std::string>{open});
  CHECK(remove_leftover_shared_memory(directory / "missing").empty());
}

TEST_CASE("error file: tells causes from their consequences", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/error.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
    return read_error_file(path);
  };
  for (const char* code : {"peer_lost", "aborted"}) {
    const auto error = read(std::string(R"({"code":")") + code + R"(","rank":2,"group":"g","message":"m"})");
    REQUIRE(error);
    CHECK(error->is_collateral());
  }
  const auto mismatch = read(R"({"code":"mismatch","message":"two\nlines"})");
  REQUIRE(mismatch);
  CHECK_FALSE(mismatch->is_collateral());
  CHECK(mismatch->message == "two lines");
}

TEST_CASE("error file: anything else counts as not written", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/error.json";
  CHECK_FALSE(read_error_file(path));
  for (const char* text : {"", "{", "[]", "7", "null", R"({"code":7})", R"({"message":"m"})"}) {
    std::ofstream(path, std::ios::trunc) << text;
    CHECK_FALSE(read_error_file(path));
  }
  const std::string fifo = directory.path() + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_FALSE(read_error_file(fifo));  // and does not wait for a writer
}

TEST_CASE("error file: torch's is read, too", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/torch.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
    return read_torch_error_file(path);
  };
  const auto error = read(R"({"message":{"message":"RuntimeError: boom\nat once",
                          "extraInfo":{"py_callstack":"Traceback …","timestamp":"1785578400"}}})");
  REQUIRE(error);
  CHECK(error->code.empty());
  CHECK(error->message == "RuntimeError: boom at once");
  CHECK_FALSE(error->is_collateral());
  const auto plain = read(R"({"message":"Signal 15 (SIGTERM) received"})");
  REQUIRE(plain);
  CHECK(plain->message == "Signal 15 (SIGTERM) received");
  // A long stack, as of a deep network.
  const auto deep =
      read(R"({"message":{"message":"m","extraInfo":{"py_callstack":")" + std::string(300'000, 'x') + R"("}}})");
  REQUIRE(deep);
  CHECK(deep->message == "m");
  for (const char* text :
       {"", "{", "[]", R"({"message":7})", R"({"message":{}})", R"({"message":{"message":[]}})", R"({"message":""})"})
    CHECK_FALSE(read(text));
}

TEST_CASE("error file: a rank's own word counts more than torch's", "[launch]") {
  const col::test::TempDir directory;
  const std::string own = directory.path() + "/own.json", torch = directory.path() + "/torch.json";
  CHECK_FALSE(read_error_files(own, torch));
  std::ofstream(torch) << R"({"message":{"message":"RuntimeError: peer_lost: …"}})";
  REQUIRE(read_error_files(own, torch));
  CHECK(read_error_files(own, torch)->code.empty());
  std::ofstream(own) << R"({"code":"peer_lost","message":"m"})";
  REQUIRE(read_error_files(own, torch));
  CHECK(read_error_files(own, torch)->is_collateral());
}

TEST_CASE("error file: what would not fit a line is cut, and control characters are shown", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/error.json";
  std::ofstream(path) << R"({"code":"io","message":"\u001b[31m)" << std::string(5000, 'x') << "\"}";
  const auto error = read_error_file(path);
  REQUIRE(error);
  CHECK(error->message.size() == 2000);
  CHECK(error->message.find("\\x1b[31mxx") == 0);
}

TEST_CASE("shared report: what a child has published its parent reads whole, else nothing", "[launch]") {
  SharedReport report;
  JobResult result;
  result.exit_code = 77;
  CHECK_FALSE(report.read(result));
  CHECK(result.exit_code == 77);
  const pid_t child = ::fork();
  if (child == 0) {
    JobResult mine;
    mine.exit_code = 3;
    mine.signal = 15;
    mine.cause = EndCause::node_lost;
    mine.culprit = 9;
    mine.error = "why";
    report.publish(mine);
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  REQUIRE(report.read(result));
  CHECK(result.exit_code == 3);
  CHECK(result.signal == 15);
  CHECK(result.cause == EndCause::node_lost);
  CHECK(result.culprit == 9);
  CHECK(result.error == "why");
}

TEST_CASE("shared report: a long error is cut, not written beyond its place", "[launch]") {
  SharedReport report;
  JobResult result;
  result.error = std::string(100'000, 'x');
  report.publish(result);
  JobResult read;
  REQUIRE(report.read(read));
  CHECK(read.error.size() >= 512);
  CHECK(read.error == result.error.substr(0, read.error.size()));
}
