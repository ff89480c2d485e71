#include "launch/nodes/node_link.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <col/proof.hpp>
#include "json/packed_json.hpp"

#include "launch/nodes/node_messages.hpp"
#include "launch/report/report_json.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = LinkEvent::Kind;

namespace {

const NodeLink::Time kLinkStart{std::chrono::hours(1)};
const Pulse kPulse;
const NodeHello kHello{
    .id = "run", .secret = "sesame", .node_rank = 2, .host = "ada", .local_ranks = 3, .master_port = 4711};

// A node's link, and the meeting's end of it in the hands of the test.
struct Talk {
  // The meeting has proven who it is, unless it is a stranger.
  explicit Talk(const std::string& address = "10.0.0.1", bool is_stranger = false) : Talk(make(), address) {
    if (!is_stranger) shake_hands("sesame");
  }
  Talk(std::pair<col::tools::UniqueFd, col::tools::UniqueFd> ends, const std::string& address)
      : link(std::move(ends.first), address, kHello, kLinkStart), meeting(std::move(ends.second)) {}
  static std::pair<col::tools::UniqueFd, col::tools::UniqueFd> make() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return {col::tools::UniqueFd(ends[0]), col::tools::UniqueFd(ends[1])};
  }
  // What the node answers to a challenge.
  json hello() {
    CHECK(hear({{"say", "challenge"}, {"protocol", kNodeProtocol}, {"nonce", "abc"}}).empty());
    const std::vector<json> answer = told();
    REQUIRE(answer.size() == 1);
    return answer[0];
  }
  std::vector<LinkEvent> shake_hands(const std::string& secret) {
    const std::string nonce = hello().at("nonce");
    const auto subject = node_proof_subject("run", "abc", nonce);
    const auto events = hear({{"say", "welcome"}, {"proof", col::make_proof(secret, col::ProofRole::server, subject)}});
    trusts = events.empty();
    return events;
  }
  // As often as its deadlines want it, and nothing happens.
  void look_until(NodeLink::Time from, NodeLink::Time::duration time) {
    for (NodeLink::Time now = from; now < from + time; now += kPulse.interval) CHECK(link.receive(now).empty());
    CHECK(link.receive(from + time).empty());
  }
  void say_bytes(const std::string& bytes) {
    REQUIRE(::send(meeting.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  std::vector<LinkEvent> hear(const json& message, NodeLink::Time now = kLinkStart) {
    say_bytes(bytes_of(message));
    return link.receive(now);
  }
  // As the link takes it.
  std::string bytes_of(const json& message) const {
    return trusts ? frames::frame_of(col::core::packed(message)) : message.dump() + "\n";
  }
  std::vector<json> told() {
    std::vector<json> messages;
    Wire wire(col::tools::UniqueFd(::dup(meeting.get())));
    if (trusts) wire.trust();
    while (auto message = wire.next()) messages.push_back(*std::move(message));
    return messages;
  }

  NodeLink link;
  col::tools::UniqueFd meeting;
  bool trusts = false;  // both
};

}  // namespace

TEST_CASE("node link: it says hello when it is asked, with all that the meeting wants to know but the secret",
          "[launch]") {
  Talk talk("10.0.0.1", /*is_stranger=*/true);
  CHECK(talk.told().empty());
  const json told = talk.hello();
  const std::string nonce = told.at("nonce");
  CHECK(told ==
        json({{"say", "hello"},
              {"protocol", kNodeProtocol},
              {"id", "run"},
              {"nonce", nonce},
              {"proof", col::make_proof("sesame", col::ProofRole::client, node_proof_subject("run", "abc", nonce))},
              {"node_rank", 2},
              {"host", "ada"},
              {"local_ranks", 3},
              {"master_port", 4711},
              {"wants_stories", true}}));
  CHECK(told.dump().find("sesame") == std::string::npos);
}

TEST_CASE("node link: who listens in the place of the meeting is not obeyed, and does not get the secret", "[launch]") {
  const json start = message_of(
      Start{.assignment = {.nodes = 1, .local_ranks = 3, .world_size = 3, .master_address = {}, .master_port = 2},
            .store_port = 1});
  const auto check_lost = [](const std::vector<LinkEvent>& events, const char* why) {
    REQUIRE(events.size() == 1);
    CHECK(events[0].kind == Kind::lost);
    CHECK_THAT(events[0].why, Catch::Contains(why));
  };
  for (const json& order : {start, json{{"say", "abort"}, {"code", "aborted"}}, json{{"say", "signal"}, {"signal", 15}},
                            json{{"say", "done"}, {"story", story_to_json({})}}, json{{"say", "welcome"}}}) {
    Talk at_once("10.0.0.1", true);
    check_lost(at_once.hear(order), "has not proven that it knows the COL_RDZV_TOKEN");
    CHECK(at_once.told().empty());
    Talk after_hello("10.0.0.1", true);
    (void)after_hello.hello();
    check_lost(after_hello.hear(order), "has not proven that it knows the COL_RDZV_TOKEN");
  }
  Talk wrong("10.0.0.1", true);
  check_lost(wrong.shake_hands("a guess"), "has not proven");
  Talk reflecting("10.0.0.1", true);
  const std::string own_proof = reflecting.hello().at("proof");
  check_lost(reflecting.hear({{"say", "welcome"}, {"proof", own_proof}}), "has not proven");
  Talk slow("10.0.0.1", true);
  (void)slow.hello();
  slow.look_until(kLinkStart, kPulse.silence);
  CHECK(slow.hear({{"say", "alive"}}, kLinkStart + kPulse.silence).empty());
  check_lost(slow.hear({{"say", "alive"}}, kLinkStart + kPulse.silence + milliseconds(1)),
             "has not proven who it is within");
}

TEST_CASE("node link: what it has to tell before the meeting has proven who it is waits until then", "[launch]") {
  Talk talk("10.0.0.1", true);
  talk.link.tell(Unreachable{.what = "host n9 is not there", .exit_code = 125});
  talk.link.tell(SignalCame{.signal = SIGTERM});
  talk.link.tick(kLinkStart + seconds(2));
  CHECK(talk.told().empty());
  CHECK(talk.shake_hands("sesame").empty());
  const std::vector<json> told = talk.told();
  REQUIRE(told.size() == 2);
  CHECK(told[0].at("say") == "unreachable");
  CHECK(told[1].at("say") == "signal");
}

TEST_CASE("node link: a meeting of another version is told apart", "[launch]") {
  // The first version waits for a hello, and says that it lives meanwhile.
  for (const json& word :
       {json{{"say", "alive"}}, json{{"say", "challenge"}, {"protocol", kNodeProtocol + 1}, {"nonce", "abc"}}}) {
    Talk other("10.0.0.1", true);
    const auto events = other.hear(word);
    REQUIRE(events.size() == 1);
    CHECK(events[0].kind == Kind::lost);
    CHECK_THAT(events[0].why, Catch::Contains("another version of colrun"));
    CHECK(other.told().empty());
  }
}

TEST_CASE("node link: an assignment arrives whole", "[launch]") {
  Talk talk;
  const json start = {{"say", "start"},
                      {"node_rank", 2},
                      {"nodes", 4},
                      {"first_rank", 6},
                      {"local_ranks", 3},
                      {"world_size", 12},
                      {"restart", 5},
                      {"job_id", "job"},
                      {"store_port", 7001},
                      {"store_salt", "salt"},
                      {"master_address", "10.0.0.7"},
                      {"master_port", 29500},
                      {"why", ""},
                      {"ranks_of_nodes", {3, 3, 3, 3}}};
  const auto events = talk.hear(start);
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::start);
  const Assignment& job = events[0].assignment;
  CHECK(job.node_rank == 2);
  CHECK(job.nodes == 4);
  CHECK(job.first_rank == 6);
  CHECK(job.local_ranks == 3);
  CHECK(job.world_size == 12);
  CHECK(job.restart == 5);
  CHECK(job.job_id == "job");
  CHECK(job.store_url == "tcp://10.0.0.1:7001");
  CHECK(job.store_token == store_token_of("sesame", "run", 5, "salt"));
  CHECK(job.master_address == "10.0.0.7");
  CHECK(job.master_port == 29500);
  CHECK(job.ranks_of_nodes == std::vector<int>{3, 3, 3, 3});
}

TEST_CASE("node link: where the first node is at the meeting, it is where this node reaches the meeting", "[launch]") {
  Talk talk("fd00::1");
  const auto events = talk.hear(message_of(
      Start{.assignment = {.nodes = 1, .local_ranks = 3, .world_size = 3, .master_address = {}}, .store_port = 1}));
  REQUIRE(events.size() == 1);
  CHECK(events[0].assignment.master_address == "fd00::1");
  CHECK(events[0].assignment.store_url == "tcp://[fd00::1]:1");
}

TEST_CASE("node link: every other word of the meeting becomes an event", "[launch]") {
  Talk talk;
  auto events = talk.hear({{"say", "abort"}, {"code", "peer_lost"}, {"rank", 4}, {"message", "rank 4 fell"}});
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::abort);
  CHECK(events[0].abort.code == col::ErrorCode::peer_lost);
  CHECK(events[0].abort.rank == 4);
  CHECK(events[0].abort.message == "rank 4 fell");
  events = talk.hear(message_of(Abort{.code = "nonsense"}));
  CHECK(events.at(0).abort.code == col::ErrorCode::aborted);
  CHECK(events.at(0).abort.rank == -1);
  events = talk.hear({{"say", "signal"}, {"signal", SIGTERM}});
  CHECK(events.at(0).kind == Kind::signal);
  CHECK(events.at(0).signal == SIGTERM);
  events = talk.hear({{"say", "limit"}, {"cause", "exit_timed_out"}});
  CHECK(events.at(0).kind == Kind::limit);
  CHECK(events.at(0).limit == EndCause::exit_timed_out);
  events = talk.hear(message_of(Exchanged{.entries = {{"P0", "x"}, {"P1", "\xff"}}}));
  CHECK(events.at(0).kind == Kind::exchanged);
  CHECK(events.at(0).entries == PmiServer::Entries{{"P0", "x"}, {"P1", "\xff"}});
  CHECK(talk.hear({{"say", "alive"}}).empty());
  CHECK_FALSE(talk.link.lost());
  for (const json& entries : {json(), json("text"), json::array({1})}) {
    Talk spoilt;
    CHECK(spoilt.hear({{"say", "exchanged"}, {"entries", entries}}).at(0).kind == Kind::lost);
    CHECK(spoilt.link.lost());
  }
}

