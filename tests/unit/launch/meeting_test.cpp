// How nodes come together: who is taken, in which order, and what each is told to start.
#include "launch/nodes/meeting.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "meeting_probe.hpp"

using namespace col::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Words = std::vector<std::string>;

TEST_CASE("meeting: nothing starts before all nodes are there, then each is told its part", "[launch]") {
  MeetingProbe probe(nodes(3, 3));
  probe.come(7, {.ranks = 2, .address = "10.0.0.7"});
  probe.come(3, {.ranks = 1, .address = "10.0.0.3"});
  CHECK(probe.letters.empty());
  CHECK(probe.stores.empty());
  probe.come(5, {.ranks = 4, .address = "10.0.0.5"});
  REQUIRE(probe.stores == std::vector<int>{0});
  const std::vector<std::pair<int, int>> order = {{7, 0}, {3, 2}, {5, 3}};  // member, first rank: by arrival
  for (int node = 0; node < 3; ++node) {
    const auto [member, first_rank] = order[static_cast<std::size_t>(node)];
    REQUIRE(probe.said(member) == Words{"start"});
    const json start = probe.last(member, "start");
    const json wanted = {{"node_rank", node},
                         {"nodes", 3},
                         {"first_rank", first_rank},
                         {"world_size", 7},
                         {"restart", 0},
                         {"job_id", "job"},
                         {"store_port", 7001},
                         {"store_salt", "salt1"},
                         {"master_address", "10.0.0.7"},
                         {"master_port", 5007}};
    CHECK(picked(start, wanted) == wanted);
  }
  CHECK(probe.last(7, "start").at("local_ranks") == 2);
  CHECK(probe.last(5, "start").at("local_ranks") == 4);
  CHECK(probe.lasts.empty());
  CHECK_FALSE(probe.meeting.over());
}

TEST_CASE("meeting: what the ranks of all nodes have put for PMI is told when the last of them waits", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1, {.ranks = 2});
  probe.come(2, {.ranks = 1});
  CHECK(probe.last(2, "start").at("ranks_of_nodes") == json::array({2, 1}));
  const auto exchanged = [](int restart, const col::launch::PmiServer::Entries& entries) {
    return message_of(col::launch::Exchanged{.restart = restart, .entries = entries});
  };
  for (const char* round : {"a", "b"}) {
    probe.letters.clear();
    probe.say(1, exchanged(0, {{"P0", round}, {"P1", "x"}}));
    probe.say(2, exchanged(1, {{"P2", "of another start"}}));
    CHECK(probe.said(1).empty());
    probe.say(2, exchanged(0, {}));
    for (const int member : {1, 2})
      CHECK(probe.last(member, "exchanged") ==
            message_of(col::launch::Exchanged{.entries = {{"P0", round}, {"P1", "x"}}}));
  }
}

TEST_CASE("meeting: what a node asks is passed on to all others that have ranks, and their answers back", "[launch]") {
  MeetingProbe probe(nodes(3, 3));
  probe.come(9, {.ranks = 0});  // only watches
  for (const int member : {1, 2, 3}) probe.come(member, {.ranks = member});
  probe.end(3, {0, 0, 0});
  probe.letters.clear();
  probe.say(2, message_of(col::launch::Ask{.question = 41, .calls = 7, .stacks = true}));
  const json asked = probe.last(2, "asked");
  CHECK(asked.at("question") == 41);
  const JobStory known = col::launch::story_from_json(asked.at("story"));
  REQUIRE(known.silent.size() == 1);
  CHECK(known.silent[0].host == "n1");
  CHECK(known.silent[0].ranks == 1);
  CHECK(known.ranks.size() == 3);  // that have ended
  CHECK(known.nodes == 3);
  const json ask = probe.last(1, "ask");
  CHECK(picked(ask, {{"calls", 7}, {"stacks", true}}) == json{{"calls", 7}, {"stacks", true}});
  for (const int other : {3, 9}) CHECK(probe.said(other).empty());
  const auto answer = [&](int number) {
    return message_of(col::launch::Answer{.question = number, .story = story_of(0, 0, {0})});
  };
  // Of another question, and by who was not asked.
  probe.say(1, answer(ask.at("question").get<int>() + 1));
  probe.say(3, answer(ask.at("question")));
  CHECK(probe.count(2, "answer") == 0);
  probe.say(1, answer(ask.at("question")));
  probe.say(1, answer(ask.at("question")));
  REQUIRE(probe.count(2, "answer") == 1);
  const json wanted = {{"question", 41}, {"node_rank", 0}, {"story", story_of(0, 0, {0})}};
  CHECK(picked(probe.last(2, "answer"), wanted) == wanted);
  // Who only watches asks, too; who asks and is gone is told nothing.
  probe.letters.clear();
  probe.say(9, message_of(col::launch::Ask{.question = 1}));
  CHECK(col::launch::story_from_json(probe.last(9, "asked").at("story")).silent.size() == 2);
  // Questions that nobody answers are forgotten.
  for (int number = 0; number < 1000; ++number) probe.say(9, message_of(col::launch::Ask{.question = number}));
  const int first = probe.letters[1].front().at("question");
  probe.say(1, answer(first));
  CHECK(probe.count(9, "answer") == 0);
}

