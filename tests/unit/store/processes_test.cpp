// Several processes on one store.
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "store/file_store.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

constexpr int kProcesses = 8;

// Runs body(i) in kProcesses processes; each opens the store by itself.
template <class Body>
void in_processes(const std::string& directory, Body body) {
  std::vector<Child> children;
  for (int i = 0; i < kProcesses; ++i) children.emplace_back([&] { body(*make_file_store(directory), i); });
  for (auto& child : children) REQUIRE(child.outcome() == "");
}

}  // namespace

TEST_CASE("file store: 8 processes that add to one counter sum up, and no two see one sum", "[store]") {
  const TempDir directory;
  in_processes(directory / "store", [](Store& store, int i) {
    std::string sums;
    for (int k = 0; k < 200; ++k) sums += std::to_string(store.add("counter", 1)) + " ";
    store.set("sums/" + std::to_string(i), sums);
  });
  const auto store = make_file_store(directory / "store");
  CHECK(store->get("counter") == "1600");
  std::set<std::string> sums;
  for (int i = 0; i < kProcesses; ++i) {
    const std::string text = store->get("sums/" + std::to_string(i)).value();
    for (std::size_t at = 0, space; (space = text.find(' ', at)) != std::string::npos; at = space + 1)
      sums.insert(text.substr(at, space - at));
  }
  CHECK(sums.size() == 1600);
}

TEST_CASE("file store: of 8 processes exactly one is elected, round after round", "[store]") {
  const TempDir directory;
  in_processes(directory / "store", [](Store& store, int i) {
    for (int round = 0; round < 20; ++round) {
      const std::string name = std::to_string(round);
      if (store.add("arrived/" + name, 1) == kProcesses) store.set("go/" + name, "");
      store.wait_for("go/" + name, 20s);
      if (!store.compare_set("leader/" + name, std::nullopt, std::to_string(i))) store.add("leaders/" + name, 1);
    }
  });
  const auto store = make_file_store(directory / "store");
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
