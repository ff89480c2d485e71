// How a job of several nodes ends, and begins again.
#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "meeting_probe.hpp"

using namespace col::test;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Words = std::vector<std::string>;

namespace {

// Three nodes of two ranks each that run; member n has node rank n.
struct Running : MeetingProbe {
  explicit Running(int max_restarts = 0, int least = 3, int most = 3) : MeetingProbe(nodes(least, most, max_restarts)) {
    for (int member = 0; member < 3; ++member) come(member);
    if (most > 3) wait(Meeting::kLastCall);
    REQUIRE(stores.size() == 1);
    letters.clear();
  }
};

}  // namespace

TEST_CASE("meeting: all nodes are told how it ended once the last has, with all ranks in order", "[launch]") {
  Running probe;
  probe.letters.clear();
  for (const int member : {2, 0, 1}) {
    CHECK_FALSE(probe.meeting.over());
    probe.say(member, {{"say", "ended"}, {"restart", 0}, {"story", story_of(member, 2 * member, {0, 0})}});
  }
  CHECK(probe.meeting.over());
  for (int member = 0; member < 3; ++member) {
    REQUIRE(probe.said(member) == Words{"done"});
    CHECK(probe.lasts.at(member) == "done");
    const JobStory story = probe.done(member);
    REQUIRE(story.ranks.size() == 6);
    for (int rank = 0; rank < 6; ++rank) {
      CHECK(story.ranks[static_cast<std::size_t>(rank)].rank == rank);
      CHECK(story.ranks[static_cast<std::size_t>(rank)].node_rank == rank / 2);
    }
    CHECK(story.result.cause == EndCause::none);
    CHECK(story.result.exit_code == 0);
    CHECK(story.result.culprit == -1);
    CHECK(story.nodes == 3);
    CHECK(story.restarts == 0);
    CHECK(story.job_id == "job");
    CHECK(story.tool == "colrun");
    CHECK(story.command_line == Words{"colrun", "node0"});  // what node 0 says of the job as a whole
    CHECK(story.directory == "/home/ada");
  }
}

TEST_CASE("meeting: a node that wants no stories is told the result alone", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1);
  probe.come(2, {.wants_stories = false});
  probe.end(1, {0, 3}, EndCause::rank_failed);
  probe.fail(1, 1);
  probe.end(2, {0, 0});
  CHECK(probe.done(1).ranks.size() == 4);
  CHECK(probe.done(2).ranks.empty());
  CHECK(probe.done(2).result.exit_code == 3);
}

TEST_CASE("meeting: a rank's failure is told to the other nodes at once, and decides the exit code", "[launch]") {
  Running probe;
  probe.fail(1, 3);
  CHECK(probe.said(1).empty());
  for (const int member : {0, 2}) {
    REQUIRE(probe.said(member) == Words{"abort"});
    const json abort = probe.last(member, "abort");
    const json wanted = {{"code", "peer_lost"}, {"rank", 3}, {"message", "rank 3 fell"}};
    CHECK(picked(abort, wanted) == wanted);
  }
  probe.fail(0, 1, /*collateral=*/true);
  probe.fail(2, 4);  // on its own, but later
  CHECK(probe.said(1).empty());
  probe.end_all({0}, {0, 9}, EndCause::rank_failed);
  probe.end_all({1}, {0, 7}, EndCause::rank_failed);
  CHECK_FALSE(probe.meeting.over());
  probe.end_all({2}, {8, 0}, EndCause::rank_failed);
  const JobStory story = probe.done(0);
  CHECK(story.result.cause == EndCause::rank_failed);
  CHECK(story.result.culprit == 3);
  CHECK(story.result.exit_code == 7);
  CHECK(story.ranks.size() == 6);
}

