// How long the start of a large job takes over TCP.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <col/store.hpp>

#include "core/unique_fd.hpp"
#include "support/catch.hpp"
#include "unit/store/child.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

constexpr int kJoiners = 2;
constexpr int kClients = 1000;  // each a thread with a connection of its own
constexpr int kKeys = 100;
constexpr Duration kPatience = 60s;

std::string key_of(int client, int k) {
  return "rank/" + std::to_string(client) + "/" + std::to_string(k);
}

// Sets its keys and waits for as many, each of another client.
void rendezvous(Store& store, int client) {
  for (int k = 0; k < kKeys; ++k) store.set(key_of(client, k), key_of(k, client));
  for (int k = 0; k < kKeys; ++k) {
    const int peer = (client + 1 + 37 * k) % kClients;
    require(store.wait_for(key_of(peer, k), kPatience) == key_of(k, peer), "another value");
  }
}

void run_clients(int port, int first, int count) {
  std::vector<std::string> problems(static_cast<std::size_t>(count));
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < count; ++i) {
      clients.emplace_back([&, i] {
        try {
          rendezvous(*make_tcp_store("127.0.0.1", port, "a token", kPatience), first + i);
        } catch (const std::exception& error) {
          problems[static_cast<std::size_t>(i)] = error.what();
        }
      });
    }
  }
  for (const std::string& problem : problems) require(problem.empty(), problem);
}

}  // namespace

TEST_CASE("tcp store: 1000 clients set 100 keys each and wait for 100 of others", "[store][tcp][rest]") {
  // Forked before the server has its thread: in a child of a process with threads, ThreadSanitizer takes a new thread
  // for one of the parent's.
  std::array<int, 2> port_pipe{};
  REQUIRE(::pipe2(port_pipe.data(), O_CLOEXEC) == 0);
  const core::UniqueFd port_in(port_pipe[0]), port_out(port_pipe[1]);
  std::vector<Child> processes;
  for (int p = 0; p < kJoiners; ++p) {
    processes.emplace_back([&, p] {
      ::close(port_out.get());  // so that the parent's death is the end of the pipe
      int port = 0;
      require(::read(port_in.get(), &port, sizeof port) == sizeof port, "no port");
      run_clients(port, p * kClients / kJoiners, kClients / kJoiners);
    });
  }
  const StoreServer server({.host = "127.0.0.1", .token = "a token"});
  const auto start = std::chrono::steady_clock::now();
  for (int p = 0; p < kJoiners; ++p) {
    const int port = server.port();
    REQUIRE(::write(port_out.get(), &port, sizeof port) == sizeof port);
  }
  for (Child& process : processes) REQUIRE(process.outcome(kPatience) == "");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << "1000 clients, 100 keys each: " << seconds.count() << " s\n";
  CHECK(make_tcp_store("127.0.0.1", server.port(), "a token", kPatience)->num_keys("rank/") == kClients * kKeys);
  CHECK(seconds < 60s);  // ten times what two busy cores take
}
