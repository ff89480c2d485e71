// The room net by itself: sockets, queues, and what threads wait for.
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "core/clock/clock.hpp"
#include "core/unique_fd.hpp"
#include "net/address.hpp"
#include "net/connect.hpp"
#include "net/endpoint.hpp"
#include "net/listener.hpp"
#include "net/output.hpp"
#include "net/poller.hpp"
#include "net/stream.hpp"
#include "support/catch.hpp"

namespace {

using namespace col;
using namespace std::chrono_literals;

std::pair<core::UniqueFd, core::UniqueFd> connected() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  return {core::UniqueFd(fds[0]), core::UniqueFd(fds[1])};
}

core::UniqueFd connect_to(int port, int& error) {
  std::string why;
  const net::Addresses address = net::resolve("127.0.0.1", port, AI_NUMERICHOST, why);
  core::UniqueFd socket = net::make_socket(address->ai_family);
  error = net::begin_connect(socket.get(), address->ai_addr, address->ai_addrlen);
  if (error == 0) error = net::wait_for(socket.get(), POLLOUT, 20s) ? net::end_of_connect(socket.get()) : ETIMEDOUT;
  return socket;
}

void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

TEST_CASE("net: a place is a host and a port, with brackets around an address with colons") {
  using net::parse_endpoint;
  CHECK(parse_endpoint("host-1.example:4711")->text() == "host-1.example:4711");
  CHECK(parse_endpoint("[::1]:1")->host == "::1");
  CHECK(parse_endpoint("[fe80::1%eth0]:65535")->text() == "[fe80::1%eth0]:65535");
  for (const char* text : {"", ":", "host", "host:", ":1", "host:0", "host:65536", "host:1x", "host: 1", "::1:5",
                           "[]:5", "[::1]", "[::1:5", "user@host:5", "a b:5", "host:+5", "h\n:5"}) {
    INFO(text);
    CHECK_FALSE(parse_endpoint(text));
  }
  CHECK_FALSE(parse_endpoint(std::string(254, 'h') + ":5"));
}

TEST_CASE("net: who listens everywhere knows who has come, by an address of its own kind") {
  net::Listener listener = net::listen_on({""}, 0);
  REQUIRE(listener.sockets.size() == 1);
  CHECK((net::accept(listener.sockets[0].get()).get() == -1 && errno == EAGAIN));
  int error = -1;
  const core::UniqueFd caller = connect_to(listener.port, error);
  CHECK(error == 0);
  const core::UniqueFd accepted = net::accept(listener.sockets[0].get());
  CHECK(net::numeric_peer(accepted.get()) == "127.0.0.1");
  CHECK(net::numeric_peer(listener.sockets[0].get()) == "somewhere");
  const net::Listener second = net::listen_on({"127.0.0.1", ""}, listener.port);
  CHECK(second.sockets.empty());
  CHECK((second.error == EADDRINUSE && second.failed == "127.0.0.1" && second.why == "Address already in use"));
  listener.sockets.clear();
  (void)connect_to(listener.port, error);
  CHECK(error == ECONNREFUSED);
}

TEST_CASE("net: a try to move bytes says what has come of it") {
  auto [left, right] = connected();
  std::array<char, 8> room{};
  CHECK((net::receive(left.get(), room).bytes == 0 && !net::receive(left.get(), room).has_ended));
  CHECK(net::send(right.get(), "abc").bytes == 3);
  CHECK(net::receive(left.get(), room).bytes == 3);
  std::size_t taken = 0;
  for (const std::string much(1 << 20, 'x');;) {
    const net::Moved moved = net::send(right.get(), much);
    taken += moved.bytes;
    CHECK_FALSE(moved.has_ended);
    if (moved.bytes == 0) break;
  }
  CHECK(taken > 0);
  right.reset();
  net::Moved moved;
  while (!(moved = net::receive(left.get(), room)).has_ended) taken -= moved.bytes;
  CHECK((taken == 0 && moved.error == 0));
  CHECK((net::send(left.get(), "abc").has_ended && net::send(left.get(), "abc").error == EPIPE));
}

TEST_CASE("net: what waits to be sent is sent in its order, and a body by reference") {
  const auto [left, right] = connected();
  net::Output output;
  const auto body = std::make_shared<const std::string>(100'000, 'b');
  std::string expected;
  for (int i = 0; i < 3; ++i) {
    output.add("head", body);
    output.add("tail");
    expected += "head" + *body + "tail";
  }
  CHECK((output.size() == expected.size() && body.use_count() == 4));
  std::string heard;
  std::array<char, 70'000> room;
  while (!output.empty()) {
    output.drop_front(net::send(right.get(), output).bytes);
    for (net::Moved moved; (moved = net::receive(left.get(), room)).bytes > 0;) heard.append(room.data(), moved.bytes);
  }
  CHECK((heard == expected && body.use_count() == 1));
}

TEST_CASE("net: a poller is woken once, by its alarm, and by edges, which can be asked for again") {
  net::Poller poller(&fail, true);
  std::array<epoll_event, 4> events;
  CHECK(poller.wait(events, 0s) == 0);
  std::thread waker([&] { poller.wake(); });
  CHECK((poller.wait(events, 20s) == 1 && events[0].data.u64 == net::Poller::kWoken));
  waker.join();
  CHECK(poller.wait(events, 0s) == 0);
  poller.set_alarm(1ms);
  CHECK((poller.wait(events, 20s) == 1 && events[0].data.u64 == net::Poller::kAlarm));
  CHECK(poller.wait(events, 0s) == 0);

  const auto [left, right] = connected();
  poller.watch(left.get(), 7);
  CHECK((poller.wait(events, 20s) == 1 && events[0].data.u64 == 7));  // it can be written to
  CHECK(poller.wait(events, 0s) == 0);
  CHECK(net::send(right.get(), "a").bytes == 1);
  CHECK((poller.wait(events, 20s) == 1 && (events[0].events & EPOLLIN) != 0));
  CHECK(poller.wait(events, 0s) == 0);
  CHECK(poller.rewatch(left.get(), 8));
  CHECK((poller.wait(events, 20s) == 1 && events[0].data.u64 == 8));
  poller.unwatch(left.get());
  CHECK_FALSE(poller.rewatch(left.get(), 8));
  CHECK_THROWS_AS(poller.watch(-1, 9), std::system_error);
}