TEST_CASE("node link: after its last word nothing more is to come", "[launch]") {
  Talk refused;
  auto events = refused.hear({{"say", "refused"}, {"why", "too many"}});
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::refused);
  CHECK(events[0].why == "too many");
  CHECK(refused.link.lost());
  JobStory story;
  story.job_id = "job";
  story.result.exit_code = 3;
  Talk done;
  events = done.hear({{"say", "done"}, {"story", story_to_json(story)}});
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::done);
  CHECK(events[0].outcome.job_id == "job");
  CHECK(events[0].outcome.result.exit_code == 3);
  done.meeting.reset();
  CHECK(done.link.receive(kLinkStart).empty());
  CHECK_FALSE(done.link.deadline());
}

TEST_CASE("node link: what it tells the meeting has all that belongs to it", "[launch]") {
  Talk talk;
  talk.told();
  talk.link.tell(Failed{.restart = 2, .rank = 7, .collateral = true, .what = "rank 7 fell"});
  talk.link.tell(SignalCame{.signal = SIGINT});
  talk.link.tell(limit_passed(EndCause::timed_out, 0));
  talk.link.tell(Unreachable{.what = "no way to bob", .exit_code = 127});
  JobStory story;
  story.job_id = "job";
  talk.link.tell(Ended{.restart = 2, .story = story_to_json(story)});
  const std::vector<json> told = talk.told();
  REQUIRE(told.size() == 5);
  CHECK(told[0] ==
        json({{"say", "failed"}, {"restart", 2}, {"rank", 7}, {"collateral", true}, {"what", "rank 7 fell"}}));
  CHECK(told[1] == json({{"say", "signal"}, {"signal", SIGINT}}));
  CHECK(told[2] == json({{"say", "limit"}, {"restart", 0}, {"cause", "timed_out"}}));
  CHECK(told[3] == json({{"say", "unreachable"}, {"what", "no way to bob"}, {"exit_code", 127}}));
  CHECK(told[4].at("say") == "ended");
  CHECK(told[4].at("restart") == 2);
  CHECK(story_from_json(told[4].at("story")).job_id == "job");
}

