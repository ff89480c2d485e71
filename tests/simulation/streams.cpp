#include "simulation/streams.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

namespace col::test {
namespace {

constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
// The other end is given after this time what it does not take now.
constexpr auto kAgain = std::chrono::milliseconds(1);
// A segment that is lost under way is sent again, after ever longer pauses.
constexpr auto kFirstAgain = std::chrono::milliseconds(10), kLastAgain = std::chrono::milliseconds(500);
// The most time that a slow store takes for a message.
constexpr Duration kSlowStore = std::chrono::milliseconds(300);

// Abstract names: nothing is left of them.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

Streams::Streams(Simulator& simulator, const Truth& truth, SimulatedNetwork& network)
    : simulator_(simulator), truth_(truth), network_(network), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

Streams::~Streams() = default;

int Streams::listen(int port) {
  static int names = 0;
  const std::string name = fmt::format("simulated {} {}", ::getpid(), ++names);
  const int fd = ::socket(AF_UNIX, kKind, 0);
  const auto [address, size] = address_of(name);
  require(fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(fd, 1024) == 0,
          "cannot listen");
  listeners_[port] = {simulator_.current_process(), name};
  return fd;
}

int Streams::connect(int port) {
  const int self = simulator_.current_process();
  const auto found = listeners_.find(port);
  if (found == listeners_.end() || simulator_.state_of(found->second.first) == core::ProcessCondition::gone) {
    errno = ECONNREFUSED;
    return -1;
  }
  auto connection = std::make_unique<Connection>();
  std::array<int, 2> pair{};
  require(::socketpair(AF_UNIX, kKind, 0, pair.data()) == 0, "cannot make a stream");
  connection->ends[0].fd = core::UniqueFd(pair[1]);
  connection->ends[0].process = self;
  connection->ends[1].fd = core::UniqueFd(::socket(AF_UNIX, kKind, 0));
  connection->ends[1].process = found->second.first;
  const auto [address, size] = address_of(found->second.second);
  require(::connect(connection->ends[1].fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0,
          "cannot connect");
  for (const int side : {0, 1}) watch(*connection, side);
  connections_.push_back(std::move(connection));
  simulator_.look_at_polls();  // the server has a client
  return pair[0];
}

void Streams::watch(Connection& connection, int side) {
  const int fd = connection.ends[static_cast<std::size_t>(side)].fd.get();
  epoll_event event{.events = EPOLLIN,
                    .data = {.u64 = static_cast<std::uint64_t>(connections_.size()) * 2 + static_cast<unsigned>(side)}};
  require(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0, "cannot watch a stream");
}

void Streams::take() {
  if (connections_.empty()) return;
  for (const auto& connection : connections_) look_for_dead(*connection);
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    take_from(*connections_[id / 2], static_cast<int>(id % 2));
  }
}

// The kernel closes what a process has that was killed.
void Streams::look_for_dead(Connection& connection) {
  for (const int side : {0, 1}) {
    End& end = connection.ends[static_cast<std::size_t>(side)];
    if (end.has_ended || truth_.ended_at(end.process) == Simulator::Time::max()) continue;
    take_from(connection, side);
    if (!std::exchange(end.has_ended, true)) send_on(connection, 1 - side, "");
  }
}

void Streams::take_from(Connection& connection, int side) {
  End& from = connection.ends[static_cast<std::size_t>(side)];
  std::array<char, std::size_t{64} << 10> buffer;
  while (!from.has_ended) {
    const ssize_t got = ::recv(from.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) {
      send_on(connection, 1 - side, std::string(buffer.data(), static_cast<std::size_t>(got)));
      continue;
    }
    from.has_ended = true;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, from.fd.get(), nullptr);
    send_on(connection, 1 - side, "");
  }
}

// To the end of that side.
void Streams::send_on(Connection& connection, int side, std::string bytes) {
  End& to = connection.ends[static_cast<std::size_t>(side)];
  const Duration slow = truth_.is_store_slow() ? part_of(kSlowStore) : Duration::zero();
  to.last = std::max(to.last, simulator_.now() + network_.delay() + slow);
  to.under_way.push_back({to.last, std::move(bytes)});
  simulator_.at(to.last, [this, &connection, side] { deliver(connection, side); });
}

Duration Streams::part_of(Duration longest) {
  return Duration(
      static_cast<Duration::rep>(simulator_.choices().skewed_below(static_cast<std::uint64_t>(longest.count()))));
}

void Streams::deliver(Connection& connection, int side) {
  End& to = connection.ends[static_cast<std::size_t>(side)];
  const int from = connection.ends[static_cast<std::size_t>(1 - side)].process;
  if (!to.under_way.empty() && truth_.is_cut(from, to.process)) {
    to.again = std::clamp<Duration>(2 * to.again, kFirstAgain, kLastAgain);
    simulator_.at(simulator_.now() + to.again, [this, &connection, side] { deliver(connection, side); });
    return;
  }
  to.again = {};
  while (!to.under_way.empty() && to.under_way.front().arrives <= simulator_.now()) {
    std::string& bytes = to.under_way.front().bytes;
    if (bytes.empty()) {
      ::shutdown(to.fd.get(), SHUT_WR);
    } else {
      const ssize_t sent = ::send(to.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
        simulator_.at(simulator_.now() + kAgain, [this, &connection, side] { deliver(connection, side); });
        break;
      }
      if (sent >= 0 && static_cast<std::size_t>(sent) < bytes.size()) {
        bytes.erase(0, static_cast<std::size_t>(sent));
        continue;
      }
    }
    to.under_way.pop_front();
  }
  simulator_.look_at_polls();
}

}  // namespace col::test
