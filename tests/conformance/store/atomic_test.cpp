// add and compare_set, alone and under threads.
#include <atomic>
#include <exception>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "conformance/store/stores.hpp"

using namespace col;
using namespace col::test;

namespace {

constexpr int kThreads = 8;

// Runs body(i) in kThreads threads at once. What a body throws is rethrown here.
template <class Body>
void in_threads(Body body) {
  std::vector<std::exception_ptr> failures(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&failures, &body, i] {
        try {
          body(i);
        } catch (...) {
          failures[static_cast<std::size_t>(i)] = std::current_exception();
        }
      });
    }
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("store: add starts at zero, keeps decimal text and takes any delta", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  CHECK(store.add("counter", 0) == 0);
  CHECK(store.get("counter") == "0");
  CHECK(store.add("counter", 7) == 7);
  CHECK(store.add("counter", -10) == -3);
  CHECK(store.get("counter") == "-3");
  store.set("counter", "41");
  CHECK(store.add("counter", 1) == 42);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  store.set("counter", "0");
  CHECK(store.add("counter", kMost) == kMost);
  store.set("counter", "0");
  CHECK(store.add("counter", kLeast) == kLeast);
}

TEMPLATE_LIST_TEST_CASE("store: add to what is no number, or beyond 64 bits, is refused and changes nothing", "[store]",
                        Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  for (const char* value : {"", "x", "1x", " 1", "1 ", "+1", "0x1", "1.0", "9223372036854775808", "-", "--1"}) {
    store.set("counter", value);
    expect_error(ErrorCode::invalid_argument, "counter", [&] { store.add("counter", 1); });
    CHECK(store.get("counter") == value);
  }
  store.set("counter", "9223372036854775807");
  expect_error(ErrorCode::invalid_argument, "counter", [&] { store.add("counter", 1); });
  CHECK(store.get("counter") == "9223372036854775807");
}

TEMPLATE_LIST_TEST_CASE("store: compare_set swaps exactly when the value is the expected one", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  CHECK(store.compare_set("key", "old", "new") == std::nullopt);
  CHECK(store.get("key") == std::nullopt);
  CHECK(store.compare_set("key", std::nullopt, "first") == std::nullopt);
  CHECK(store.get("key") == "first");
  CHECK(store.compare_set("key", std::nullopt, "second") == "first");
  CHECK(store.compare_set("key", "", "second") == "first");
  CHECK(store.compare_set("key", "firs", "second") == "first");
  CHECK(store.get("key") == "first");
  CHECK(store.compare_set("key", "first", "") == "first");
  CHECK(store.get("key") == "");
  CHECK(store.compare_set("key", std::nullopt, "third") == "");  // empty is not absent
  CHECK(store.compare_set("key", "", "third") == "");
  CHECK(store.get("key") == "third");
}

TEMPLATE_LIST_TEST_CASE("store: 8 threads that add 1000 times each sum up", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  in_threads([&](int) {
    for (int i = 0; i < 1000; ++i) store.add("counter", 1);
  });
  CHECK(store.get("counter") == "8000");
}

TEMPLATE_LIST_TEST_CASE("store: of 8 threads exactly one is elected, and all agree on it", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  for (int round = 0; round < 20; ++round) {
    const std::string key = "leader/" + std::to_string(round);
    std::atomic<int> winners{0};
    std::vector<std::string> leaders(kThreads);
    in_threads([&](int i) {
      const std::string me = std::to_string(i);
      const auto before = store.compare_set(key, std::nullopt, me);
      if (!before) ++winners;
      leaders[static_cast<std::size_t>(i)] = before.value_or(me);
    });
    REQUIRE(winners == 1);
    for (const std::string& leader : leaders) REQUIRE(leader == store.get(key));
  }
}

TEMPLATE_LIST_TEST_CASE("store: a set between adds is never lost", "[store]", Stores) {
  // One thread sets a large number once while the others add: every later value builds on it.
  TestType fixture;
  Store& store = *fixture.store;
  constexpr std::int64_t kLarge = 1'000'000;
  for (int round = 0; round < 20; ++round) {
    const std::string key = "counter/" + std::to_string(round);
    in_threads([&](int i) {
      if (i == 0) store.set(key, std::to_string(kLarge));
      for (int k = 0; k < 10 && i != 0; ++k) store.add(key, 1);
    });
    REQUIRE(store.add(key, 0) >= kLarge);
  }
}

TEMPLATE_LIST_TEST_CASE("store: readers of a value that is being replaced see one of the values", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  store.set("key", std::string(1, 'a'));
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  in_threads([&](int i) {
    if (i < 2) {
      // Value 'a' + n has (n + 1) * 10,000 bytes of that letter.
      for (int k = 0; k < 100; ++k) {
        const int n = (k * 7 + i) % 26;
        store.set("key", std::string(static_cast<std::size_t>(n + 1) * 10'000, static_cast<char>('a' + n)));
      }
      done = true;
      return;
    }
    while (!done) {
      const auto value = store.get("key");
      if (!value || value->empty() || value->find_first_not_of(value->front()) != std::string::npos) ++torn;
      if (value && value->size() != 1 && value->size() != static_cast<std::size_t>(value->front() - 'a' + 1) * 10'000)
        ++torn;
    }
  });
  CHECK(torn == 0);
}