TEST_CASE("meeting: samples of calls are compared at the end, and travel no further", "[launch]") {
  MeetingProbe probe(nodes(2, 2, /*max_restarts=*/1));
  for (const int member : {0, 1}) probe.come(member, {.ranks = 1});
  probe.fail(0, 0);
  probe.end(0, {7});
  probe.end(1, {0});
  REQUIRE(probe.generation() == 1);
  const auto ended = [&](int member) {
    JobStory story = col::launch::story_from_json(story_of(member, member, {0}));
    story.ranks[0].times.distance = 20e-6;
    col::launch::CallSite site{.group = "dp", .op = "allreduce", .calls = 100};
    site.sampled.members = 1;
    for (std::uint64_t call = 1; call <= 100; ++call) site.sampled.add(7, call, member == 0 ? 2'000'000 : 1'000);
    story.ranks[0].times.sites.push_back(site);
    probe.say(member, {{"say", "ended"}, {"restart", 1}, {"story", col::launch::story_to_json(story)}});
  };
  ended(0);
  probe.say(1, message_of(col::launch::Ask{.question = 5}));
  const JobStory known = col::launch::story_from_json(probe.last(1, "asked").at("story"));
  REQUIRE(known.ranks.size() == 1);
  CHECK(known.ranks[0].times.sites.at(0).sampled.calls.empty());
  CHECK(known.restarts == 1);
  ended(1);
  const JobStory done = probe.done(0);
  REQUIRE(done.ranks.size() == 2);
  for (const col::launch::RankStory& rank : done.ranks) {
    CHECK(rank.times.sites.at(0).sampled.calls.empty());
    CHECK(rank.times.sites.at(0).hosts == 2);
    CHECK(rank.times.sites.at(0).last == (rank.rank == 1 ? 100 : 0));
  }
}

TEST_CASE("meeting: before the ranks have started, nobody is asked", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1);
  probe.say(1, message_of(col::launch::Ask{.question = 5}));
  const JobStory known = col::launch::story_from_json(probe.last(1, "asked").at("story"));
  CHECK(known.silent.empty());
  CHECK(known.ranks.empty());
}

TEST_CASE("meeting: a first node at a loopback address is reached where the meeting is", "[launch]") {
  for (const char* address : {"127.0.0.1", "127.8.9.1", "::1"}) {
    MeetingProbe probe(nodes(2, 2));
    probe.come(1, {.address = address});
    probe.come(2, {.address = "10.0.0.2"});
    CHECK(probe.last(1, "start").at("master_address") == "");
    CHECK(probe.last(2, "start").at("master_address") == "");
  }
}

TEST_CASE("meeting: nodes get the ranks that they ask for, in whatever order they come", "[launch]") {
  std::vector<int> members = {0, 1, 2, 3};
  do {
    MeetingProbe probe(nodes(4, 4));
    // Members 0 and 2 want the node ranks 3 and 1; the others take what is left, the earlier one the lower.
    for (const int member : members) probe.come(member, {.wanted_rank = member == 0 ? 3 : member == 2 ? 1 : -1});
    CHECK(probe.last(0, "start").at("node_rank") == 3);
    CHECK(probe.last(2, "start").at("node_rank") == 1);
    const bool one_first = std::find(members.begin(), members.end(), 1) < std::find(members.begin(), members.end(), 3);
    CHECK(probe.last(1, "start").at("node_rank") == (one_first ? 0 : 2));
    CHECK(probe.last(3, "start").at("node_rank") == (one_first ? 2 : 0));
  } while (std::next_permutation(members.begin(), members.end()));
}

TEST_CASE("meeting: node ranks have no gaps when fewer nodes come than could", "[launch]") {
  MeetingProbe probe(nodes(2, 4));
  probe.come(1, {.wanted_rank = 3});
  probe.come(2, {.wanted_rank = 1});
  probe.wait(Meeting::kLastCall);
  REQUIRE(probe.stores.size() == 1);
  CHECK(probe.last(2, "start").at("node_rank") == 1);
  CHECK(probe.last(1, "start").at("node_rank") == 0);
}

