// When a connection counts as dead: its other side's kernel has answered nothing of what it was asked.
#include <array>
#include <chrono>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "backend/ucx/sockets.hpp"
#include "core/unique_fd.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"

namespace {

using namespace std::chrono_literals;
using col::core::UniqueFd;
using col::ucx_backend::Sockets;
using Clock = std::chrono::steady_clock;

// A TCP connection within this process. While it is cut, the kernel of the far end answers nothing.
class Connection {
 public:
  Connection() {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    socklen_t bytes = sizeof address;
    REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &bytes) == 0);
    far_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(far_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    near_.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(near_.get() >= 0);
    sockets_.set_own({fmt::format("127.0.0.1:{}", ntohs(address.sin_port))});
  }

  void cut() {
    sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog filter{1, &nothing};
    REQUIRE(::setsockopt(far_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0);
  }
  void mend() {
    const int unused = 0;
    REQUIRE(::setsockopt(far_.get(), SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) == 0);
  }
  void say() const { REQUIRE(::send(near_.get(), "x", 1, MSG_NOSIGNAL) == 1); }
  void hear() const {
    std::array<char, 1> word{};
    REQUIRE(::recv(far_.get(), word.data(), 1, 0) == 1);
  }
  // Whether the kernel has repeated what it sent, within the time that it takes.
  bool repeats() const {
    for (const auto end = Clock::now() + 10s; Clock::now() < end; std::this_thread::yield()) {
      tcp_info info{};
      socklen_t size = sizeof info;
      REQUIRE(::getsockopt(near_.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
      if (info.tcpi_unacked > 0 && info.tcpi_retransmits > 0) return true;
    }
    return false;
  }
  bool is_shut() const {
    std::array<char, 1> word{};
    return ::recv(near_.get(), word.data(), 1, MSG_DONTWAIT) == 0;
  }
  Sockets& sockets() { return sockets_; }

 private:
  UniqueFd far_, near_;
  Sockets sockets_;
};

}  // namespace

TEST_CASE("ucx sockets: a connection that was idle before it is looked at is not dead for that", "[ucx][rest]") {
  Connection connection;
  // Longer than a silence may last, as the kernel counts it.
  std::this_thread::sleep_for(Sockets::kSilence + 500ms);
  connection.cut();
  connection.say();
  REQUIRE(connection.repeats());
  connection.sockets().look();
  CHECK_FALSE(connection.is_shut());
  connection.mend();
  connection.hear();
}

TEST_CASE("ucx sockets: a connection on which nothing is answered is shut, and no sooner than after its silence",
          "[ucx][rest]") {
  Connection connection;
  connection.sockets().look();
  connection.say();
  connection.hear();
  connection.cut();
  connection.say();
  const auto begin = Clock::now();
  while (!connection.is_shut() && Clock::now() < begin + kPrompt) {
    connection.sockets().look();
    std::this_thread::yield();
  }
  CHECK(connection.is_shut());
  CHECK(Clock::now() - begin >= Sockets::kSilence - 10ms);  // the kernel counts from before `begin`
}
