// Scopes of one store, and URLs of stores.
#include <string>
#include <utility>
#include <vector>

#include "conformance/store/stores.hpp"

using namespace col;
using namespace col::test;
using namespace std::string_literals;

TEMPLATE_LIST_TEST_CASE("store: keys of another run id or an older generation are never seen", "[store]", Stores) {
  TestType fixture;
  const auto scope = [&](const char* run, const char* generation) {
    return make_prefix_store(make_prefix_store(fixture.store, run), generation);
  };
  const auto now = scope("run-7", "1");
  for (const auto& [run, generation] :
       {std::pair("run-7", "0"), {"run-7", "2"}, {"run-70", "1"}, {"run-", "71"}, {"", "1"}}) {
    const auto other = scope(run, generation);
    other->set("rank/0", "stale");
    other->add("counter", 100);
  }
  CHECK(now->num_keys() == 0);
  CHECK_FALSE(now->get("rank/0").has_value());
  CHECK_THROWS_AS(now->wait_for("rank/0", std::chrono::milliseconds(20)), Error);
  CHECK_FALSE(now->erase("rank/0"));
  CHECK(now->add("counter", 1) == 1);
  CHECK(now->compare_set("rank/0", std::nullopt, "fresh") == std::nullopt);
  CHECK(now->num_keys("rank/") == 1);
  CHECK(scope("run-7", "1")->get("rank/0") == "fresh");  // the same scope, made anew
}

TEMPLATE_LIST_TEST_CASE("store: scopes cannot collide whatever bytes prefixes and keys hold", "[store]", Stores) {
  TestType fixture;
  const std::vector<std::string> texts{
      "",      ".",   "..",   "a",       "b",      "ab",   "a/b",    "/",     "1:a,",
      "1:a,.", "0:,", ".a",   "0:,.",    "1:",     ",",    "1",      "a\0b"s, "%",
      "2:ab,", "\n",  "\xff", "1:a,1:b", "1:a,.b", "a,.b", "1:b,.a", "\0"s,   std::string(300, 'p')};
  // Every key in every scope of depth one and two.
  std::vector<std::shared_ptr<Store>> scopes;
  for (const auto& outer : texts) {
    const auto scope = make_prefix_store(fixture.store, outer);
    scopes.push_back(scope);
    for (const auto& inner : {""s, "a"s, "."s, "1:a,"s, ".b"s, "b"s}) scopes.push_back(make_prefix_store(scope, inner));
  }
  const std::vector<std::string> keys{"", "a", "b", ".", ".a", "1:a,.b", "1:b,", "\0"s};
  std::size_t number = 0;
  for (const auto& scope : scopes) {
    for (const auto& key : keys) {
      INFO("scope and key number " << number);
      REQUIRE(scope->compare_set(key, std::nullopt, std::to_string(number)) == std::nullopt);
      ++number;
    }
  }
  for (const auto& scope : scopes) REQUIRE(scope->num_keys() == keys.size());
  number = 0;
  for (const auto& scope : scopes) {
    for (const auto& key : keys) REQUIRE(scope->get(key) == std::to_string(number++));
  }
}

TEST_CASE("store: a scope needs a store", "[store]") {
  expect_error(ErrorCode::invalid_argument, "", [] { make_prefix_store(nullptr, "x"); });
}

TEST_CASE("store: a URL names a directory, with percent-encoding", "[store]") {
  const TempDir directory;
  open_store("file://" + directory.path() + "/a%20b%2Fc%25")->set("key", "value");
  CHECK(make_file_store(directory / "a b/c%")->get("key") == "value");
}

TEST_CASE("store: a URL that names no store is refused with the form that works", "[store]") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "no scheme"},
      {"/tmp/store", "no scheme"},
      {"file:/tmp/store", "no scheme"},
      {"tcp://", "needs a host and a port"},
      {"tcp://host", "needs a host and a port"},
      {"tcp://host:", "needs a host and a port"},
      {"tcp://:1234", "needs a host and a port"},
      {"tcp://host:0", "needs a host and a port"},
      {"tcp://host:65536", "needs a host and a port"},
      {"tcp://host:-1", "needs a host and a port"},
      {"tcp://host:12x", "needs a host and a port"},
      {"tcp://::1:1234", "needs a host and a port"},
      {"tcp://host/dir:1234", "needs a host and a port"},
      {"FILE:///tmp", "scheme 'FILE'"},
      {"redis\n://host", "scheme 'redis\\x0a'"},
      {"file://dir", "three slashes and an absolute path"},
      {"file://", "three slashes and an absolute path"},
      {"file:///", "names no directory"},
      {"file:////", "names no directory"},
      {"file:///a%", "two hexadecimal digits"},
      {"file:///a%2", "two hexadecimal digits"},
      {"file:///a%2g", "two hexadecimal digits"},
      {"file:///a%00b", "zero byte"},
  };
  for (const auto& [url, reason] : cases) {
    INFO(url);
    const Error error = expect_error(ErrorCode::invalid_argument, reason, [&url = url] { open_store(url); });
    INFO(error.message());
    CHECK(has(error.message(), "file:///dir"));
    CHECK(has(error.message(), "tcp://host:port"));
  }
}
