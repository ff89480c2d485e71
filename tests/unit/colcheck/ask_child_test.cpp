// A child that is asked answers, or does not, and is gone afterwards.
#include "common/ask_child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"

using col::tools::ask_child;
using namespace std::chrono_literals;

TEST_CASE("ask_child: what the question returns, and nothing of it stays", "[colcheck]") {
  const pid_t self = ::getpid();
  bool asked = false;
  CHECK(ask_child([&] { return asked = true, ::getpid() == self ? "here" : "a child"; }, 20s) == "a child");
  CHECK_FALSE(asked);
  CHECK(ask_child([] { return std::string(); }, 20s) == "");
  CHECK(ask_child([] { return std::string(10'000, 'x'); }, 20s) == std::string(10'000, 'x'));
  CHECK((::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
}

TEST_CASE("ask_child: no answer from a child that ends, throws or hangs", "[colcheck]") {
  CHECK_FALSE(ask_child([]() -> std::string { std::_Exit(0); }, 20s));
  CHECK_FALSE(ask_child([]() -> std::string { throw std::runtime_error("no"); }, 20s));
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(ask_child(
      []() -> std::string {
        for (;;) ::pause();
      },
      200ms));
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
  CHECK((::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
}
