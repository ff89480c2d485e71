#include "launch/processes/processes.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

#include "support/catch.hpp"

using namespace col::launch;
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
  CHECK(children_of(child).size() == 1);
  CHECK(kill_children(0, soon()) == 0);
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
