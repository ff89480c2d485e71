#include "launch/nodes/endpoint.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "launch/job/host_name.hpp"
#include "launch/job/launch_error.hpp"
#include "support/catch.hpp"

using namespace col::launch;

TEST_CASE("endpoint: host and port in every form", "[launch]") {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& one : {Case{"ada", "ada", 29400}, Case{"ada:1", "ada", 1}, Case{"10.0.0.1:65535", "10.0.0.1", 65535},
                          Case{"[fd00::1]:77", "fd00::1", 77}, Case{"[fd00::1]", "fd00::1", 29400},
                          Case{"fd00::1", "fd00::1", 29400}, Case{"::1", "::1", 29400}}) {
    INFO(one.text);
    const Endpoint endpoint = parse_endpoint(one.text);
    CHECK(endpoint.host == one.host);
    CHECK(endpoint.port == one.port);
    CHECK(parse_endpoint(endpoint.text()).text() == endpoint.text());
  }
}

TEST_CASE("endpoint: what is none is refused", "[launch]") {
  for (const char* text : {"", ":1", "ada:", "ada:0", "ada:65536", "ada:-1", "ada:x", "ada:1x", "[]", "[]:1",
                           "[fd00::1", "[::1]x", "[::1]:", "ada: 1"}) {
    INFO("'" << text << "'");
    try {
      parse_endpoint(text);
      FAIL_CHECK("no error");
    } catch (const LaunchError& error) {
      CHECK(error.exit_code() == 2);
      CHECK_THAT(error.what(), Catch::Contains("write host:port"));
    }
  }
}

TEST_CASE("endpoint: this host is known by its names and addresses", "[launch]") {
  for (const char* name : {"localhost", "127.0.0.1", "127.1.2.3"}) CHECK(is_this_host(name));
  CHECK(is_this_host(host_name()));
  CHECK_FALSE(is_this_host("198.51.100.1"));  // for documentation: nobody has it
  CHECK_FALSE(host_name().empty());
  for (const std::string& address : own_addresses()) CHECK(is_this_host(address));
}

TEST_CASE("endpoint: who listens can be connected to, and a taken port is told", "[launch]") {
  const Listener listener = listen_on({""}, 0);
  REQUIRE(listener.sockets.size() == 1);
  REQUIRE(listener.port > 0);
  CHECK(listen_on({""}, listener.port).error == EADDRINUSE);
  const Connection connection = connect_to({"127.0.0.1", listener.port}, std::chrono::seconds(10));
  REQUIRE(connection.socket);
  CHECK(connection.peer_address == "127.0.0.1");
  pollfd waiting{listener.sockets.front().get(), POLLIN, 0};
  REQUIRE(::poll(&waiting, 1, 10'000) == 1);
  const col::tools::UniqueFd accepted(::accept(listener.sockets.front().get(), nullptr, nullptr));
  REQUIRE(accepted);
  CHECK(peer_address(accepted.get()) == "127.0.0.1");  // not ::ffff:127.0.0.1
}

TEST_CASE("endpoint: several addresses are listened at with one port, and no others", "[launch]") {
  const Listener listener = listen_on({"127.0.0.1", "127.0.0.2"}, 0);
  REQUIRE(listener.sockets.size() == 2);
  CHECK(connect_to({"127.0.0.1", listener.port}, std::chrono::seconds(10)).socket);
  CHECK(connect_to({"127.0.0.2", listener.port}, std::chrono::seconds(10)).socket);
  CHECK_FALSE(connect_to({"127.0.0.3", listener.port}, std::chrono::seconds(10)).socket);
  CHECK(listen_on({"127.0.0.3", "127.0.0.2"}, listener.port).sockets.empty());
  CHECK(listen_on({"198.51.100.1"}, 0).error == EADDRNOTAVAIL);
}

TEST_CASE("endpoint: who does not listen is an error with the reason", "[launch]") {
  int port = 0;
  {
    const Listener listener = listen_on({""}, 0);
    port = listener.port;
  }
  const Connection connection = connect_to({"127.0.0.1", port}, std::chrono::seconds(10));
  CHECK_FALSE(connection.socket);
  CHECK_THAT(connection.error, Catch::Contains("cannot connect to 127.0.0.1:"));
}
