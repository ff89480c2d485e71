#include "launch/processes/error_file.hpp"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using col::launch::read_error_file;
using col::launch::read_error_files;
using col::launch::read_torch_error_file;

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

TEST_CASE("error file: torch's is read, too", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/torch.json";
  const auto read = [&](const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
    return read_torch_error_file(path);
  };
  const auto error = read(R"({"message":{"message":"RuntimeError: boom\nat once",
                          "extraInfo":{"py_callstack":"Traceback …","timestamp":"1785578400"}}})");
  REQUIRE(error);
  CHECK(error->code.empty());
  CHECK(error->message == "RuntimeError: boom at once");
  CHECK_FALSE(error->is_collateral());
  const auto plain = read(R"({"message":"Signal 15 (SIGTERM) received"})");
  REQUIRE(plain);
  CHECK(plain->message == "Signal 15 (SIGTERM) received");
  // A long stack, as of a deep network.
  const auto deep =
      read(R"({"message":{"message":"m","extraInfo":{"py_callstack":")" + std::string(300'000, 'x') + R"("}}})");
  REQUIRE(deep);
  CHECK(deep->message == "m");
  for (const char* text :
       {"", "{", "[]", R"({"message":7})", R"({"message":{}})", R"({"message":{"message":[]}})", R"({"message":""})"})
    CHECK_FALSE(read(text));
}

TEST_CASE("error file: a rank's own word counts more than torch's", "[launch]") {
  const col::test::TempDir directory;
  const std::string own = directory.path() + "/own.json", torch = directory.path() + "/torch.json";
  CHECK_FALSE(read_error_files(own, torch));
  std::ofstream(torch) << R"({"message":{"message":"RuntimeError: peer_lost: …"}})";
  REQUIRE(read_error_files(own, torch));
  CHECK(read_error_files(own, torch)->code.empty());
  std::ofstream(own) << R"({"code":"peer_lost","message":"m"})";
  REQUIRE(read_error_files(own, torch));
  CHECK(read_error_files(own, torch)->is_collateral());
}

TEST_CASE("error file: what would not fit a line is cut, and control characters are shown", "[launch]") {
  const col::test::TempDir directory;
  const std::string path = directory.path() + "/error.json";
  std::ofstream(path) << R"({"code":"io","message":"\u001b[31m)" << std::string(5000, 'x') << "\"}";
  const auto error = read_error_file(path);
  REQUIRE(error);
  CHECK(error->message.size() == 2000);
  CHECK(error->message.find("\\x1b[31mxx") == 0);
}