TEST_CASE("meeting: a collateral failure waits for its cause to be heard of", "[launch]") {
  Running probe;
  probe.fail(0, 0, /*collateral=*/true);
  CHECK(probe.letters.empty());
  REQUIRE(probe.meeting.deadline() == probe.now + Meeting::kSettle);
  SECTION("it comes: it alone is told") {
    probe.wait(Meeting::kSettle - milliseconds(1));
    probe.fail(2, 5);
    CHECK(probe.last(0, "abort").at("rank") == 5);
    CHECK(probe.last(1, "abort").at("rank") == 5);
    CHECK(probe.said(2).empty());
    probe.wait(seconds(1));
    CHECK(probe.count(0, "abort") == 1);
    CHECK(probe.count(1, "abort") == 1);
  }
  SECTION("it does not come: the collateral one is told, to all") {
    probe.wait(Meeting::kSettle);
    for (int member = 0; member < 3; ++member) CHECK(probe.last(member, "abort").at("rank") == 0);
    CHECK_FALSE(probe.meeting.deadline());
    // The cause comes late: it still is the culprit.
    probe.fail(2, 5);
    CHECK(probe.last(1, "abort").at("rank") == 5);
  }
  for (int member = 0; member < 3; ++member) {
    const std::vector<int> codes = member == 2   ? std::vector{0, 6}
                                   : member == 0 ? std::vector{2, 0}
                                                 : std::vector{0, 0};
    probe.say(member, {{"say", "ended"}, {"story", story_of(member, 2 * member, codes)}});
  }
  CHECK(probe.done(1).result.culprit == 5);
  CHECK(probe.done(1).result.exit_code == 6);
}

TEST_CASE("meeting: with collateral failures alone the first of them is the culprit", "[launch]") {
  Running probe;
  probe.fail(2, 4, true);
  probe.fail(0, 0, true);
  probe.wait(Meeting::kSettle);
  CHECK(probe.last(1, "abort").at("rank") == 4);
  probe.end_all({0, 1, 2}, {5, 0});
  CHECK(probe.done(0).result.culprit == 4);
  CHECK(probe.done(0).result.exit_code == 5);
}

TEST_CASE("meeting: nodes that have ended are not told of a failure any more", "[launch]") {
  Running probe;
  probe.end_all({0}, {0, 0});
  probe.fail(1, 2);
  CHECK(probe.said(0).empty());
  CHECK(probe.said(2) == Words{"abort"});
}

TEST_CASE("meeting: before the start a failure, an end and a time limit mean nothing", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1);
  probe.fail(1, 0);
  probe.say(1, {{"say", "ended"}, {"story", story_of(0, 0, {1})}});
  probe.say(1, {{"say", "limit"}, {"cause", "timed_out"}});
  CHECK(probe.letters.empty());
  probe.come(2);
  CHECK(probe.said(1) == Words{"start"});
  probe.end(1, {0, 0});
  probe.end(2, {0, 0});
  CHECK(probe.done(1).result.cause == EndCause::none);
}

TEST_CASE("meeting: after a failure all start again while restarts are left", "[launch]") {
  Running probe(/*max_restarts=*/2);
  for (int generation = 1; generation <= 3; ++generation) {
    probe.letters.clear();
    probe.fail(0, 1);
    for (int member = 0; member < 3; ++member)
      probe.say(member, {{"say", "ended"},
                         {"restart", generation - 1},
                         {"story", story_of(member, 2 * member, {0, member == 0 ? 4 : 0}, EndCause::rank_failed)}});
    if (generation == 3) break;
    REQUIRE(static_cast<int>(probe.stores.size()) == generation + 1);
    CHECK(probe.stores.back() == generation);
    for (int member = 0; member < 3; ++member) {
      const json start = probe.last(member, "start");
      const json wanted = {{"restart", generation},
                           {"node_rank", member},
                           {"store_port", 7001 + generation},
                           {"store_salt", "salt" + std::to_string(generation + 1)}};
      CHECK(picked(start, wanted) == wanted);
    }
  }
  CHECK(probe.stores == std::vector<int>{0, 1, 2});
  const JobStory story = probe.done(2);
  CHECK(story.result.cause == EndCause::rank_failed);
  CHECK(story.result.culprit == 1);
  CHECK(story.result.exit_code == 4);
  CHECK(story.restarts == 2);
  CHECK(story.ranks.size() == 6);  // of the last generation alone
}

TEST_CASE("meeting: a restart that goes well makes all well", "[launch]") {
  Running probe(1);
  probe.fail(1, 2);
  probe.end_all({0, 1, 2}, {1, 1});
  for (int member = 0; member < 3; ++member) probe.end(member, {0, 0});
  CHECK(probe.done(0).result.cause == EndCause::none);
  CHECK(probe.done(0).result.exit_code == 0);
  CHECK(probe.done(0).restarts == 1);
}

