// Setting, getting, erasing and counting, with every kind of key and value.
#include <string>
#include <vector>

#include "conformance/store/stores.hpp"

using namespace col;
using namespace col::test;
using namespace std::string_literals;

namespace {

std::string all_bytes() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

std::vector<std::string> odd_keys() {
  std::vector<std::string> keys{"",     ".",      "..",      "../up",  "a",    "A",        "a/b",   "a//b",
                                "/",    "a/",     "%",       "%%",     "%2F",  "a%2Fb",    "~",     " ",
                                "\n",   "a\nb",   "\0"s,     "a\0b"s,  "a\0"s, ".hidden",  "-rf",   "lock",
                                "tmp/", "keys/a", "1:a,.b",  "1:a,",   ".a",   "\xff\xfe", "grüße", "*?[",
                                "tmp",  "keys",   "%%00000", "a\\x00", "%00",  "a.b",      "a..b",  all_bytes()};
  // Around every limit of a file name: plain bytes, and bytes that take three in an encoding.
  for (const std::size_t length : {46, 47, 48, 49, 84, 85, 86, 142, 143, 144, 254, 255, 256, 1000, 5000}) {
    keys.emplace_back(length, 'k');
    keys.push_back(std::string(length, 'k') + "/");
    keys.emplace_back(length, '/');
    keys.emplace_back(length, '\0');
  }
  return keys;
}

// Bytes that show it when a part of them is missing, doubled or moved.
std::string counted_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  return bytes;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("store: what was set is what get and wait return", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  CHECK_FALSE(store.get("key").has_value());
  store.set("key", "value");
  CHECK(store.get("key") == "value");
  CHECK(store.wait_for("key", std::chrono::seconds(5)) == "value");
  store.set("key", "another");
  CHECK(store.get("key") == "another");
  store.set("key", "");
  CHECK(store.get("key") == "");
  CHECK_FALSE(store.get("Key").has_value());
  CHECK_FALSE(store.get("neighbour").has_value());
}

TEMPLATE_LIST_TEST_CASE("store: every key of any bytes and length has a value of its own", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  const auto keys = odd_keys();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    INFO("key number " << i << " of " << keys[i].size() << " bytes: " << keys[i]);
    REQUIRE_FALSE(store.get(keys[i]).has_value());  // none of the keys before is this one
    REQUIRE_FALSE(store.erase(keys[i]));
    store.set(keys[i], std::to_string(i));
  }
  CHECK(store.num_keys() == keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    INFO("key number " << i << " of " << keys[i].size() << " bytes: " << keys[i]);
    REQUIRE(store.get(keys[i]) == std::to_string(i));
    REQUIRE(store.wait_for(keys[i], std::chrono::seconds(5)) == std::to_string(i));
    REQUIRE(store.add(keys[i], 1) == static_cast<std::int64_t>(i) + 1);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    REQUIRE(store.get(keys[i]) == std::to_string(i + 1));
    REQUIRE(store.erase(keys[i]));
    REQUIRE_FALSE(store.get(keys[i]).has_value());
  }
  CHECK(store.num_keys() == 0);
}

TEMPLATE_LIST_TEST_CASE("store: values of any bytes and of 10 MB come back whole", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  for (const std::string& key : {"short"s, std::string(600, 'l')}) {
    for (const std::string& value : {""s, "\0"s, "\n"s, all_bytes(), counted_bytes(4096), counted_bytes(10'000'000)}) {
      store.set(key, value);
      REQUIRE(store.get(key) == value);
      REQUIRE(store.compare_set(key, value, "swapped") == value);
      REQUIRE(store.get(key) == "swapped");
    }
  }
}

TEMPLATE_LIST_TEST_CASE("store: erase says whether the key was set, and a key can be set again", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  CHECK_FALSE(store.erase("key"));
  store.set("key", "1");
  CHECK(store.erase("key"));
  CHECK_FALSE(store.erase("key"));
  CHECK_FALSE(store.get("key").has_value());
  CHECK(store.add("key", 5) == 5);
  CHECK_FALSE(store.erase("neighbour"));
}

TEMPLATE_LIST_TEST_CASE("store: num_keys counts the keys that start with a prefix", "[store]", Stores) {
  TestType fixture;
  Store& store = *fixture.store;
  CHECK(store.num_keys() == 0);
  const std::string long_prefix = "rank/" + std::string(300, 'x');
  for (const std::string& key :
       {"rank/0"s, "rank/1"s, "rank/10"s, "rank"s, ""s, "."s, ".x"s, "\0rank"s, long_prefix + "1", long_prefix + "2"})
    store.set(key, "value");
  CHECK(store.num_keys() == 10);
  CHECK(store.num_keys("rank") == 6);
  CHECK(store.num_keys("rank/") == 5);
  CHECK(store.num_keys("rank/1") == 2);
  CHECK(store.num_keys("rank/10") == 1);
  CHECK(store.num_keys("rank/100") == 0);
  CHECK(store.num_keys("ran%") == 0);
  CHECK(store.num_keys(".") == 2);
  CHECK(store.num_keys("\0"s) == 1);
  CHECK(store.num_keys(long_prefix) == 2);
  CHECK(store.num_keys(long_prefix + "2") == 1);
  store.set("rank/0", "again");
  CHECK(store.num_keys("rank/") == 5);
  store.erase("rank/0");
  store.erase(long_prefix + "2");
  CHECK(store.num_keys("rank/") == 3);
}
