// What launchers of several nodes send one another, and how.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "json/packed_json.hpp"
#include "launch/nodes/agent_job.hpp"
#include "launch/nodes/node_messages.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/report/report_json.hpp"
#include "support/catch.hpp"
#include "unit/launch/output_support.hpp"

using col::launch::Wire;
using col::tools::UniqueFd;
using nlohmann::json;
using namespace col::launch;
using namespace col::test;
using frames::frame_of;

namespace {

std::vector<json> received(Wire& wire) {
  std::vector<json> messages;
  while (auto message = wire.next()) messages.push_back(*std::move(message));
  return messages;
}

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
      for (json& message : received(wire)) messages.push_back(std::move(message));
    }
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

TEST_CASE("wire: a message comes as it was sent, between strangers and between those that trust each other",
          "[launch]") {
  auto [left, right] = Line::make();
  Wire one(std::move(left)), other(std::move(right));
  const std::vector<json> messages = {{{"say", "hello"}, {"n", -3}, {"list", {1, 2.5, nullptr, "ä\n\"\\"}}},
                                      json::object(),
                                      {{"text", std::string("\0x", 2)}}};
  for (const bool trusts : {false, true}) {
    if (trusts) one.trust(), other.trust();
    CHECK(one.all_sent());
    for (const json& message : messages) one.send(message);
    CHECK(one.all_sent());
    CHECK(received(other) == messages);
    CHECK(received(other).empty());
    other.send({{"back", true}});
    CHECK(received(one) == std::vector<json>{{{"back", true}}});
  }
  CHECK_FALSE(one.broken());
  CHECK_FALSE(other.broken());
}

