#include "store/bucket.hpp"

#include <string>

#include <col/error.hpp>

#include "support/catch.hpp"

using namespace col;
using namespace col::store;
using namespace std::string_literals;

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
