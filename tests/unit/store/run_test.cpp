// Several calls in one trip, on every store.
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <col/store.hpp>

#include "store/base/run.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col;

namespace {

// A fresh store; by the server's, all calls are one trip.
struct RunInMemory {
  std::shared_ptr<Store> store = make_memory_store();
};
struct RunInFiles {
  test::TempDir directory;
  std::shared_ptr<Store> store = make_file_store(directory / "store");
};
struct RunOverTcp {
  StoreServer server{{.host = "127.0.0.1", .token = "a token"}};
  std::shared_ptr<Store> store = make_tcp_store("127.0.0.1", server.port(), "a token", std::chrono::seconds(20));
};
struct RunInScope {
  RunOverTcp base;
  std::shared_ptr<Store> store = make_prefix_store(base.store, "job/1");
};
using RunStores = std::tuple<RunInMemory, RunInFiles, RunOverTcp, RunInScope>;

}  // namespace

TEMPLATE_LIST_TEST_CASE("store: run makes its calls in their order, and a wait among them holds up none", "[store]",
                        RunStores) {
  using Kind = store::Call::Kind;
  TestType fixture;
  Store& store = *fixture.store;
  WaitContext wait(Deadline::after(std::chrono::seconds(20)));
  store.set("old", "1");
  std::vector<store::Call> calls{{.kind = Kind::wait, .key = "last"},
                                 {.kind = Kind::set, .key = "a", .value = "first"},
                                 {.kind = Kind::get, .key = "a"},
                                 {.kind = Kind::compare_set, .key = "a", .value = "second", .expected = "first"},
                                 {.kind = Kind::compare_set, .key = "a", .value = "third", .expected = std::nullopt},
                                 {.kind = Kind::compare_set, .key = "b", .value = "new", .expected = std::nullopt},
                                 {.kind = Kind::erase, .key = "old"},
                                 {.kind = Kind::erase, .key = "old"},
                                 {.kind = Kind::get, .key = "old"},
                                 {.kind = Kind::set, .key = "last", .value = "there"}};
  std::vector<std::size_t> told;
  store::run(store, calls, wait, [&](std::size_t i) {
    told.push_back(i);
    return true;
  });
  CHECK(told.size() == calls.size());
  const std::vector<std::optional<std::string>> wanted{
      "there", std::nullopt, "first", "first", "second", std::nullopt, "", std::nullopt, std::nullopt, std::nullopt};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    INFO(i);
    CHECK(calls[i].answer == wanted[i]);
  }
  CHECK(store.get("a") == "second");
  CHECK(store.get("b") == "new");
}

TEMPLATE_LIST_TEST_CASE("store: run of many calls, one that ends it, and one that is out of time", "[store]",
                        RunStores) {
  using Kind = store::Call::Kind;
  TestType fixture;
  Store& store = *fixture.store;
  constexpr std::size_t kMany = 600;  // more than are under way at a time
  std::vector<store::Call> sets, waits;
  for (std::size_t i = 0; i < kMany; ++i) {
    sets.push_back({.kind = Kind::set, .key = "key " + std::to_string(i), .value = std::to_string(i)});
    waits.push_back({.kind = Kind::wait, .key = "key " + std::to_string(i)});
  }
  std::jthread other([&] {
    WaitContext wait(Deadline::after(std::chrono::seconds(20)));
    store::run(store, sets, wait);
  });
  WaitContext wait(Deadline::after(std::chrono::seconds(20)));
  store::run(store, waits, wait);
  for (std::size_t i = 0; i < kMany; ++i) REQUIRE(waits[i].answer == std::to_string(i));

  // The first answer is enough, though another key never comes.
  std::vector<store::Call> some{{.kind = Kind::wait, .key = "never"}, {.kind = Kind::wait, .key = "key 1"}};
  store::run(store, some, wait, [](std::size_t) { return false; });
  CHECK(some[1].answer == "1");

  WaitContext brief(Deadline::after(std::chrono::seconds(1)));
  some[1].answer.reset();
  try {
    store::run(store, some, brief);
    FAIL("no timeout");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::timeout);
  }
  CHECK(some[1].answer == "1");
  CHECK(store.get("key 2") == "2");  // as good as before
}

TEMPLATE_LIST_TEST_CASE("store: one that sleeps until it is told is told", "[store]", RunStores) {
  TestType fixture;
  Store& store = *fixture.store;
  WaitContext wait(Deadline::after(std::chrono::seconds(20)));
  wait.sleep_until_told();
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) store.set("other", std::to_string(i));
    store.set("key", "there");
  });
  std::vector<store::Call> calls{store::Call::get("none"), store::Call::wait("key")};
  store::run(store, calls, wait);
  other.join();
  CHECK(calls.back().answer == "there");
}
