// Messages that no launcher of ours would send, and events in any order.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "meeting_probe.hpp"

using namespace col::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Words = std::vector<std::string>;

namespace {

MeetingProbe& run_two(MeetingProbe& probe) {
  probe.come(1);
  probe.come(2);
  REQUIRE(probe.stores.size() == 1);
  probe.letters.clear();
  return probe;
}

// What the meeting said is what a launcher can read.
void check_all_can_be_read(MeetingProbe& probe) {
  for (const auto& [member, messages] : probe.letters) {
    for (const json& message : messages) {
      if (message.at("say") == "done") CHECK_NOTHROW(col::launch::story_from_json(message.at("story")));
    }
  }
}

}  // namespace

TEST_CASE("meeting: members of another type or missing do no harm", "[launch]") {
  const std::vector<json> values = {nullptr,
                                    true,
                                    -1,
                                    3.5,
                                    "text",
                                    json(),
                                    json::array({1}),
                                    json::object({{"say", "hello"}}),
                                    std::uint64_t(1) << 63,
                                    std::numeric_limits<std::uint64_t>::max()};
  for (const char* name :
       {"say", "protocol", "id", "nonce", "proof", "node_rank", "host", "local_ranks", "master_port"}) {
    for (const json& value : values) {
      INFO(name << " = " << value.dump());
      MeetingProbe probe(nodes(1, 1));
      json message = probe.hello({}, 1);
      message[name] = value;
      CHECK_NOTHROW(probe.say(1, message));
      message.erase(name);
      CHECK_NOTHROW(probe.say(2, message));
      for (const int member : {1, 2}) CHECK(probe.count(member, "start") + probe.count(member, "refused") <= 1);
    }
  }
  for (const char* word : {"failed", "ended", "signal", "limit", "unreachable", "alive", "hello"}) {
    for (const char* name : {"rank", "collateral", "what", "story", "signal", "cause", "restart"}) {
      for (const json& value : values) {
        INFO(word << ": " << name << " = " << value.dump());
        MeetingProbe probe(nodes(2, 2));
        run_two(probe);
        CHECK_NOTHROW(probe.say(1, {{"say", word}, {name, value}}));
        CHECK_NOTHROW(probe.end(2, {0, 0}));
        check_all_can_be_read(probe);
      }
    }
  }
  for (const json& value : values) {
    MeetingProbe probe(nodes(1, 1));
    CHECK_NOTHROW(probe.say(1, value));
  }
}

TEST_CASE("meeting: a proof that was heard before, or sent back, opens nothing", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  const json heard = probe.hello({}, 1);
  probe.say(1, heard);
  CHECK(probe.meeting.has(1));
  const auto is_refused = [&](int member, const json& message) {
    probe.say(member, message);
    CHECK_FALSE(probe.meeting.has(member));
    CHECK_THAT(probe.last(member, "refused").at("why").get<std::string>(), Catch::Contains("COL_RDZV_TOKEN"));
  };
  probe.meeting.on_call(2);
  is_refused(2, heard);
  is_refused(3, heard);  // who was not asked
  // What the meeting has said of itself to a node.
  json reflected = probe.hello({}, 4);
  reflected["proof"] = probe.welcomes.at(1).at("proof");
  reflected["nonce"] = heard.at("nonce");
  is_refused(4, reflected);
  // The proof is of the id that it comes with.
  json renamed = probe.hello({.id = "run2"}, 5);
  renamed["id"] = "run";
  is_refused(5, renamed);
  json wrong = probe.hello({.secret = "guess"}, 6);
  is_refused(6, wrong);
  is_refused(6, probe.hello({.secret = "guess"}, 6));
}

TEST_CASE("meeting: huge numbers of ranks are no more than a node can have", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1, {.ranks = std::numeric_limits<int>::max()});
  probe.come(2, {.ranks = -5});  // none: it looks on
  CHECK(probe.stores.empty());
  probe.come(3, {.ranks = 1});
  if (probe.count(1, "refused") == 0) {
    CHECK(probe.last(1, "start").at("local_ranks") == col::launch::kMaxRanks);
    CHECK(probe.last(3, "start").at("world_size") == col::launch::kMaxRanks + 1);
  }
}