TEST_CASE("wire: who comes to trust the other side reads frames behind the line that has told", "[launch]") {
  Line line;
  const std::string text = "{\"say\":\"welcome\"}\n" + frame_of(col::core::packed(json{{"say", "start"}}));
  REQUIRE(::send(line.peer.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  CHECK(line.wire.next() == json{{"say", "welcome"}});
  line.wire.trust();
  CHECK(line.wire.next() == json{{"say", "start"}});
  CHECK_FALSE(line.wire.next());
  CHECK_FALSE(line.wire.broken());
}

TEST_CASE("wire: of text that is no UTF-8 a stranger gets the bytes replaced, who is trusted all of them", "[launch]") {
  auto [left, right] = Line::make();
  Wire one(std::move(left)), other(std::move(right));
  one.send({{"text", "a\xff"}});
  CHECK(received(other) == std::vector<json>{{{"text", "a\uFFFD"}}});
  one.trust(), other.trust();
  one.send({{"text", "a\xff"}});
  CHECK(received(other) == std::vector<json>{{{"text", "a\xff"}}});
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
    CHECK(received(line.wire).empty());
    line.wire.send({{"x", 1}});
    CHECK(line.read_some().empty());
    CHECK(line.wire.all_sent());
  }
}

TEST_CASE("wire: half frames wait for their rest", "[launch]") {
  Line line;
  line.wire.trust();
  const std::string frame = frame_of(col::core::packed(json{{"a", std::string(300, 'x')}}));
  for (const char byte : frame.substr(0, frame.size() - 1)) REQUIRE(line.feed(std::string(1, byte)).empty());
  CHECK(line.feed(frame.substr(frame.size() - 1) + frame + frame.substr(0, 2)).size() == 2);
  CHECK(line.feed(frame.substr(2)).size() == 1);
  CHECK_FALSE(line.wire.broken());
}

TEST_CASE("wire: a frame that is no message breaks the connection, what came before counts", "[launch]") {
  const std::string good = frame_of(col::core::packed(json{{"a", 1}}));
  const std::string deep = std::string(1000, '\x91') + '\x01';
  const std::string bytes_of_no_json(
      "\x81\xa1"
      "a\xc4\x01x",
      6),
      not_finite(
          "\x81\xa1"
          "a\xca\x7f\xc0\x00\x00",
          8);
  for (const std::string& wrong :
       {frame_of(""), frame_of(col::core::packed(json::array({1}))), frame_of(col::core::packed(json("text"))),
        frame_of(deep), frame_of("\xdd\xff\xff\xff\xff"), frame_of("\x81\x01\x01"),
        frame_of(std::string("\x80\x00", 2)), frame_of(bytes_of_no_json), frame_of(not_finite),
        std::string("{\"a\":1}\n"), std::string("GET / HTTP/1.1\r"),
        frame_of(col::core::packed(json{{"a", "long"}}).substr(0, 5))}) {
    INFO("'" << wrong << "'");
    Line line;
    line.wire.trust();
    CHECK(line.feed(good + wrong + good) == std::vector<json>{{{"a", 1}}});
    CHECK_THAT(line.wire.why_broken(), Catch::StartsWith("it sent something else than col's launchers do"));
    line.wire.send({{"x", 1}});
    CHECK(line.read_some().empty());
  }
}

TEST_CASE("wire: what is too long ends the connection before memory is taken for it", "[launch]") {
  SECTION("a stranger's line without an end") {
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
    CHECK(line.feed(frame_of(col::core::packed(json{{"a", std::string(20 * Wire::kMaxStranger, 'x')}}))).size() == 1);
    CHECK_FALSE(line.wire.broken());
  }
  SECTION("but not without end") {
    Line line;
    line.wire.trust();
    std::string head(frames::kHeadBytes, '\0');
    frames::put_head(head, Wire::kMaxFrame + 1);
    CHECK(line.feed(head).empty());
    CHECK_THAT(line.wire.why_broken(), Catch::Contains("too long"));
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
  CHECK(received(line.wire) == std::vector<json>{{{"a", 1}}});
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

TEST_CASE("wire: one who never reads is given up, before it costs all memory", "[launch][rest]") {
  Line line;
  const json message = {{"a", std::string(16 << 20, 'z')}};
  int sent = 0;
  for (; !line.wire.broken() && sent < 100; ++sent) line.wire.send(message);
  CHECK(sent <= 18);
  CHECK(line.wire.why_broken() == "it does not read what it is sent");
  CHECK(line.wire.all_sent());
}

TEST_CASE("node messages: what strangers leave out has its own value, what has another type is said", "[launch]") {
  const Hello none = read_as<Hello>(json::object());
  CHECK(
      (none.protocol == 0 && none.id.empty() && none.node_rank == -1 && none.local_ranks == 0 && !none.wants_stories));
  const json hello = message_of(Hello{.protocol = 1, .id = "a", .node_rank = -7, .wants_stories = true});
  CHECK(message_of(read_as<Hello>(hello)) == hello);
  for (const auto& [name, value] : hello.items()) {
    if (name == "say") continue;
    for (const json& wrong : {json(nullptr), json(0.5), json::array({1}), json(std::uint64_t{1} << 40)}) {
      json changed = hello;
      changed[name] = wrong;
      INFO(changed);
      CHECK_THROWS_WITH(read_as<Hello>(changed), Catch::StartsWith("'hello': at /" + name + ": should be "));
    }
  }
}

TEST_CASE("node messages: members of a launcher that is trusted have to be there", "[launch]") {
  const json failed = message_of(Failed{.restart = 2, .rank = 3, .collateral = true, .what = "fell"});
  CHECK(message_of(read_as<Failed>(failed)) == failed);
  for (const char* name : {"rank", "collateral", "what"}) {
    json without = failed;
    without.erase(name);
    CHECK_THROWS_AS(read_as<Failed>(without), MessageError);
  }
  json of_any_start = failed;
  of_any_start.erase("restart");
  CHECK_FALSE(read_as<Failed>(of_any_start).restart);
  for (const json& other : {json(nullptr), json(3), json("text"), json::array({"text"})}) {
    CHECK_THROWS_AS(read_as<Failed>(other), MessageError);
    CHECK(said(other).empty());
  }
}

TEST_CASE("node messages: only numbers of an int's range are numbers", "[launch]") {
  using Int = std::numeric_limits<int>;
  const auto rank = [](const json& number) {
    return read_as<Abort>({{"code", ""}, {"rank", number}, {"message", ""}}).rank;
  };
  for (const int number : {Int::max(), Int::min(), 42}) CHECK(rank(number) == number);
  CHECK(rank(std::uint64_t{42}) == 42);
  for (const std::int64_t number :
       {std::int64_t{Int::max()} + 1, std::int64_t{Int::min()} - 1, std::numeric_limits<std::int64_t>::min()})
    CHECK_THROWS_AS(rank(number), MessageError);
  for (const std::uint64_t number :
       {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max() - 9})
    CHECK_THROWS_AS(rank(number), MessageError);
}

TEST_CASE("node messages: causes and codes are known by their names", "[launch]") {
  for (int cause = 0; cause <= static_cast<int>(EndCause::launcher_failed); ++cause)
    CHECK(end_cause_from_string(to_string(static_cast<EndCause>(cause))) == static_cast<EndCause>(cause));
  CHECK(end_cause_from_string("nonsense") == EndCause::launcher_failed);
  CHECK(end_cause_from_string("") == EndCause::launcher_failed);
  for (int code = 0; code < 64; ++code) {
    const std::string_view name = col::to_string(static_cast<col::ErrorCode>(code));
    if (error_code_from_string(name)) CHECK(col::to_string(*error_code_from_string(name)) == name);
  }
  CHECK(error_code_from_string("peer_lost") == col::ErrorCode::peer_lost);
  CHECK(error_code_from_string("timeout") == col::ErrorCode::timeout);
  CHECK_FALSE(error_code_from_string("nonsense"));
  CHECK_FALSE(error_code_from_string(""));
}

TEST_CASE("node messages: an IPv6 address stands in brackets in a URL", "[launch]") {
  CHECK(url_host("10.0.0.1") == "10.0.0.1");
  CHECK(url_host("ada.example") == "ada.example");
  CHECK(url_host("fd00::1") == "[fd00::1]");
}

namespace {

// A launcher's end of the way, and the one whose launcher starts it.
struct Way {
  explicit Way(const std::string& begun = {}) : link(from_head.read.get(), begun, true) {
    ::signal(SIGPIPE, SIG_IGN);
    set_non_blocking(from_head.write);
    ranks.reset(::fcntl(link.ranks_end(), F_DUPFD_CLOEXEC, 3));
    set_non_blocking(ranks);
    const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    REQUIRE(::dup3(null.get(), link.ranks_end(), O_CLOEXEC) >= 0);
  }
  // Acts on what can be done at once. False when the other launcher is found gone.
  bool work() {
    pollfd events[2];
    for (;;) {
      link.prepare(events[0], events[1]);
      if (::poll(events, 2, 0) == 0) return true;
      if (!link.on_polled(events[0], events[1])) return false;
    }
  }
  std::size_t send(std::string_view text) {
    const ssize_t written = ::write(from_head.write.get(), text.data(), text.size());
    return written < 0 ? 0 : static_cast<std::size_t>(written);
  }
  // What the ranks can read now.
  std::string take() {
    std::string text(1 << 20, '\0');
    const ssize_t length = ::read(ranks.get(), text.data(), text.size());
    at_end = length == 0;
    return text.substr(0, length < 0 ? 0 : static_cast<std::size_t>(length));
  }

  Pipe from_head = make_pipe();
  HeadLink link;
  UniqueFd ranks;
  bool at_end = false;
};

HostSpec host(const char* name, int slots, int node_rank) {
  return {.name = name, .slots = slots, .node_rank = node_rank};
}

}  // namespace

TEST_CASE("head link: ranks read what is in the frames, however these are cut, and then the end", "[launch]") {
  const unsigned seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  std::string bytes, stream;
  while (bytes.size() < 1'000'000) {
    std::string piece(1 + below(kMaxInputBytes), '\0');
    for (char& byte : piece) byte = static_cast<char>(random());
    bytes += piece;
    stream += frame_of(piece);
  }
  stream += frame_of("");
  std::size_t sent = below(100'000);
  Way way(stream.substr(0, sent));
  std::string got;
  while (!way.at_end) {
    sent += way.send(std::string_view(stream).substr(sent, 1 + below(100'000)));
    REQUIRE(way.work());
    got += way.take();
  }
  CHECK(sent == stream.size());
  CHECK(got == bytes);
  CHECK(way.work());  // the input's end is not the other launcher's
  way.from_head.write.reset();
  CHECK_FALSE(way.work());
}

TEST_CASE("head link: while ranks do not read no more is taken, and the end of the way is seen", "[launch]") {
  Way way;
  const std::string full = frame_of(std::string(kMaxInputBytes, 'x'));
  std::size_t sent = 0, all = 0;
  do {
    sent = way.send(full.substr(all % full.size()));
    all += sent;
    REQUIRE(way.work());
  } while (sent > 0);
  CHECK(all < 1'000'000);
  way.from_head.write.reset();
  CHECK_FALSE(way.work());
}

TEST_CASE("head link: what nobody reads any more is thrown away", "[launch]") {
  Way way;
  const std::string some = frame_of(std::string(30'000, 'x'));
  for (int count = 0; count < 5; ++count) {
    REQUIRE(way.send(some) == some.size());
    REQUIRE(way.work());
  }
  way.ranks.reset();
  for (int count = 0; count < 100; ++count) {
    REQUIRE(way.work());
    REQUIRE(way.send(some) == some.size());
  }
  CHECK(way.work());
}

TEST_CASE("head link: what is no frame ends it", "[launch]") {
  Way way;
  way.send("no frame");
  CHECK_FALSE(way.work());
}

TEST_CASE("input hosts: ranks are dealt out in the order of the list", "[launch]") {
  JobSpec spec;
  spec.programs = {{.command = {"p"}, .ranks = 2}};
  Rendezvous meeting;
  meeting.node_rank = 1;  // ranks 3 and 4
  meeting.remotes = {host("a", 3, 0), host("b", 1, 2), host("c", 2, 3)};
  const auto readers = [&] {
    std::string names = reads_input_here(spec, meeting) ? "here" : "";
    for (const HostSpec& remote : meeting.remotes) names += reads_input(spec, meeting, remote) ? remote.name : "";
    return names;
  };
  const std::string by_rank[] = {"a", "a", "a", "here", "here", "b", "c", "c", ""};
  for (int rank = 0; rank < 9; ++rank) {
    spec.input = {.to = InputSpec::To::rank, .rank = rank};
    CHECK(readers() == by_rank[rank]);
  }
  spec.input = {.to = InputSpec::To::all};
  CHECK(readers() == "hereabc");
  spec.stdin_fd = -1;
  CHECK(readers().empty());
  spec.stdin_fd = 0;
  spec.input = {.to = InputSpec::To::none};
  CHECK(readers().empty());
  // This host is none of those in the list.
  meeting.node_rank = -1;
  spec.programs.front().ranks = 0;
  spec.input = {.to = InputSpec::To::rank, .rank = 3};
  CHECK(readers() == "b");
}
