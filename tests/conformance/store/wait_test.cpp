// How a wait ends: by a set, by its deadline, by an abort.
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/store/stores.hpp"
#include "support/prompt.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

struct Ended {
  std::optional<ErrorCode> code;
  std::string text;
  std::chrono::duration<double> after{};
};

Ended wait_to_its_end(Store& store, std::string_view key, WaitContext wait) {
  Ended ended;
  const auto start = Clock::now();
  try {
    ended.text = store.wait(key, wait);
  } catch (const Error& error) {
    ended.code = error.code();
    ended.text = error.message();
  }
  ended.after = Clock::now() - start;
  return ended;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("store: two threads hand values to and fro, each waiting for the other", "[store]", Stores) {
  // 200 turns; a lost wake-up shows as a timeout, a late one as slowness.
  TestType fixture;
  Store& store = *fixture.store;
  constexpr int kTurns = 200;
  std::string failure;
  std::jthread other([&] {
    try {
      for (int i = 0; i < kTurns; ++i) {
        store.set("pong/" + std::to_string(i), store.wait_for("ping/" + std::to_string(i), 20s) + "!");
      }
    } catch (const Error& error) {
      failure = error.what();
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    store.set("ping/" + std::to_string(i), std::to_string(i));
    REQUIRE(store.wait_for("pong/" + std::to_string(i), 20s) == std::to_string(i) + "!");
  }
  other.join();
  CHECK(failure.empty());
}

TEMPLATE_LIST_TEST_CASE("store: one set wakes every waiter", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  std::vector<std::string> seen(8);
  {
    std::vector<std::jthread> waiters;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      waiters.emplace_back([&store, &value = seen[i], i] {
        try {
          store.set("waiting/" + std::to_string(i), "");
          value = store.wait_for("key", 20s);
        } catch (const Error& error) {
          value = error.what();
        }
      });
    }
    for (std::size_t i = 0; i < seen.size(); ++i) store.wait_for("waiting/" + std::to_string(i), 20s);
    store.set("key", "for all");
  }
  for (const auto& value : seen) CHECK(value == "for all");
}

TEMPLATE_LIST_TEST_CASE("store: a wait for a key that is erased and set again returns what was set last", "[store]",
                        Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  store.set("key", "old");
  store.erase("key");
  std::jthread setter([&] { store.set("key", "new"); });
  CHECK(store.wait_for("key", 20s) == "new");
}

TEMPLATE_LIST_TEST_CASE("store: a timeout comes on time and names the key", "[store]", Stores) {
  TestType fixture;
  const Ended ended = wait_to_its_end(*fixture.store, "rank/3", WaitContext(Deadline::after(120ms)));
  CHECK(ended.code == ErrorCode::timeout);
  INFO(ended.text);
  CHECK(has(ended.text, "key '"));
  CHECK(has(ended.text, "rank/3'"));
  CHECK(ended.after >= 100ms);
  CHECK(ended.after < kPrompt);
}

TEMPLATE_LIST_TEST_CASE("store: a wait without time looks once", "[store]", Stores) {
  TestType fixture;
  CHECK(wait_to_its_end(*fixture.store, "key", WaitContext(Deadline::after(0s))).code == ErrorCode::timeout);
  fixture.store->set("key", "value");
  CHECK(wait_to_its_end(*fixture.store, "key", WaitContext(Deadline::after(0s))).text == "value");
}

TEMPLATE_LIST_TEST_CASE("store: a timeout's message is one short line whatever the key", "[store]", Stores) {
  TestType fixture;
  const std::string key = "line\nbreak\x01'" + std::string(10'000, 'x') + "end";
  const Ended ended = wait_to_its_end(*fixture.store, key, WaitContext(Deadline::after(1ms)));
  CHECK(ended.code == ErrorCode::timeout);
  INFO(ended.text);
  CHECK(has(ended.text, "line\\x0abreak\\x01\\x27"));
  CHECK(has(ended.text, "end'"));
  CHECK(ended.text.find('\n') == std::string::npos);
  CHECK(ended.text.size() < 500);
}

TEMPLATE_LIST_TEST_CASE("store: an abort of the job ends a wait within a second", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  const auto page = ControlPage::in_memory(1);
  std::jthread aborter([&] {
    try {
      store.wait_for("waiting", 20s);
    } catch (const Error&) {
    }
    page->abort({.code = ErrorCode::peer_lost, .rank = 2, .message = "rank 2 is gone"});
  });
  store.set("waiting", "");
  const Ended ended = wait_to_its_end(store, "never", WaitContext(Deadline::after(20s), page.get()));
  CHECK(ended.code == ErrorCode::peer_lost);
  INFO(ended.text);
  CHECK(has(ended.text, "rank 2 is gone"));
  CHECK(ended.after < kPrompt);
}

namespace {

// Looks into the store that is being waited on, as the group layer does to tell who is missing.
class Looker : public WaitObserver {
 public:
  explicit Looker(Store& store) : store_(store) {}
  bool on_slow(Duration) override { throw Error(ErrorCode::mismatch, std::to_string(store_.add("looked", 1))); }
  void on_timeout(Duration) override { throw Error(ErrorCode::timeout, "never looked"); }

 private:
  Store& store_;
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("store: whoever observes a wait may use the store", "[store]", Stores) {
  TestType fixture;
  Looker looker(*fixture.store);
  const Ended ended =
      wait_to_its_end(*fixture.store, "never", WaitContext(Deadline::after(20s), nullptr, nullptr, &looker));
  CHECK(ended.code == ErrorCode::mismatch);
  CHECK(ended.text == "1");
}
