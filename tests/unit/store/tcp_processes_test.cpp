// Ranks that are processes on one TCP store: what the conformance suite asks of threads, and a group's start.
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <col/group.hpp>
#include <col/store.hpp>

#include "support/catch.hpp"
#include "unit/store/child.hpp"
#include "unit/store/tcp_peer.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

constexpr int kTcpProcesses = 8;

std::shared_ptr<Store> child_client_of(const StoreServer& server) {
  return make_tcp_store("127.0.0.1", server.port(), kToken, 20s);
}

// Runs body(store, i) in kTcpProcesses processes. Every other one inherits a store that its parent has used.
template <class Body>
void in_processes(const StoreServer& server, Body body) {
  const auto used = child_client_of(server);
  used->set("parent", "was here");
  std::vector<Child> children;
  for (int i = 0; i < kTcpProcesses; ++i)
    children.emplace_back([&] { body(i % 2 == 0 ? *used : *child_client_of(server), i); });
  for (Child& child : children) REQUIRE(child.outcome() == "");
}

}  // namespace

TEST_CASE("tcp store: 8 processes that add to one counter sum up, and no two see one sum", "[store][tcp]") {
  const StoreServer server({.host = "127.0.0.1", .token = kToken});
  in_processes(server, [](Store& store, int i) {
    std::string sums;
    for (int k = 0; k < 200; ++k) sums += std::to_string(store.add("counter", 1)) + " ";
    store.set("sums/" + std::to_string(i), sums);
  });
  const auto store = child_client_of(server);
  CHECK(store->get("counter") == "1600");
  std::set<std::string> sums;
  for (int i = 0; i < kTcpProcesses; ++i) {
    const std::string text = store->get("sums/" + std::to_string(i)).value();
    for (std::size_t at = 0, space; (space = text.find(' ', at)) != std::string::npos; at = space + 1)
      sums.insert(text.substr(at, space - at));
  }
  CHECK(sums.size() == 1600);
}

TEST_CASE("tcp store: of 8 processes exactly one is elected, round after round", "[store][tcp]") {
  const StoreServer server({.host = "127.0.0.1", .token = kToken});
  in_processes(server, [](Store& store, int i) {
    for (int round = 0; round < 20; ++round) {
      const std::string name = std::to_string(round);
      if (store.add("arrived/" + name, 1) == kTcpProcesses) store.set("go/" + name, "");
      store.wait_for("go/" + name, 20s);
      if (!store.compare_set("leader/" + name, std::nullopt, std::to_string(i))) store.add("leaders/" + name, 1);
    }
  });
  const auto store = child_client_of(server);
  for (int round = 0; round < 20; ++round) CHECK(store->get("leaders/" + std::to_string(round)) == "1");
}

TEST_CASE("tcp store: a group of processes starts over it, reduces, and leaves in good order", "[store][tcp]") {
  const StoreServer server({.host = "127.0.0.1", .token = kToken});
  in_processes(server, [&](Store&, int i) {
    Context context({.rank = i,
                     .world_size = kTcpProcesses,
                     .local_rank = i,
                     .local_world_size = kTcpProcesses,
                     .job_id = "over tcp",
                     .store = child_client_of(server),
                     .timeout = 20s});
    Group group = context.init_group({.rank = i, .world_size = kTcpProcesses});
    std::vector<int> values{1, i};
    group.allreduce(values, values);
    require(values == std::vector<int>{kTcpProcesses, kTcpProcesses * (kTcpProcesses - 1) / 2}, "another sum");
    group.barrier();
    context.finalize();
  });
}
