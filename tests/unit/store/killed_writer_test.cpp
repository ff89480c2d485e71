// Writers that are killed at any moment.
#include <time.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>
#include <string>

#include "store/file_store.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

constexpr auto kLockTimeout = 5s;

// A letter as often as the number before it says: a part of it, or two mixed, show.
std::string whole_value(unsigned random) {
  const std::size_t size = random % 300'000;
  return std::to_string(size) + ":" + std::string(size, static_cast<char>('a' + random % 26));
}

bool is_whole(const std::string& value) {
  const auto colon = value.find(':');
  if (colon == std::string::npos || value.substr(0, colon) != std::to_string(value.size() - colon - 1)) return false;
  return value.find_first_not_of(value.back(), colon + 1) == std::string::npos || value.back() == ':';
}

// Writes until it is killed.
[[noreturn]] void write_for_ever(Store& store, const std::string& key, unsigned seed) {
  std::mt19937 random(seed);
  while (true) {
    store.set(key, whole_value(static_cast<unsigned>(random())));
    store.add("writes", 1);
    store.compare_set("flag", "on", "off");
    store.compare_set("flag", "off", "on");
    if (random() % 16 == 0) store.erase(key);
  }
}

}  // namespace

TEST_CASE("file store: a killed writer leaves no torn value and blocks nobody", "[store]") {
  const unsigned seed = std::random_device{}();
  std::cout << "killed writers: seed " << seed << std::endl;
  std::mt19937 random(seed);
  const TempDir directory;
  const auto store = store::make_file_store(directory.path(), {.lock_timeout = kLockTimeout});
  int values_seen = 0;
  for (int round = 0; round < 100; ++round) {
    INFO("seed " << seed << ", round " << round);
    const std::string key = round % 2 == 0 ? "key" : std::string(400, 'k');
    store->set("flag", "on");
    store->erase("writes");
    const auto child_seed = static_cast<unsigned>(random());
    Child writer([&] { write_for_ever(*store, key, child_seed); });
    store->wait_for("writes", 20s);  // it is at it
    const timespec moment{0, static_cast<long>(random() % 3'000'000)};
    ::nanosleep(&moment, nullptr);  // any moment: this is no synchronisation
    writer.kill();
    REQUIRE(writer.outcome() == "signal 9");

    const auto value = store->get(key);
    if (value) {
      ++values_seen;
      REQUIRE(is_whole(*value));
    }
    const auto flag = store->get("flag");
    REQUIRE((flag == "on" || flag == "off"));
    const auto writes = std::stoll(store->get("writes").value());
    REQUIRE(writes >= 1);
    REQUIRE(store->num_keys() == (value ? 3 : 2));
    // Its locks are gone with it: these would throw after the lock timeout.
    REQUIRE(store->add("writes", 1) == writes + 1);
    store->set(key, "after");
    REQUIRE(store->get(key) == "after");
    REQUIRE(store->compare_set("flag", flag, "taken") == flag);
    REQUIRE(store->erase(key));
  }
  CHECK(values_seen > 0);
  const auto litter = std::filesystem::directory_iterator(directory / "tmp");
  CHECK(std::distance(begin(litter), end(litter)) <= 100);  // at most one file of each
}
