// What the event thread costs while there is nothing for it to do. A descriptor is reported for as long as it is ready,
// so a turn of the loop that gets nothing done is followed by the next one at once.
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "backend/gloo/transport.hpp"
#include "core/unique_fd.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

// Of one core. Measured: 0.2 % where nothing happens, 1.6 % while connecting, 4.5 % while it tries again and again; 57
// % to 99 % where it does not rest, on two cores with other work.
constexpr double kMostIdleLoad = 0.4;

constexpr std::size_t kLargeBytes = 2 * gloo_backend::kMostEagerBytes;  // waits until the receive is there
constexpr std::uint64_t kOwnSlot = 0x9000'0000'0000'0001ULL;            // by hand, as for a buffer that no ticket keeps

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// Requires: no thread of this process has anything to do, but for the event thread.
void expect_idle() {
  double load = 1;
  for (int look = 0; look < 2 && load >= kMostIdleLoad; ++look) {  // what is under way ends in the first one
    const double before = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(500ms);  // the use of a processor is over a time
    load = (cpu_seconds() - before) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  expect(load < kMostIdleLoad, fmt::format("the event thread uses {:.1f} % of a core", load * 100));
}

// Each rank in a process of its own, so that the processor's time is that of its event thread.
using Body = std::function<void(GlooChannel& channel, Store& store)>;
void run_two_processes(const std::array<Body, 2>& bodies) {
  const TempDir dir;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto store = make_file_store(dir.path());
      const auto channel = connect({.rank = rank, .size = 2, .store = make_prefix_store(store, "connect")});
      bodies.at(static_cast<std::size_t>(rank))(*channel, *store);
    });
  }
  for (RankProcess& rank : ranks) CHECK(rank.wait().text == "");
}

// Where the first listening socket of this process listens.
sockaddr_in own_port() {
  for (int fd = 0; fd < 64; ++fd) {
    int listening = 0;
    socklen_t bytes = sizeof(listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 || listening == 0) continue;
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    return address;
  }
  throw std::runtime_error("nothing listens");
}

// A process with copies of all sockets of this one, as any that a program starts has; it ends with this one.
class Copy {
 public:
  Copy() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; fd < 64; ++fd) {
      int type = 0;
      socklen_t bytes = sizeof(type);
      if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) ::close(fd);  // the pipe of RankProcess, above all
    }
    for (;;) ::pause();
  }
  ~Copy() {
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

 private:
  pid_t pid_;
};

}  // namespace

TEST_CASE("gloo: the event thread rests while messages wait for their receives, and receives for their messages",
          "[gloo]") {
  const auto body = [](int peer) {
    return [peer](GlooChannel& channel, Store& store) {
      std::vector<float> small(10, 7.0F), large(1'000'000, 8.0F), from_small(10), from_large(1'000'000);
      std::vector<Ticket> tickets = {channel.post_send(peer, slot(1), small), channel.post_send(peer, slot(2), large),
                                     channel.post_recv(peer, slot(3), from_small),
                                     channel.post_recv(peer, slot(4), from_large)};
      store.set(fmt::format("posted/{}", peer), "yes");
      store.wait_for(fmt::format("posted/{}", 1 - peer), 20s);
      expect_idle();
      store.set(fmt::format("rested/{}", peer), "yes");
      store.wait_for(fmt::format("rested/{}", 1 - peer), 20s);
      std::vector<float> more(10), much(1'000'000);
      tickets.push_back(channel.post_recv(peer, slot(1), more));
      tickets.push_back(channel.post_recv(peer, slot(2), much));
      tickets.push_back(channel.post_send(peer, slot(3), small));
      tickets.push_back(channel.post_send(peer, slot(4), large));
      for (const Ticket ticket : tickets) wait_for(channel, ticket);
      expect(more[9] == 7.0F && much.back() == 8.0F && from_small[9] == 7.0F && from_large.back() == 8.0F, "content");
    };
  };
  run_two_processes({body(1), body(0)});
}

TEST_CASE("gloo: after calls that follow one another, the event thread takes what comes without a call", "[gloo]") {
  constexpr int kCalls = 300;
  const auto exchange = [](GlooChannel& channel, int peer) {
    std::vector<float> out(2, 1.0F), in(2);
    for (int call = 0; call < kCalls; ++call) {
      const Ticket sent = channel.post_send(peer, slot(1), out), received = channel.post_recv(peer, slot(1), in);
      wait_for(channel, received);
      wait_for(channel, sent);
    }
  };
  run_two_processes({[&](GlooChannel& channel, Store& store) {
                       std::vector<float> in(2), large(kLargeBytes);
                       exchange(channel, 1);
                       const Ticket small = channel.post_recv(1, slot(2), in),
                                    second = channel.post_recv(1, slot(3), large);
                       store.set("posted", "yes");
                       store.wait_for("both have been taken", 20s);
                       expect_idle();
                       wait_for(channel, small);
                       wait_for(channel, second);
                     },
                     [&](GlooChannel& channel, Store& store) {
                       const std::vector<float> out(2, 2.0F), large(kLargeBytes, 3.0F);
                       exchange(channel, 0);
                       store.wait_for("posted", 20s);
                       // The large one is more than the sockets hold: it ends as it is taken.
                       wait_for(channel, channel.post_send(0, slot(2), out));
                       wait_for(channel, channel.post_send(0, slot(3), large));
                       store.set("both have been taken", "yes");
                     }});
}

TEST_CASE("gloo: a send whose buffer is gone fails its connection, and the event thread rests", "[gloo]") {
  run_two_processes(
      {[](GlooChannel& channel, Store& store) {
         std::vector<std::byte> data(kLargeBytes);
         channel.transport().createUnboundBuffer(data.data(), data.size())->send(1, kOwnSlot, 0, kLargeBytes);
         store.set("gone", "yes");
         store.wait_for("asked for", 20s);
         expect_idle();
         const Ending ending = ending_of([&] { barrier(channel, 1); });
         expect(ending.code == ErrorCode::peer_lost && ending.rank == 1, ending.text);
       },
       [](GlooChannel& channel, Store& store) {
         std::vector<std::byte> data(kLargeBytes);
         WaitContext wait = wait_for();
         const gloo_backend::GuardedContext::WaitScope scope(channel.transport(), &wait);
         const auto buffer = channel.transport().createUnboundBuffer(data.data(), data.size());
         store.wait_for("gone", 20s);
         const Ending ending = ending_of([&] {
           buffer->recv(0, kOwnSlot, 0, data.size());
           store.set("asked for", "yes");
           buffer->waitRecv();
         });
         expect(ending.code.has_value() && ending.seconds < kPromptSeconds, "the wait fails: " + ending.text);
       }});
}

TEST_CASE("gloo connect: a listener that failed is not listened to any more, though a process has a copy of it",
          "[gloo]") {
  RankProcess rank([] {
    const auto store = make_memory_store();  // needs no descriptors
    Ending ending;
    std::jthread connecting([&] { ending = ending_of([&] { connect({.rank = 0, .size = 2, .store = store}, 3s); }); });
    store->wait_for("address/0", 20s);  // it listens
    const Copy copy;
    const core::UniqueFd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // Leaves none for the other end of the call.
    const rlimit limits{static_cast<rlim_t>(caller.get()), 64};
    setrlimit(RLIMIT_NOFILE, &limits);
    const sockaddr_in address = own_port();
    expect(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "called");
    expect_idle();
    connecting.join();
    expect(ending.code == ErrorCode::resource && ending.says("ulimit -n"), ending.text);
  });
  CHECK(rank.wait().text == "");
}
