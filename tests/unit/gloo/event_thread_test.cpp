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
#include <mutex>
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

constexpr std::uint64_t kOwnSlot = 0x9000'0000'0000'0001ULL;  // by hand, as for a buffer that no ticket keeps

// Whoever uses a connection holds its mutex meanwhile.
struct Access : gloo_backend::tcp::Pair {
  static std::mutex& mutex_of(::gloo::transport::Pair& pair) {
    return static_cast<gloo_backend::tcp::Pair&>(pair).*(&Access::m_);
  }
};

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// Requires: no thread of this process has anything to do, but for the event thread.
void expect_idle() {
  std::this_thread::sleep_for(100ms);  // what is under way ends
  const double before = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(500ms);
  const double load =
      (cpu_seconds() - before) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

TEST_CASE("gloo: the event thread rests while another thread keeps a connection that there is something to read from",
          "[gloo]") {
  // As a thread does in a large write, or when it has lost its core.
  run_two_processes({[](GlooChannel& channel, Store& store) {
                       {
                         const std::lock_guard lock(Access::mutex_of(*channel.transport().getPair(1)));
                         store.set("kept", "yes");
                         store.wait_for("sent", 20s);
                         expect_idle();
                       }
                       std::vector<float> data(10);
                       wait_for(channel, channel.post_recv(1, 1, data));
                       expect(data[9] == 7.0F, "the message comes all the same");
                     },
                     [](GlooChannel& channel, Store& store) {
                       store.wait_for("kept", 20s);
                       const std::vector<float> data(10, 7.0F);
                       const Ticket ticket = channel.post_send(0, 1, data);
                       store.set("sent", "yes");
                       wait_for(channel, ticket);
                     }});
}

TEST_CASE("gloo: a send whose buffer is gone fails its connection, and the event thread rests", "[gloo]") {
  run_two_processes({[](GlooChannel& channel, Store& store) {
                       std::vector<std::byte> data(1000);
                       channel.transport().createUnboundBuffer(data.data(), data.size())->send(1, kOwnSlot, 0, 1000);
                       store.set("gone", "yes");
                       store.wait_for("asked for", 20s);
                       expect_idle();
                       const Ending ending = ending_of([&] { barrier(channel, 1); });
                       expect(ending.code == ErrorCode::peer_lost && ending.rank == 1, ending.text);
                     },
                     [](GlooChannel& channel, Store& store) {
                       std::vector<std::byte> data(1000);
                       WaitContext wait = wait_for();
                       const gloo_backend::GuardedContext::WaitScope scope(channel.transport(), &wait);
                       const auto buffer = channel.transport().createUnboundBuffer(data.data(), data.size());
                       store.wait_for("gone", 20s);
                       const Ending ending = ending_of([&] {
                         buffer->recv(0, kOwnSlot, 0, data.size());
                         store.set("asked for", "yes");
                         buffer->waitRecv();
                       });
                       expect(ending.code.has_value() && ending.seconds < 10, "the wait fails: " + ending.text);
                     }});
}

TEST_CASE("gloo connect: a listener that failed is not listened to any more, though a process has a copy of it",
          "[gloo]") {
  if (gloo_backend::LoopDevice::kOutlivesGroups) return;  // it is not ours
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
    expect(ending.code == ErrorCode::timeout, ending.text);
  });
  CHECK(rank.wait().text == "");
}