TEST_CASE("meeting: a lost node ends the job where there are no restarts", "[launch]") {
  Running probe;
  probe.lose(1);
  for (const int member : {0, 2}) {
    REQUIRE(probe.said(member) == Words{"abort"});
    CHECK(probe.last(member, "abort").at("code") == "peer_lost");
    CHECK(probe.last(member, "abort").at("rank") == 2);  // its first
    CHECK_THAT(std::string(probe.last(member, "abort").at("message")),
               Catch::StartsWith("host n1 (node 1, ranks 2 to 3) is lost: the cable was cut; "));
  }
  probe.fail(0, 0, true);
  probe.end_all({0, 2}, {1, 1});
  const JobStory story = probe.done(0);
  CHECK(story.result.cause == EndCause::node_lost);
  CHECK(story.result.exit_code == 125);
  CHECK_THAT(story.result.error, Catch::StartsWith("lost the connection to host n1 (ranks 2 to 3): "));
  CHECK(story.ranks.size() == 4);
  CHECK(story.nodes == 3);  // as many as it ran on
  CHECK(probe.said(1).empty());
}

TEST_CASE("meeting: with restarts a lost node is waited for again", "[launch]") {
  Running probe(1);
  probe.lose(1);
  probe.end_all({0, 2}, {1, 1});
  CHECK_FALSE(probe.meeting.over());
  CHECK(probe.count(0, "start") == 0);
  SECTION("it comes") {
    probe.come(8, {.ranks = 1});
    // Those that were here before first.
    CHECK(probe.last(0, "start").at("node_rank") == 0);
    CHECK(probe.last(2, "start").at("node_rank") == 1);
    const json wanted = {{"node_rank", 2}, {"world_size", 5}, {"restart", 1}};
    CHECK(picked(probe.last(8, "start"), wanted) == wanted);
  }
  SECTION("it does not come: the reason is the node that was lost") {
    probe.wait(seconds(60));
    CHECK(probe.done(0).result.cause == EndCause::node_lost);
    CHECK(probe.done(0).result.exit_code == 125);
  }
}

TEST_CASE("meeting: an elastic job goes on with the nodes that are left, whatever the restarts", "[launch]") {
  Running probe(/*max_restarts=*/0, /*least=*/2, /*most=*/4);
  probe.lose(0);
  probe.end_all({1, 2}, {1, 1});
  CHECK(probe.count(1, "start") == 0);
  probe.wait(Meeting::kLastCall);
  CHECK(probe.last(1, "start").at("node_rank") == 0);
  CHECK(probe.last(2, "start").at("node_rank") == 1);
  CHECK(probe.last(2, "start").at("world_size") == 4);
  probe.lose(1);
  probe.end(2, {1, 1});
  CHECK(probe.done(2).result.cause == EndCause::node_lost);  // too few now, and no restarts
}

TEST_CASE("meeting: a node that joins a running elastic job makes all start again, with it", "[launch]") {
  Running probe(0, 2, 4);
  probe.come(3, {.ranks = 3});
  CHECK(probe.said(3).empty());
  for (int member = 0; member < 3; ++member) {
    REQUIRE(probe.said(member) == Words{"abort"});
    CHECK(probe.last(member, "abort").at("code") == "aborted");
    CHECK(probe.last(member, "abort").at("rank") == -1);
  }
  probe.fail(1, 2);  // because of the abort: no failure of its own
  probe.end_all({0, 1, 2}, {1, 1});
  for (int member = 0; member < 4; ++member) {
    const json start = probe.last(member, "start");
    const json wanted = {{"node_rank", member}, {"nodes", 4}, {"world_size", 9}, {"restart", 1}};
    CHECK(picked(start, wanted) == wanted);
  }
  probe.come(4);
  CHECK(probe.said(4) == Words{"refused"});
}

TEST_CASE("meeting: a signal to one node reaches the others, and the job is interrupted", "[launch]") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Running probe(/*max_restarts=*/5);
    probe.say(1, {{"say", "signal"}, {"signal", signal}});
    CHECK(probe.said(1).empty());
    CHECK(probe.last(0, "signal").at("signal") == signal);
    CHECK(probe.last(2, "signal").at("signal") == signal);
    probe.fail(0, 1);
    probe.say(2, {{"say", "signal"}, {"signal", SIGTERM}});  // a later one changes nothing
    probe.end_all({0, 1, 2}, {1, 1});
    CHECK(probe.done(0).result.cause == EndCause::interrupted);
    CHECK(probe.done(0).result.signal == signal);
    CHECK(probe.done(0).result.exit_code == 128 + signal);
  }
}