TEST_CASE("node link: it says that it lives every second, and no more often", "[launch]") {
  Talk talk;
  talk.told();
  REQUIRE(talk.link.deadline() == kLinkStart + kPulse.interval);
  talk.link.tick(kLinkStart + kPulse.interval - milliseconds(1));
  CHECK(talk.told().empty());
  talk.link.tick(kLinkStart + kPulse.interval);
  CHECK(talk.told() == std::vector<json>{{{"say", "alive"}}});
  CHECK(talk.link.deadline() == kLinkStart + 2 * kPulse.interval);
  talk.link.tick(kLinkStart + kPulse.interval);
  CHECK(talk.told().empty());
}

TEST_CASE("node link: a meeting that is silent for too long is lost, and said to be once", "[launch]") {
  Talk talk;
  CHECK(talk.hear({{"say", "alive"}}, kLinkStart + seconds(3)).empty());
  talk.look_until(kLinkStart + seconds(3), kPulse.silence);
  const auto events = talk.link.receive(kLinkStart + seconds(3) + kPulse.silence + milliseconds(1));
  REQUIRE(events.size() == 1);
  CHECK(events[0].kind == Kind::lost);
  CHECK(events[0].why == "nothing was heard of it for 4 s");
  CHECK(talk.link.lost());
  CHECK_FALSE(talk.link.deadline());
  SECTION("nothing more comes") {
    CHECK(talk.link.receive(kLinkStart + seconds(60)).empty());
  }
  SECTION("not even when it speaks again") {
    CHECK(talk.hear({{"say", "start"}, {"local_ranks", 3}, {"world_size", 3}}, kLinkStart + seconds(60)).empty());
  }
}

