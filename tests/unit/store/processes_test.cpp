// Several processes on one store: what the conformance suite asks of threads, and a group's start.
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <col/group.hpp>
#include <col/store.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"
#include "unit/store/tcp_peer.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

constexpr int kProcesses = 8;

// A file store, which each process opens by itself.
struct InFiles {
  TempDir directory;
  std::shared_ptr<Store> open(int) const { return make_file_store(directory / "store"); }
};

// A TCP store. Every other process inherits one that its parent has used.
struct Served {
  Served() { used->set("parent", "was here"); }
  StoreServer server{server_spec()};
  std::shared_ptr<Store> used = client_of(server.port());
  std::shared_ptr<Store> open(int process) const { return process % 2 == 0 ? used : client_of(server.port()); }
};

template <class Stores, class Body>
void in_processes(const Stores& stores, Body body) {
  std::vector<Child> children;
  for (int i = 0; i < kProcesses; ++i) children.emplace_back([&] { body(*stores.open(i), i); });
  for (Child& child : children) REQUIRE(child.outcome() == "");
}

}  // namespace

TEMPLATE_TEST_CASE("store: 8 processes that add to one counter sum up, and no two see one sum", "[store]", InFiles,
                   Served) {
  const TestType stores;
  in_processes(stores, [](Store& store, int i) {
    std::string sums;
    for (int k = 0; k < 200; ++k) sums += std::to_string(store.add("counter", 1)) + " ";
    store.set("sums/" + std::to_string(i), sums);
  });
  const auto store = stores.open(1);
  CHECK(store->get("counter") == "1600");
  std::set<std::string> sums;
  for (int i = 0; i < kProcesses; ++i) {
    const std::string text = store->get("sums/" + std::to_string(i)).value();
    for (std::size_t at = 0, space; (space = text.find(' ', at)) != std::string::npos; at = space + 1)
      sums.insert(text.substr(at, space - at));
  }
  CHECK(sums.size() == 1600);
}

TEMPLATE_TEST_CASE("store: of 8 processes exactly one is elected, round after round", "[store]", InFiles, Served) {
  const TestType stores;
  in_processes(stores, [](Store& store, int i) {
    for (int round = 0; round < 20; ++round) {
      const std::string name = std::to_string(round);
      if (store.add("arrived/" + name, 1) == kProcesses) store.set("go/" + name, "");
      store.wait_for("go/" + name, 20s);
      if (!store.compare_set("leader/" + name, std::nullopt, std::to_string(i))) store.add("leaders/" + name, 1);
    }
  });
  const auto store = stores.open(1);
  for (int round = 0; round < 20; ++round) {
    CHECK(store->get("leaders/" + std::to_string(round)) == "1");
    CHECK(store->get("leader/" + std::to_string(round)).has_value());
  }
}

TEST_CASE("file store: one opened before a fork works on both sides of it", "[store]") {
  const TempDir directory;
  const auto store = make_file_store(directory.path());
  CHECK_THROWS_AS(store->wait_for("never", 1ms), Error);  // leaves an inotify instance for the next wait
  Child child([&] {
    for (int i = 0; i < 100; ++i) {
      store->wait_for("ping/" + std::to_string(i), 20s);
      store->set("pong/" + std::to_string(i), "");
    }
  });
  for (int i = 0; i < 100; ++i) {
    store->set("ping/" + std::to_string(i), "");
    store->wait_for("pong/" + std::to_string(i), 20s);
  }
  CHECK(child.outcome() == "");
}

TEST_CASE("tcp store: a group of processes starts over it, reduces, and leaves in good order", "[store][tcp]") {
  const Served served;
  in_processes(served, [&](Store&, int i) {
    Context context({.rank = i,
                     .world_size = kProcesses,
                     .local_rank = i,
                     .local_world_size = kProcesses,
                     .job_id = "over tcp",
                     .store = client_of(served.server.port()),
                     .timeout = 20s});
    Group group = context.init_group({.rank = i, .world_size = kProcesses});
    std::vector<int> values{1, i};
    group.allreduce(values, values);
    require(values == std::vector<int>{kProcesses, kProcesses * (kProcesses - 1) / 2}, "another sum");
    group.barrier();
    context.finalize();
  });
}