TEST_CASE("meeting: a signal while nodes gather ends the job at once, while it is ending prevents restarts",
          "[launch]") {
  MeetingProbe gathering(nodes(2, 2, 3));
  gathering.come(1);
  gathering.say(1, {{"say", "signal"}, {"signal", SIGINT}});
  CHECK(gathering.meeting.over());
  CHECK(gathering.done(1).result.signal == SIGINT);

  Running ending(3);
  ending.fail(0, 0);
  ending.end_all({0}, {1, 1});
  ending.say(2, {{"say", "signal"}, {"signal", SIGTERM}});
  ending.end_all({1, 2}, {1, 1});
  CHECK(ending.done(0).result.cause == EndCause::interrupted);
  CHECK(ending.stores.size() == 1);
}

TEST_CASE("meeting: a time limit that one node sees ends all, with the code of time limits", "[launch]") {
  for (const auto cause : {EndCause::timed_out, EndCause::exit_timed_out}) {
    Running probe(4);
    const std::string name(col::launch::to_string(cause));
    probe.say(2, {{"say", "limit"}, {"cause", name}});
    CHECK(probe.said(2).empty());
    for (const int member : {0, 1}) {
      CHECK(probe.said(member) == Words{"limit"});
      CHECK(probe.last(member, "limit").at("cause") == name);
    }
    probe.say(1, {{"say", "limit"}, {"cause", "timed_out"}});  // heard already
    CHECK(probe.said(2).empty());
    probe.end_all({0, 1, 2}, {9, 9});
    CHECK(probe.done(1).result.cause == cause);
    CHECK(probe.done(1).result.exit_code == 124);
  }
}

TEST_CASE("meeting: a time limit that passes while a failed job is ended does not hide the failure", "[launch]") {
  Running probe;
  probe.fail(1, 3);
  probe.say(0, {{"say", "limit"}, {"cause", "timed_out"}});
  probe.end_all({0, 1, 2}, {0, 7});
  CHECK(probe.done(0).result.cause == EndCause::rank_failed);
  CHECK(probe.done(0).result.culprit == 3);
}

TEST_CASE("meeting: a node whose launcher failed ends the job, with its words", "[launch]") {
  Running probe(/*max_restarts=*/3);
  JobStory failed;
  failed.result.cause = EndCause::launcher_failed;
  failed.result.exit_code = 125;
  failed.result.error = "cannot start rank 2: no more processes";
  probe.say(1, {{"say", "ended"}, {"story", col::launch::story_to_json(failed)}});
  CHECK(probe.said(0) == Words{"abort"});
  probe.end_all({2, 0}, {1, 1});
  CHECK(probe.done(2).result.cause == EndCause::launcher_failed);
  CHECK(probe.done(2).result.exit_code == 125);
  CHECK(probe.done(2).result.error == "host n1: cannot start rank 2: no more processes");
  CHECK(probe.done(2).command_line == Words{"colrun", "node0"});
  CHECK(probe.stores.size() == 1);
}

TEST_CASE("meeting: what is told of the job as a whole is there though its only node's launcher failed", "[launch]") {
  MeetingProbe probe(nodes(1, 1));
  probe.come(1);
  probe.end(1, {0, 0}, EndCause::launcher_failed);
  CHECK(probe.done(1).command_line == Words{"colrun", "node0"});
  CHECK(probe.done(1).directory == "/home/ada");
}

TEST_CASE("meeting: where the reader of a node's output is gone, no launcher has failed", "[launch]") {
  Running probe;
  JobStory closed;
  closed.result.cause = EndCause::output_closed;
  closed.result.exit_code = 141;
  probe.say(0, {{"say", "ended"}, {"story", col::launch::story_to_json(closed)}});
  CHECK(probe.said(1) == Words{"abort"});
  probe.end_all({1, 2}, {1, 1});
  CHECK(probe.done(0).result.cause == EndCause::output_closed);
  CHECK(probe.done(0).result.exit_code == 141);
}

TEST_CASE("meeting: a host that cannot be reached ends a job that has not begun", "[launch]") {
  MeetingProbe probe(nodes(2, 2));
  probe.come(1);
  probe.say(1, message_of(col::launch::Unreachable{.what = "cannot reach host n2 by ssh"}));
  CHECK(probe.done(1).result.error == "cannot reach host n2 by ssh");
  CHECK(probe.done(1).result.exit_code == 125);
  const auto [said, expected] =
      GENERATE(std::pair(126, 126), std::pair(127, 127), std::pair(0, 125), std::pair(-1, 125));
  MeetingProbe program(nodes(2, 2));
  program.come(1);
  program.say(1, message_of(col::launch::Unreachable{.what = "host n2 cannot run the program", .exit_code = said}));
  CHECK(program.done(1).result.exit_code == expected);
  // An ssh that has gone to the background.
  MeetingProbe background(nodes(2, 2));
  background.come(1, {.wanted_rank = 0});
  background.say(1, message_of(col::launch::Unreachable{.what = "started nothing", .unless_came = 0}));
  CHECK(background.letters.empty());
  background.say(1, message_of(col::launch::Unreachable{.what = "started nothing", .unless_came = 1}));
  CHECK(background.done(1).result.error == "started nothing");
  Running later;
  later.say(1, message_of(col::launch::Unreachable{.what = "x"}));
  CHECK(later.letters.empty());
}

