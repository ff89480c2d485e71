// What is not asked of the system for each message. The functions of the C library that would ask it are defined here,
// for this whole program, and count who calls them.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "unit/gloo/mesh.hpp"

// Sanitizers define these functions, too.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

thread_local int calls = 0;

long call(long number, auto... arguments) {
  ++calls;
  return ::syscall(number, arguments...);
}

constexpr std::size_t kMaskBytes = 8;  // the kernel's

}  // namespace

extern "C" {
int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return call(SYS_rt_sigprocmask, how, set, before, kMaskBytes) == 0 ? 0 : errno;
}
int sigpending(sigset_t* set) noexcept {
  return static_cast<int>(call(SYS_rt_sigpending, set, kMaskBytes));
}
pid_t getpid() noexcept {
  return static_cast<pid_t>(call(SYS_getpid));
}
}

namespace {

using namespace col;
using namespace col::test;

void exchange(GlooChannel& channel, int peer, std::uint64_t slot) {
  std::vector<float> in(2), out(2, 1);
  const Ticket receive = channel.post_recv(peer, slot, in);
  const Ticket send = channel.post_send(peer, slot, out);
  if (!channel.test(send)) wait_for(channel, send);
  if (!channel.test(receive)) wait_for(channel, receive);
}

}  // namespace

TEST_CASE("gloo: messages and collectives ask nothing about signals or processes", "[gloo]") {
  calls = 0;
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  CHECK(::getpid() > 1);
  REQUIRE(calls == 2);  // they are counted
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    exchange(channel, 1 - rank, 1);
    calls = 0;
    for (std::uint64_t i = 2; i < 52; ++i) {
      exchange(channel, 1 - rank, i);
      barrier(channel, i);
    }
    expect(calls == 0, fmt::format("{} calls", calls));
  }));
}

#endif