TEST_CASE("meeting: who does not belong to the job is refused with the reason, and never told the secret", "[launch]") {
  struct Case {
    Newcomer who;
    const char* why;
  };
  const std::vector<Case> cases = {
      {{.protocol = 99}, "different versions"},
      {{.secret = "wrong"}, "COL_RDZV_TOKEN"},
      {{.secret = ""}, "COL_RDZV_TOKEN"},
      {{.id = "other"}, "'run'"},
      {{.wanted_rank = 2}, "node rank 2 does not fit 2 nodes"},
      {{.wanted_rank = 1}, "node rank 1 is taken by host n1"},
  };
  MeetingProbe probe(nodes(2, 2));
  probe.come(1, {.wanted_rank = 1});
  int member = 10;
  for (const Case& refused : cases) {
    INFO(refused.why);
    probe.come(++member, refused.who);
    REQUIRE(probe.said(member) == Words{"refused"});
    CHECK_THAT(probe.last(member, "refused").at("why").get<std::string>(), Catch::Contains(refused.why));
    CHECK(probe.lasts.at(member) == "refused");
    CHECK_FALSE(probe.meeting.has(member));
    probe.lose(member);  // its connection is closed: nobody minds
  }
  CHECK(probe.said(1).empty());
  probe.come(2);
  CHECK(probe.count(1, "start") == 1);
  probe.come(3);
  CHECK_THAT(probe.last(3, "refused").at("why").get<std::string>(), Catch::Contains("has all of its 2 nodes"));
  for (const auto& [to, messages] : probe.letters) {
    for (const json& message : messages) CHECK(message.dump().find("sesame") == std::string::npos);
  }
}

TEST_CASE("meeting: the id of the rendezvous is told to nobody who does not know the secret", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1, {.id = "other", .secret = "wrong"});
  CHECK(probe.last(1, "refused").at("why").get<std::string>().find("'run'") == std::string::npos);
}

TEST_CASE("meeting: who is asked for a proof gets one in return, and neither side has sent the secret", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  const json hello = probe.hello({}, 1);
  CHECK(probe.said(1).empty());
  CHECK(probe.welcomes.empty());
  probe.say(1, hello);
  const std::string nonce = hello.at("nonce");
  const auto subject = col::launch::node_proof_subject("run", probe.challenges.at(1), nonce);
  CHECK(col::is_proof(probe.welcomes.at(1).at("proof").get<std::string>(), "sesame", col::ProofRole::server, subject));
  CHECK(hello.dump().find("sesame") == std::string::npos);
  CHECK(probe.welcomes.at(1).dump().find("sesame") == std::string::npos);
  probe.come(2, {.secret = "sesame", .protocol = 1});
  CHECK_THAT(probe.last(2, "refused").at("why").get<std::string>(), Catch::Contains("different versions"));
  CHECK_FALSE(probe.welcomes.contains(2));
}

TEST_CASE("meeting: a secret where none is wanted is refused too", "[launch]") {
  MeetingSpec spec = nodes(1, 1);
  spec.secret.clear();
  MeetingProbe probe(spec);
  probe.come(1, {.secret = "mine"});
  CHECK_THAT(probe.last(1, "refused").at("why").get<std::string>(), Catch::Contains("the first one has none"));
  probe.come(2, {.secret = ""});
  CHECK(probe.count(2, "start") == 1);
}

TEST_CASE("meeting: who speaks before it has said hello is refused, whatever it says", "[launch]") {
  for (const char* word : {"ended", "failed", "signal", "limit", "unreachable", "alive", "", "start"}) {
    MeetingProbe probe(nodes(1, 1));
    probe.come(1);
    probe.say(2, {{"say", word}, {"signal", SIGTERM}, {"cause", "timed_out"}, {"what", "x"}});
    CHECK(probe.said(2) == Words{"refused"});
    CHECK(probe.said(1) == Words{"start"});
    CHECK_FALSE(probe.meeting.over());
  }
}

TEST_CASE("meeting: one who only looks on starts nothing and is told the end", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(9, {.ranks = 0});
  probe.come(1, {.ranks = 1});
  CHECK(probe.stores.empty());
  probe.come(2, {.ranks = 1});
  CHECK(probe.said(9).empty());
  CHECK(probe.last(1, "start").at("world_size") == 2);
  CHECK(probe.last(1, "start").at("node_rank") == 0);
  probe.end(1, {0});
  probe.say(9, {{"say", "ended"}, {"story", story_of(0, 0, {0})}});
  CHECK_FALSE(probe.meeting.over());
  probe.end(2, {0});
  CHECK(probe.said(9) == Words{"done"});
  CHECK(probe.done(9).ranks.size() == 2);
}

