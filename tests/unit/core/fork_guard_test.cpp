// Which process an object was made in, seen by parents and children.
#include <sys/wait.h>
#include <unistd.h>

#include "core/fork_guard.hpp"
#include "support/catch.hpp"

using col::core::ForkGuard;

namespace {

// Runs `body` in a forked child; returns what it returns there.
template <class Body>
bool in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("fork guard: only what was made before the fork is of another process, in every generation", "[core]") {
  const ForkGuard before;
  CHECK_FALSE(before.is_forked_child());
  CHECK(in_child([&] { return before.is_forked_child(); }));
  CHECK(in_child([&] {
    const ForkGuard own;
    if (own.is_forked_child() || !before.is_forked_child()) return false;
    const bool as_it_should = in_child([&] {
      if (!own.is_forked_child() || !before.is_forked_child()) return false;
      const ForkGuard inner;
      return !inner.is_forked_child() && own.is_forked_child() && before.is_forked_child();
    });
    const ForkGuard after;
    return as_it_should && !own.is_forked_child() && !after.is_forked_child();
  }));
  // A child that makes none, and its child.
  CHECK(in_child([&] {
    return in_child([&] {
      const ForkGuard own;
      return !own.is_forked_child() && before.is_forked_child();
    });
  }));
  const ForkGuard after;
  CHECK_FALSE(after.is_forked_child());
  CHECK_FALSE(before.is_forked_child());
}
