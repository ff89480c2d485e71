#include "launch/nodes/wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using col::launch::Wire;
using col::tools::UniqueFd;
using nlohmann::json;

namespace {

// A wire, and the other end of its socket in the hands of the test.
struct Line {
  Line() : Line(make()) {}
  explicit Line(std::pair<UniqueFd, UniqueFd> ends) : wire(std::move(ends.first)), peer(std::move(ends.second)) {}
  static std::pair<UniqueFd, UniqueFd> make() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
  // Writes all of it, the wire reading meanwhile.
  std::vector<json> feed(std::string text) {
    std::vector<json> messages;
    while (!text.empty() && !wire.broken()) {
      const ssize_t written = ::send(peer.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (written > 0) text.erase(0, static_cast<std::size_t>(written));
      for (json& message : wire.receive()) messages.push_back(std::move(message));
    }
    for (json& message : wire.receive()) messages.push_back(std::move(message));
    return messages;
  }
  std::string read_some() {
    std::string text(1 << 20, '\0');
    const ssize_t length = ::recv(peer.get(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
    return text;
  }
  Wire wire;
  UniqueFd peer;
};

// A message of exactly `bytes` bytes, its end of line not counted.
std::string line_of(std::size_t bytes) {
  const std::string frame = R"({"a":""})";
  return R"({"a":")" + std::string(bytes - frame.size(), 'x') + "\"}\n";
}

}  // namespace

TEST_CASE("wire: a message is one line of JSON, and comes as it was sent", "[launch]") {
  auto [left, right] = Line::make();
  Wire one(std::move(left)), other(std::move(right));
  const std::vector<json> messages = {{{"say", "hello"}, {"n", -3}, {"list", {1, 2.5, nullptr, "ä\n\"\\"}}},
                                      json::object(),
                                      {{"text", std::string("\0x", 2)}}};
  CHECK(one.all_sent());
  for (const json& message : messages) one.send(message);
  CHECK(one.all_sent());
  CHECK(other.receive() == messages);
  CHECK(other.receive().empty());
  other.send({{"back", true}});
  CHECK(one.receive() == std::vector<json>{{{"back", true}}});
  CHECK_FALSE(one.broken());
  CHECK_FALSE(other.broken());
}

TEST_CASE("wire: text that is no UTF-8 is sent with the bytes replaced that are none", "[launch]") {
  auto [left, right] = Line::make();
  Wire one(std::move(left)), other(std::move(right));
  one.send({{"text", "a\xff"}});
  CHECK(other.receive() == std::vector<json>{{{"text", "a\uFFFD"}}});
}

TEST_CASE("wire: half lines wait for their rest", "[launch]") {
  Line line;
  CHECK(line.feed("{\"a\"").empty());
  CHECK(line.feed(":1}").empty());
  CHECK(line.feed("\n{\"b\":2}\n{\"c\"") == std::vector<json>{{{"a", 1}}, {{"b", 2}}});
  for (const char letter : std::string(":3}")) CHECK(line.feed(std::string(1, letter)).empty());
  CHECK(line.feed("\n") == std::vector<json>{{{"c", 3}}});
  CHECK_FALSE(line.wire.broken());
}

TEST_CASE("wire: what is no JSON object breaks the connection, what came before counts", "[launch]") {
  for (const std::string garbage :
       {"", "[1]", "3", "null", "\"text\"", "{", "{}}", "GET / HTTP/1.1\r", "{\"a\":1}{", "\xff\xfe", "{\"a\":nan}"}) {
    INFO("'" << garbage << "'");
    Line line;
    CHECK(line.feed("{\"a\":1}\n" + garbage + "\n{\"b\":2}\n") == std::vector<json>{{{"a", 1}}});
    CHECK(line.wire.broken());
    CHECK_THAT(line.wire.why_broken(), Catch::Contains("something else than col's launchers"));
    CHECK(line.wire.receive().empty());
    line.wire.send({{"x", 1}});
    CHECK(line.read_some().empty());
    CHECK(line.wire.all_sent());
  }
}

TEST_CASE("wire: a stranger's line is short, and ends the connection when it is not", "[launch]") {
  SECTION("without an end") {
    Line line;
    CHECK(line.feed(std::string(2 * Wire::kMaxStranger, 'x')).empty());
    CHECK_THAT(line.wire.why_broken(), Catch::Contains("too long"));
  }
  SECTION("with one") {
    Line line;
    CHECK(line.feed(line_of(Wire::kMaxStranger + 10)).empty());
    CHECK_THAT(line.wire.why_broken(), Catch::Contains("too long"));
  }
  SECTION("of just that size it goes") {
    Line line;
    CHECK(line.feed(line_of(Wire::kMaxStranger - 1)).size() == 1);
    CHECK_FALSE(line.wire.broken());
  }
  SECTION("one who is trusted may send more") {
    Line line;
    line.wire.trust();
    CHECK(line.feed(line_of(20 * Wire::kMaxStranger)).size() == 1);
    CHECK_FALSE(line.wire.broken());
  }
}

TEST_CASE("wire: a stranger cannot keep us busy with many messages", "[launch]") {
  Line line;
  std::string many;
  for (int count = 0; count < 100'000; ++count) many += "{}\n";
  CHECK(line.feed(many).size() < 50'000);
  CHECK(line.wire.broken());
}

TEST_CASE("wire: deeply nested text does no harm", "[launch]") {
  Line line;
  const std::size_t depth = 30'000;
  const auto messages = line.feed("{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}\n");
  CHECK(messages.size() <= 1);
}

TEST_CASE("wire: the end of the connection is told once all that came is delivered", "[launch]") {
  Line line;
  const std::string text = "{\"a\":1}\n{\"half\":";
  REQUIRE(::send(line.peer.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  line.peer.reset();
  CHECK(line.wire.receive() == std::vector<json>{{{"a", 1}}});
  CHECK(line.wire.broken());
  CHECK(line.wire.why_broken() == "the connection was closed");
  line.wire.send({{"b", 2}});
  CHECK(line.wire.why_broken() == "the connection was closed");
}

TEST_CASE("wire: sending to one who is gone breaks the connection, with no signal", "[launch]") {
  Line line;
  line.peer.reset();
  line.wire.send({{"a", 1}});
  CHECK(line.wire.broken());
  CHECK_FALSE(line.wire.why_broken().empty());
}

TEST_CASE("wire: one who does not read for a while gets everything later, and in order", "[launch]") {
  Line line;
  const json message = {{"a", std::string(300'000, 'y')}};
  for (int count = 0; count < 10; ++count) line.wire.send(message);
  CHECK_FALSE(line.wire.all_sent());
  std::string all;
  while (!line.wire.all_sent()) {
    all += line.read_some();
    line.wire.flush();
    REQUIRE_FALSE(line.wire.broken());
  }
  for (std::string more = line.read_some(); !more.empty(); more = line.read_some()) all += more;
  std::string expected;
  for (int count = 0; count < 10; ++count) expected += message.dump() + "\n";
  CHECK(all == expected);
}

TEST_CASE("wire: one who never reads is given up, before it costs all memory", "[launch]") {
  Line line;
  const json message = {{"a", std::string(16 << 20, 'z')}};
  int sent = 0;
  for (; !line.wire.broken() && sent < 100; ++sent) line.wire.send(message);
  CHECK(sent <= 18);
  CHECK(line.wire.why_broken() == "it does not read what it is sent");
  CHECK(line.wire.all_sent());
}