TEST_CASE("node link: a meeting is not silent while this process stands still", "[launch]") {
  Talk talk;
  CHECK(talk.hear({{"say", "alive"}}, kLinkStart + seconds(1)).empty());
  CHECK(talk.link.receive(kLinkStart + seconds(3600)).empty());
  talk.look_until(kLinkStart + seconds(3600), kPulse.silence);
  CHECK(talk.link.receive(kLinkStart + seconds(3600) + kPulse.silence + milliseconds(1)).size() == 1);
}

TEST_CASE("node link: the end of the connection is told once, after what came before it", "[launch]") {
  Talk talk;
  talk.told();  // else the system would say that the connection was reset
  const std::string half = talk.bytes_of({{"say", "alive"}}).substr(0, 9);
  talk.say_bytes(talk.bytes_of({{"say", "signal"}, {"signal", 2}}) + half);
  talk.meeting.reset();
  const auto events = talk.link.receive(kLinkStart);
  REQUIRE(events.size() == 2);
  CHECK(events[0].kind == Kind::signal);
  CHECK(events[1].kind == Kind::lost);
  CHECK(events[1].why == "the connection was closed");
  CHECK(talk.link.receive(kLinkStart).empty());
  CHECK(talk.link.lost());
}

TEST_CASE("node link: garbage is the end of it, never an exception", "[launch]") {
  JobStory huge;
  huge.result.exit_code = 1'000;
  const auto frame = [](const json& value) { return frames::frame_of(col::core::packed(value)); };
  const std::vector<std::string> garbage = {
      "HTTP/1.1 400 Bad Request\n",
      "[]\n",
      "{}\n",
      R"({"say":"alive"})"
      "\n",  // not any more
      frame(json::array()),
      frame({{"say", "done"}}),
      frame({{"say", "done"}, {"story", 3}}),
      frame({{"say", "done"}, {"story", json::array()}}),
      frame({{"say", "done"}, {"story", {{"schema", "col.job/1"}}}}),
      frame({{"say", "done"}, {"story", story_to_json(huge)}}),
      frame({{"say", "sing"}}),
      frame({{"say", 7}}),
      frame(json::object()),
  };
  for (const std::string& bytes : garbage) {
    INFO(bytes);
    Talk talk;
    talk.say_bytes(bytes);
    std::vector<LinkEvent> events;
    CHECK_NOTHROW(events = talk.link.receive(kLinkStart));
    REQUIRE(events.size() == 1);
    CHECK(events[0].kind == Kind::lost);
    CHECK_FALSE(events[0].why.empty());
    CHECK(talk.link.lost());
    CHECK(talk.link.receive(kLinkStart).empty());
  }
}