TEST_CASE("meeting: a number beyond the range of its type is refused", "[launch]") {
  MeetingProbe probe(nodes(1, 1));
  json message = probe.hello({}, 1);
  message["node_rank"] = std::numeric_limits<std::uint64_t>::max() - 4;
  message["local_ranks"] = std::numeric_limits<std::uint64_t>::max() - 8;
  probe.say(1, message);
  CHECK(probe.count(1, "start") == 0);
  CHECK_THAT(probe.last(1, "refused").at("why").get<std::string>(),
             Catch::StartsWith("what it says cannot be understood: 'hello': at /"));
}

TEST_CASE("meeting: a node that says what cannot be understood is lost, and named with its words", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  run_two(probe);
  probe.say(1, {{"say", "failed"}, {"restart", 0}, {"rank", "first"}, {"collateral", false}, {"what", ""}});
  CHECK_FALSE(probe.meeting.has(1));
  CHECK(probe.lasts.at(1) == "refused");
  const std::string why = probe.last(2, "abort").at("message");
  CHECK_THAT(why, Catch::Contains("host n1") && Catch::Contains("'failed': at /rank: should be a whole number"));
  probe.end(2, {1, 1});
  CHECK(probe.done(2).result.cause == EndCause::node_lost);
}

TEST_CASE("meeting: who has ended cannot end again, nor who is not in this generation", "[launch]") {
  MeetingProbe probe(nodes(2, 3));
  probe.come(1);
  probe.come(2);
  probe.wait(Meeting::kLastCall);
  probe.end(1, {0, 0});
  probe.end(1, {5, 5});
  CHECK_FALSE(probe.meeting.over());
  probe.come(3);  // comes when the job is about to end
  CHECK(probe.last(3, "refused").contains("why"));
  probe.say(3, {{"say", "ended"}, {"restart", 0}, {"story", story_of(1, 2, {0, 0})}});
  probe.fail(3, 2);
  CHECK_FALSE(probe.meeting.over());
  probe.end(2, {0, 0});
  CHECK(probe.meeting.over());
  CHECK(probe.stores.size() == 1);
}

TEST_CASE("meeting: what is said of an earlier generation does not count in this one", "[launch]") {
  MeetingProbe probe(nodes(2, 2, 1));
  run_two(probe);
  probe.fail(1, 0);
  for (const int member : {1, 2}) probe.say(member, {{"say", "ended"}, {"restart", 0}, {"story", story_of(0, 0, {1})}});
  REQUIRE(probe.stores.size() == 2);
  probe.letters.clear();
  probe.say(1, {{"say", "failed"}, {"restart", 0}, {"rank", 0}, {"collateral", false}, {"what", "late"}});
  probe.say(2, {{"say", "ended"}, {"restart", 0}, {"story", story_of(1, 2, {1, 1})}});
  CHECK(probe.letters.empty());
  probe.say(1, {{"say", "ended"}, {"restart", 1}, {"story", story_of(0, 0, {0, 0})}});
  CHECK_FALSE(probe.meeting.over());
}

TEST_CASE("meeting: a second hello of a member changes nothing", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1, {.ranks = 2});
  probe.come(1, {.ranks = 4000});
  CHECK(probe.stores.empty());
  probe.come(2, {.ranks = 2});
  CHECK(probe.last(1, "start").at("world_size") == 4);
}

TEST_CASE("meeting: a rank that is none of the node's own is not the culprit", "[launch]") {
  for (const int rank : {-1, 99, 3, std::numeric_limits<int>::max()}) {
    INFO("rank " << rank);
    MeetingProbe probe(nodes(2, 2));
    run_two(probe);
    probe.fail(1, rank);  // it has ranks 0 and 1
    probe.say(1, {{"say", "ended"}, {"restart", 0}, {"story", story_of(0, 0, {1, 1})}});
    probe.say(2, {{"say", "ended"}, {"restart", 0}, {"story", story_of(1, 2, {0, 0})}});
    check_all_can_be_read(probe);
    CHECK(probe.last(2, "done").at("story").at("cause") == "rank_failed");
    const json culprit = probe.last(2, "done").at("story").at("culprit");
    CHECK((culprit.is_null() || culprit == 0 || culprit == 1));
  }
}

TEST_CASE("meeting: a story that is none ends the job, and all can read how", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  run_two(probe);
  probe.say(1, {{"say", "ended"}, {"restart", 0}, {"story", {{"schema", "col.job/1"}, {"tool", 3}}}});
  CHECK(probe.count(2, "abort") == 1);  // the others need not go on
  probe.say(2, {{"say", "ended"}, {"restart", 0}, {"story", story_of(1, 2, {0, 0})}});
  REQUIRE(probe.meeting.over());
  CHECK(probe.done(2).result.cause == EndCause::launcher_failed);
  CHECK_THAT(probe.done(2).result.error, Catch::Contains("host n1 reports what cannot be understood"));
}

