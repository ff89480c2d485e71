// The names of keys' files, and the buckets of keys whose names are too long.
#include "store/key_file.hpp"

#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include <col/error.hpp>
#include <col/store.hpp>

#include "store/file_store.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col;
using namespace col::store;
using namespace std::string_literals;

TEST_CASE("file name: ordinary keys can be read, others are escaped", "[store]") {
  CHECK(file_name("rank-0_A.b:c,d=e@f+g", default_hash).name == "rank-0_A.b:c,d=e@f+g");
  CHECK(file_name("a/b", default_hash).name == "a%2Fb");
  CHECK(file_name("a%2Fb", default_hash).name == "a%252Fb");
  CHECK(file_name("", default_hash).name == "%");
  CHECK(file_name("..", default_hash).name == "%2E.");
  CHECK(file_name("\0\xff"s, default_hash).name == "%00%FF");
}

TEST_CASE("file name: no two keys of up to two bytes share a name, and none is hidden or a path", "[store]") {
  std::set<std::string> names;
  const auto add = [&](const std::string& key) {
    const FileName file = file_name(key, default_hash);
    const bool usable = !file.bucket && is_key_file(file.name) && !is_bucket(file.name) &&
                        file.name.find('/') == std::string::npos && file.name.find('\0') == std::string::npos;
    if (!usable || !names.insert(file.name).second) FAIL("key of " << key.size() << " bytes: " << file.name);
  };
  add("");
  for (int a = 0; a < 256; ++a) {
    add(std::string(1, static_cast<char>(a)));
    for (int b = 0; b < 256; ++b) add(std::string{static_cast<char>(a), static_cast<char>(b)});
  }
  CHECK(names.size() == 1 + 256 + 65536);
}

TEST_CASE("file name: a name is never longer than the limit, and longer keys go to buckets", "[store]") {
  CHECK_FALSE(file_name(std::string(kLongestName, 'k'), default_hash).bucket);
  CHECK(file_name(std::string(kLongestName + 1, 'k'), default_hash).bucket);
  CHECK(file_name(std::string(kLongestName / 3 + 1, '/'), default_hash).bucket);
  CHECK(file_name(std::string(1 << 20, '/'), default_hash).name.size() <= kLongestName);
}

TEST_CASE("file store: long keys whose hashes collide keep their own values", "[store]") {
  const test::TempDir directory;
  const auto store = make_file_store(directory.path(), {.hash = [](std::string_view) { return std::uint64_t{7}; }});
  const std::string long_key(300, 'k');
  const auto key = [&](int i) { return long_key + std::to_string(i); };
  for (int i = 0; i < 5; ++i) store->set(key(i), std::to_string(i));
  const auto files = std::filesystem::directory_iterator(directory / "keys");
  CHECK(std::distance(begin(files), end(files)) == 1);
  CHECK(store->num_keys() == 5);
  CHECK(store->num_keys(key(3)) == 1);
  CHECK(store->add(key(3), 10) == 13);
  CHECK(store->compare_set(key(4), "4", "four") == "4");
  CHECK(store->compare_set(key(5), std::nullopt, "5") == std::nullopt);
  CHECK(store->erase(key(0)));
  CHECK_FALSE(store->erase(key(0)));
  CHECK_FALSE(store->get(key(0)).has_value());
  CHECK(store->get(key(1)) == "1");
  CHECK(store->num_keys(long_key) == 5);
  // A waiter sees its key appear in a file that exists already.
  std::jthread setter([&] { store->set(key(9), "nine"); });
  CHECK(store->wait_for(key(9), std::chrono::seconds(20)) == "nine");
  setter.join();
  for (int i : {1, 2, 3, 4, 5, 9}) CHECK(store->erase(key(i)));
  CHECK(std::filesystem::is_empty(directory / "keys"));
}

TEST_CASE("bucket: keys are found, replaced, counted and removed each by itself", "[store]") {
  std::string bucket = bucket_with("", "one", "1");
  bucket = bucket_with(bucket, "two", "\0\0"s);
  bucket = bucket_with(bucket, "", "");
  CHECK(bucket_find(bucket, "one") == "1");
  CHECK(bucket_find(bucket, "two") == "\0\0"s);
  CHECK(bucket_find(bucket, "") == "");
  CHECK_FALSE(bucket_find(bucket, "on").has_value());
  CHECK(bucket_count(bucket, "") == 3);
  CHECK(bucket_count(bucket, "o") == 1);
  bucket = bucket_with(bucket, "one", "uno");
  CHECK(bucket_count(bucket, "") == 3);
  CHECK(bucket_find(bucket, "one") == "uno");
  CHECK(bucket_without(bucket, "three") == bucket_with(bucket_without(bucket, "one"), "one", "uno"));
  bucket = bucket_without(bucket_without(bucket, "one"), "");
  CHECK(bucket_count(bucket, "") == 1);
  CHECK(bucket_without(bucket, "two").empty());
}

TEST_CASE("bucket: damaged bytes are an error, never a read beyond them", "[store]") {
  const std::string bucket = bucket_with(bucket_with("", "one", "1"), "two", "2");
  const std::size_t first = bucket_with("", "one", "1").size();
  for (std::size_t size = 1; size < bucket.size(); ++size) {
    if (size == first) continue;  // a whole record
    INFO(size);
    CHECK_THROWS_AS(bucket_count(bucket.substr(0, size), ""), Error);
  }
  CHECK_THROWS_AS(bucket_find(std::string(16, '\xff'), "key"), Error);
}