TEST_CASE("meeting: one who looks on may be lost without harm", "[launch]") {
  MeetingProbe probe(nodes(1, 1));
  probe.come(9, {.ranks = 0});
  probe.come(1);
  probe.lose(9);
  CHECK(probe.said(1) == Words{"start"});
  probe.end(1, {0, 0});
  CHECK(probe.done(1).result.cause == EndCause::none);
  CHECK(probe.count(9, "done") == 0);
}

TEST_CASE("meeting: with enough nodes more are waited for until the last call is over", "[launch]") {
  MeetingProbe probe(nodes(2, 3));
  probe.come(1);
  CHECK(probe.meeting.deadline() == probe.now + seconds(60));
  probe.wait(seconds(10));
  probe.come(2);
  REQUIRE(probe.meeting.deadline() == probe.now + Meeting::kLastCall);
  probe.wait(Meeting::kLastCall - milliseconds(1));
  CHECK(probe.stores.empty());
  SECTION("one more comes: it starts at once") {
    probe.come(3);
    CHECK(probe.last(3, "start").at("nodes") == 3);
  }
  SECTION("no more comes") {
    probe.wait(milliseconds(1));
    CHECK(probe.last(1, "start").at("nodes") == 2);
    CHECK(probe.last(1, "start").at("world_size") == 4);
  }
  SECTION("one who looks on does not prolong the wait") {
    probe.come(3, {.ranks = 0});
    probe.wait(milliseconds(1));
    CHECK(probe.last(1, "start").value("nodes", 0) == 2);
  }
  SECTION("one is lost during the last call: fewer than the least do not start") {
    probe.lose(2);
    probe.wait(milliseconds(1));
    CHECK(probe.stores.empty());
    CHECK(probe.said(1).empty());
    probe.come(3);
    probe.come(4);
    CHECK(probe.last(1, "start").value("nodes", 0) == 3);
  }
  SECTION("all are lost during the last call") {
    probe.lose(1);
    probe.lose(2);
    probe.wait(milliseconds(1));
    CHECK(probe.stores.empty());
    probe.wait(seconds(60));
    CHECK(probe.meeting.over());
  }
}

TEST_CASE("meeting: enough nodes at the end of the time start, though the last call is not over", "[launch]") {
  MeetingProbe probe(nodes(2, 3));
  probe.come(1);
  probe.wait(seconds(59));
  probe.come(2);
  probe.wait(seconds(1));
  probe.wait(seconds(2));
  CHECK(probe.said(1) == Words{"start"});
  CHECK_FALSE(probe.meeting.over());
}

TEST_CASE("meeting: too few nodes within the time are an error that names those that came", "[launch]") {
  MeetingProbe probe(nodes(3, 3));
  probe.come(1, {.host = "ada"});
  probe.come(2, {.host = "bob"});
  probe.come(9, {.ranks = 0, .host = "front"});
  probe.wait(seconds(60) - milliseconds(1));
  CHECK_FALSE(probe.meeting.over());
  probe.wait(milliseconds(1));
  CHECK(probe.meeting.over());
  for (const int member : {1, 2, 9}) {
    const JobStory story = probe.done(member);
    CHECK(story.result.exit_code == 125);
    CHECK(story.result.cause == EndCause::launcher_failed);
    CHECK_THAT(story.result.error, Catch::Contains("only 2 of 3 nodes came within 60 s (ada, bob)"));
    CHECK(probe.lasts.at(member) == "done");
  }
}

TEST_CASE("meeting: nodes that say which they are leave a gap that is named, with its ranks", "[launch]") {
  MeetingProbe probe(nodes(16, 16));
  for (int node = 0; node < 15; ++node) {
    if (node != 3) probe.come(node, {.ranks = 8, .wanted_rank = node});
  }
  probe.wait(seconds(60));
  const std::string error = probe.done(0).result.error;
  CHECK_THAT(error, Catch::Contains("only 14 of 16 nodes came"));
  CHECK_THAT(error, Catch::Contains("missing: node 3 (ranks 24-31), node 15 (ranks 120-127); start the others"));
}

TEST_CASE("meeting: a node that goes before the start makes room for another", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1, {.wanted_rank = 0});
  probe.lose(1);
  probe.come(2, {.wanted_rank = 0});
  probe.come(3);
  CHECK(probe.last(2, "start").at("node_rank") == 0);
  CHECK(probe.last(3, "start").at("node_rank") == 1);
  CHECK(probe.said(1).empty());
}