TEST_CASE("meeting: a host that is lost before the job began ends it where nobody starts it again", "[launch]") {
  MeetingSpec spec = nodes(3, 3);
  spec.others_may_come = false;
  MeetingProbe probe(spec);
  probe.come(0, {.ranks = 0});
  probe.come(1);
  probe.come(2);
  probe.lose(2);
  CHECK(probe.done(0).result.exit_code == 125);
  CHECK(probe.done(0).result.error.starts_with("lost host n2 before the job began: the cable was cut;"));
  CHECK(probe.done(1).result.cause == EndCause::node_lost);
}

TEST_CASE("meeting: processes that survived are counted on all nodes", "[launch]") {
  Running probe;
  for (int member = 0; member < 3; ++member) {
    json story = story_of(member, 2 * member, {0, 0});
    story["processes_left"] = member + 1;
    probe.say(member, {{"say", "ended"}, {"story", story}});
  }
  CHECK(probe.done(0).processes_left == 6);
}

TEST_CASE("meeting: where ranks go on in epochs, those of the last one decide the exit code", "[launch]") {
  for (const int last : {0, 5}) {
    MeetingSpec spec = nodes(2, 2);
    spec.keep_going = spec.has_epochs = true;
    MeetingProbe probe(spec);
    probe.come(0);
    probe.come(1);
    probe.fail(0, 1);
    json first = story_of(0, 0, {0, 3}), second = story_of(1, 2, {last, 7});
    first["ranks"][0]["epoch"] = second["ranks"][0]["epoch"] = 2;
    first["ranks"][1]["epoch"] = 1;  // it was lost before
    second["ranks"][1]["spare"] = true;
    probe.say(0, {{"say", "ended"}, {"story", first}});
    probe.say(1, {{"say", "ended"}, {"story", second}});
    const JobResult result = probe.done(0).result;
    CHECK(result.exit_code == last);
    CHECK(result.cause == (last == 0 ? EndCause::none : EndCause::rank_failed));
    CHECK(result.culprit == (last == 0 ? -1 : 2));
  }
}

TEST_CASE("meeting: with keep-going a failure ends nobody, and still decides the exit code", "[launch]") {
  MeetingSpec spec = nodes(2, 2);
  spec.keep_going = true;
  MeetingProbe probe(spec);
  probe.come(0);
  probe.come(1);
  probe.letters.clear();
  probe.fail(0, 1);
  probe.fail(1, 2, /*collateral=*/true);
  probe.wait(seconds(5));
  CHECK(probe.letters.empty());
  probe.end_all({0}, {0, 3});
  CHECK(probe.letters.empty());
  probe.end_all({1}, {1, 0});
  CHECK(probe.done(0).result.cause == EndCause::rank_failed);
  CHECK(probe.done(0).result.culprit == 1);
  CHECK(probe.done(0).result.exit_code == 3);
}

TEST_CASE("meeting: the exit policy looks at the ranks of all nodes", "[launch]") {
  struct Case {
    col::launch::ExitPolicy policy;
    int culprit;
    int code;
  };
  const std::vector<Case> cases = {{col::launch::ExitPolicy::first, 1, 3},
                                   {col::launch::ExitPolicy::max, 2, 9},
                                   {col::launch::ExitPolicy::rank0, 1, 5}};
  for (const Case& wanted : cases) {
    MeetingSpec spec = nodes(2, 2);
    spec.exit_policy = wanted.policy;
    MeetingProbe probe(spec);
    probe.come(0);
    probe.come(1);
    probe.fail(0, 1);
    probe.end_all({1}, {9, 0});
    probe.end_all({0}, {5, 3});
    CHECK(probe.done(1).result.culprit == wanted.culprit);
    CHECK(probe.done(1).result.exit_code == wanted.code);
  }
}