TEST_CASE("meeting: however many hosts an error names, and however long, it can be read", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1, {.host = std::string(40'000, 'x')});
  probe.come(2);
  probe.letters.clear();
  probe.lose(1);
  probe.say(2, {{"say", "ended"}, {"restart", 0}, {"story", story_of(1, 2, {0, 0})}});
  REQUIRE(probe.meeting.over());
  check_all_can_be_read(probe);

  MeetingProbe many(nodes(900, 1000));
  for (int member = 0; member < 800; ++member)
    many.come(member, {.host = "a-name-of-a-host-" + std::to_string(member)});
  many.wait(seconds(60));
  REQUIRE(many.meeting.over());
  CHECK_NOTHROW(many.done(0));
}

TEST_CASE("meeting: a time limit that is none is not passed on, nor what else came with one", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  run_two(probe);
  for (const char* cause : {"none", "rank_failed", "nonsense", ""}) probe.say(1, {{"say", "limit"}, {"cause", cause}});
  CHECK(probe.letters.empty());
  probe.say(1, {{"say", "limit"}, {"cause", "timed_out"}, {"more", json::array({json::array({1, 2})})}});
  CHECK(probe.last(2, "limit") == json({{"say", "limit"}, {"cause", "timed_out"}}));
}

TEST_CASE("meeting: only signals that end a job do", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  run_two(probe);
  for (const int signal : {0, -1, SIGKILL, SIGUSR1, SIGTSTP, 64, 65, 1'000'000})
    probe.say(1, {{"say", "signal"}, {"signal", signal}});
  CHECK(probe.letters.empty());
}

TEST_CASE("meeting: after the end its members hear nothing any more, and one that comes hears that it is over",
          "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  run_two(probe);
  probe.fail(1, 0, true);
  probe.say(1, {{"say", "ended"}, {"restart", 0}, {"story", story_of(0, 0, {1, 1})}});
  probe.say(2, {{"say", "ended"}, {"restart", 0}, {"story", story_of(1, 2, {0, 0})}});
  REQUIRE(probe.meeting.over());
  probe.letters.clear();
  probe.fail(1, 0);
  probe.say(2, {{"say", "signal"}, {"signal", SIGINT}});
  probe.wait(seconds(1000));
  probe.lose(1);
  CHECK(probe.letters.empty());
  CHECK_FALSE(probe.meeting.deadline());
  probe.come(3);
  CHECK(probe.last(3, "refused").at("why") == "the job is over");
  CHECK(probe.lasts.at(3) == "refused");
  CHECK_FALSE(probe.meeting.has(3));
}

TEST_CASE("meeting: one that comes after an end for a reason is told the reason, if it knows the secret", "[launch]") {
  MeetingSpec spec = nodes(2, 2);
  spec.others_may_come = false;
  MeetingProbe probe(spec);
  probe.come(1);
  probe.lose(1);
  REQUIRE(probe.meeting.over());
  probe.come(2);
  CHECK_THAT(probe.last(2, "refused").at("why").get<std::string>(),
             Catch::StartsWith("the job is over: lost host n1 before the job began: the cable was cut;"));
  probe.come(3, {.secret = "another"});
  CHECK_THAT(probe.last(3, "refused").at("why").get<std::string>(), Catch::StartsWith("its COL_RDZV_TOKEN is missing"));
}

namespace {

// Some event of some member: mostly what launchers do, sometimes what they never would.
class Storm {
 public:
  Storm(std::uint32_t seed, MeetingProbe& probe) : random_(seed), probe_(probe) {}

  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint32_t>(limit)); }
  // A stranger when there is none.
  int any_member() {
    return members_.empty() ? kStranger : members_[static_cast<std::size_t>(below(static_cast<int>(members_.size())))];
  }

  void happen() {
    const int what = below(20);
    const int member = any_member();
    if (what < 5) {
      const int wanted = below(3) == 0 ? below(4) : -1;
      members_.push_back(next_);
      probe_.come(next_++, {.ranks = below(6) == 0 ? 0 : 1 + below(3), .wanted_rank = wanted});
    } else if (what < 7) {
      probe_.wait(milliseconds(below(2) == 0 ? 300 : 4'000));
    } else if (what < 9) {
      lose(member);
    } else if (what < 11) {
      probe_.fail(member, below(8) - 1, below(2) == 0);
    } else if (what < 17) {
      end(member);
    } else if (what == 17 && below(8) == 0) {
      probe_.say(member, {{"say", "signal"}, {"signal", below(70)}});
    } else if (what == 18 && below(8) == 0) {
      probe_.say(member, {{"say", "limit"}, {"cause", "timed_out"}});
    } else if (below(8) == 0) {
      probe_.say(member, {{"say", "ended"}, {"story", 3}});
    }
  }
  void end(int member) {
    const json start = probe_.last(member, "start");
    const std::vector<int> codes(start.value("local_ranks", std::size_t{1}), below(3));
    probe_.end(member, codes);
  }
  void lose(int member) {
    if (member == kStranger) return;
    lost_.insert(member);
    letters_when_lost_.emplace(member, probe_.letters[member].size());
    members_.erase(std::remove(members_.begin(), members_.end(), member), members_.end());
    probe_.lose(member);
  }

  static constexpr int kStranger = 1'000'000;

  std::mt19937 random_;
  MeetingProbe& probe_;
  std::vector<int> members_;
  std::set<int> lost_;
  std::map<int, std::size_t> letters_when_lost_;
  int next_ = 0;
};

// Of all members that were told to start in a generation.
void check_worlds(MeetingProbe& probe) {
  struct World {
    int ranks = 0;
    int size = -1;
    std::set<int> node_ranks;
    std::set<int> first_ranks;
    std::size_t nodes = 0;
  };
  std::map<int, World> worlds;
  for (const auto& [member, messages] : probe.letters) {
    for (const json& message : messages) {
      if (message.at("say") != "start") continue;
      World& world = worlds[message.at("restart").get<int>()];
      world.ranks += message.at("local_ranks").get<int>();
      if (world.size < 0) world.size = message.at("world_size");
      CHECK(world.size == message.at("world_size"));
      CHECK(message.at("store_salt") == "salt" + std::to_string(message.at("restart").get<int>() + 1));
      world.nodes = message.at("nodes");
      CHECK(world.node_ranks.insert(message.at("node_rank").get<int>()).second);
      CHECK(world.first_ranks.insert(message.at("first_rank").get<int>()).second);
    }
  }
  CHECK(worlds.size() == probe.stores.size());
  for (const auto& [generation, world] : worlds) {
    CHECK(world.ranks == world.size);
    CHECK(world.node_ranks.size() == world.nodes);
    CHECK(*world.node_ranks.rbegin() == static_cast<int>(world.nodes) - 1);
    CHECK(*world.first_ranks.begin() == 0);
  }
}

}  // namespace

TEST_CASE("meeting: whatever happens in whatever order, it ends once, and everybody is told once", "[launch]") {
  const std::uint32_t first_seed = std::random_device{}();
  for (std::uint32_t round = 0; round < 400; ++round) {
    const std::uint32_t seed = first_seed + round;
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const int most = 1 + static_cast<int>(random() % 4);
    const int least = 1 + static_cast<int>(random() % static_cast<std::uint32_t>(most));
    MeetingProbe probe(nodes(least, most, static_cast<int>(random() % 3)));
    Storm storm(seed + 1, probe);
    for (int event = 0; event < 60; ++event) storm.happen();
    CHECK(std::is_sorted(probe.stores.begin(), probe.stores.end()));
    // In the end each member has ended its ranks, or is lost; with time it is over.
    for (int again = 0; again < 100 && !probe.meeting.over(); ++again) {
      for (const int member : std::vector<int>(storm.members_)) {
        if (probe.meeting.has(member) && random() % 3 == 0) storm.end(member);
      }
      if (again == 50) {
        for (const int member : std::vector<int>(storm.members_)) storm.lose(member);
      }
      if (again > 50 || random() % 2 == 0) probe.wait(seconds(61));
    }
    CHECK(probe.meeting.over());
    check_worlds(probe);
    for (const auto& [member, messages] : probe.letters) {
      CHECK(probe.count(member, "done") + (probe.meeting.has(member) ? 0 : 1) >= 1);
      CHECK(probe.count(member, "done") <= 1);
      if (probe.count(member, "done") == 1) CHECK(messages.back().at("say") == "done");
      if (storm.letters_when_lost_.contains(member)) CHECK(messages.size() == storm.letters_when_lost_.at(member));
    }
    check_all_can_be_read(probe);
  }
}
