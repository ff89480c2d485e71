#include "launch/error_file.hpp"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using col::launch::read_error_file;

TEST_CASE("error file: tells causes from their consequences", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/error.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
    return read_error_file(path);
  };
  for (const char* code : {"peer_lost", "aborted"}) {
    const auto error = read(std::string(R"({"code":")") + code + R"(","rank":2,"group":"g","message":"m"})");
    REQUIRE(error);
    CHECK(error->is_collateral());
  }
  const auto mismatch = read(R"({"code":"mismatch","message":"two\nlines"})");
  REQUIRE(mismatch);
  CHECK_FALSE(mismatch->is_collateral());
  CHECK(mismatch->message == "two lines");
}

TEST_CASE("error file: anything else counts as not written", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/error.json";
  CHECK_FALSE(read_error_file(path));
  for (const char* text : {"", "{", "[]", "7", "null", R"({"code":7})", R"({"message":"m"})"}) {
    std::ofstream(path, std::ios::trunc) << text;
    CHECK_FALSE(read_error_file(path));
  }
  const std::string fifo = directory.path() + "/fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_FALSE(read_error_file(fifo));  // and does not wait for a writer
}