TEST_CASE("node link: an assignment that cannot be is not carried out", "[launch]") {
  const json good = message_of(
      Start{.assignment = {.nodes = 1, .local_ranks = 3, .world_size = 3, .master_address = {}, .master_port = 2},
            .store_port = 1});
  const std::vector<std::pair<const char*, json>> wrong = {
      {"local_ranks", 4},  // it has brought 3
      {"local_ranks", 0}, {"local_ranks", nullptr}, {"world_size", 2}, {"world_size", -1}, {"first_rank", -1},
      {"first_rank", 1},  {"node_rank", -1},        {"node_rank", 1},  {"restart", -1}};
  for (const auto& [name, value] : wrong) {
    INFO(name << " = " << value.dump());
    Talk talk;
    json start = good;
    start[name] = value;
    const auto events = talk.hear(start);
    REQUIRE(events.size() == 1);
    CHECK(events[0].kind == Kind::lost);
  }
  Talk talk;
  CHECK(talk.hear(good).at(0).kind == Kind::start);
}

TEST_CASE("node link: questions and answers about the ranks go both ways", "[launch]") {
  Talk talk;
  talk.link.tell(ask_of(3, {.calls = 64, .stacks = true}));
  JobStory story;
  story.nodes = 2;
  story.silent = {{.node_rank = 1, .host = "bob", .first_rank = 3, .ranks = 2}};
  talk.link.tell(Answer{.question = 9, .story = story_to_json(story)});
  const std::vector<json> told = talk.told();
  REQUIRE(told.size() == 2);
  CHECK(told[0] == json({{"say", "ask"}, {"question", 3}, {"calls", 64}, {"stacks", true}, {"use", false}}));
  CHECK(told[1].at("question") == 9);
  const auto asked = talk.hear(message_of(Ask{.question = 8, .calls = 5}));
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].kind == Kind::ask);
  CHECK(asked[0].question == 8);
  CHECK(asked[0].what.calls == 5);
  for (const auto& [say, kind] : {std::pair("asked", Kind::asked), std::pair("answer", Kind::answer)}) {
    const auto heard = talk.hear({{"say", say}, {"question", 3}, {"node_rank", 1}, {"story", story_to_json(story)}});
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].kind == kind);
    CHECK(heard[0].question == 3);
    REQUIRE(heard[0].outcome.silent.size() == 1);
    CHECK(heard[0].outcome.silent[0].host == "bob");
    // One that cannot be understood ends no job.
    const auto spoilt = talk.hear({{"say", say}, {"question", 3}, {"node_rank", 1}, {"story", "all well"}});
    REQUIRE(spoilt.size() == 1);
    CHECK(spoilt[0].question == -1);
    CHECK_FALSE(talk.link.lost());
  }
}
