// Who waits for whom when several write.
#include "store/key_lock.hpp"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>

#include "store/file_store.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"

using namespace col;
using namespace col::store;
using namespace col::test;
using namespace std::chrono_literals;

TEST_CASE("file store: a lock that is never released ends in an error that says how to find its holder", "[store]") {
  const TempDir path;
  const Directory directory(path.path());
  const auto store = make_file_store(path.path(), {.lock_timeout = 60ms});
  {
    const KeyLock held(directory, "counter", "counter", 1s);
    const auto start = std::chrono::steady_clock::now();
    CHECK_NOTHROW(require_error(ErrorCode::io, {"key 'counter'", "60ms", "fuser -v " + path.path() + "/lock"},
                                [&] { store->add("counter", 1); }));
    CHECK(std::chrono::steady_clock::now() - start >= 60ms);
    CHECK(std::chrono::steady_clock::now() - start < col::test::kPrompt);
    CHECK_THROWS_AS(store->set("counter", "1"), Error);
    CHECK_THROWS_AS(store->erase("counter"), Error);
    CHECK_THROWS_AS(store->compare_set("counter", std::nullopt, "1"), Error);
    CHECK_FALSE(store->get("counter").has_value());  // readers wait for nobody
    CHECK(store->num_keys() == 0);
    store->set("another", "1");  // nor do writers of other keys
  }
  CHECK(store->add("counter", 1) == 1);
}

TEST_CASE("file store: the lock of a killed process is free", "[store]") {
  const TempDir path;
  const Directory directory(path.path());
  const auto store = make_file_store(path.path(), {.lock_timeout = 10s});
  Child holder([&] {
    const KeyLock held(directory, "key", "key", 1s);
    store->set("holding", "");
    ::pause();
  });
  store->wait_for("holding", 20s);
  CHECK_THROWS_AS(make_file_store(path.path(), {.lock_timeout = 1ms})->set("key", "value"), Error);
  holder.kill();
  store->set("key", "value");
  CHECK(store->get("key") == "value");
}

TEST_CASE("file store: a child that was forked while a lock was held does not keep it", "[store]") {
  const TempDir path;
  const Directory directory(path.path());
  const auto store = make_file_store(path.path(), {.lock_timeout = 5s});
  std::optional<KeyLock> held;
  held.emplace(directory, "key", "key", 1s);
  const Child child([] { ::pause(); });
  held.reset();
  store->set("key", "value");
  CHECK(store->get("key") == "value");
}
