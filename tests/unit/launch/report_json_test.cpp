#include "launch/report/report_json.hpp"

#include <csignal>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "launch/report/report.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using col::RankActivity;
using Json = nlohmann::ordered_json;

namespace {

RankStory full_rank() {
  RankStory rank;
  rank.rank = 5;
  rank.local_rank = 1;
  rank.node_rank = 2;
  rank.host = "n7";
  rank.cpus = {2, 3, 9};
  rank.why_not = "other jobs hold 3 of 8 cores";
  rank.status = {.pid = 4711,
                 .wait_status = SIGSEGV,
                 .started = 0.001,
                 .seconds = 3.25,
                 .cpu_seconds = 2.5,
                 .peak_rss_bytes = 1ULL << 60,
                 .exited = true,
                 .collateral = true,
                 .told_to_end = true,
                 .needed_kill = true,
                 .walked_out = true,
                 .out_of_memory = true};
  rank.said = RankError{"mismatch", "counts differ"};
  RankActivity last;
  last.state = RankActivity::State::waiting;
  last.rank = 5;
  last.pid = 4712;
  last.pid_start = 99;
  last.group = "default";
  last.sequence = 417;
  last.op = "allreduce";
  last.fingerprint = 0xfedcba9876543210;
  last.step = 3;
  last.peer = 4;
  last.since_ns = ~0ULL;
  last.details = {.dtype = col::DType::bytes, .count = 3, .partner = 4, .tag = -7};  // any number is a tag
  rank.last = last;
  rank.stack = Stack{"gdb", {"#0  poll ()", "#1  main ()"}};
  rank.last_stderr = {"one", "two"};
  return rank;
}

JobStory full_story() {
  JobStory story;
  story.job_id = "42-7";
  story.command_line = {"colrun", "-n", "2", "./my trainer", "it's", ""};
  story.directory = "/home/ada";
  story.started_at = std::chrono::system_clock::time_point(std::chrono::nanoseconds(1'785'578'400'123'456'789));
  story.seconds = 3.5;
  story.nodes = 3;
  story.restarts = 1;
  story.processes_left = 2;
  story.result.exit_code = 139;
  story.result.cause = EndCause::rank_failed;
  story.result.culprit = 5;
  story.ranks = {full_rank(), RankStory()};
  return story;
}

}  // namespace

TEST_CASE("report json: has what there is to know, in words", "[launch]") {
  const Json report = report_json(full_story());
  CHECK(report.begin().key() == "schema");
  CHECK(report["schema"] == "col.job/1");
  CHECK(report["command"]["shell"] == "colrun -n 2 './my trainer' 'it'\\''s' ''");
  CHECK(report["command"]["arguments"].size() == 6);
  CHECK(report["started_at"] == "2026-08-01T10:00:00.123456789Z");
  CHECK(report["exit_code"] == 139);
  CHECK(report["cause"] == "rank_failed");
  CHECK(report["culprit"] == 5);
  CHECK(report["signal"].is_null());
  CHECK(report["processes_left"] == 2);
  // Not a word about rank 0, which was never started.
  CHECK(report["waiting"] == Json::array({"rank 5 was in allreduce #417 of group 'default' when it ended"}));
  const Json& rank = report["ranks"][0];
  CHECK(rank["cpus"] == Json::array({2, 3, 9}));
  CHECK(rank["not_bound"] == "other jobs hold 3 of 8 cores");
  CHECK(report["ranks"][1]["cpus"].empty());
  CHECK(report["ranks"][1]["not_bound"].is_null());
  CHECK(rank["outcome"] == "signalled");
  CHECK(rank["signal"] == "SIGSEGV");
  CHECK(rank["exit_code"].is_null());
  CHECK(rank["peak_rss_bytes"] == 1ULL << 60);
  CHECK(rank["said"]["code"] == "mismatch");
  CHECK(rank["last_call"]["state"] == "waiting");
  CHECK(rank["last_call"]["fingerprint"] == "0xfedcba9876543210");
  CHECK(rank["stack"]["lines"].size() == 2);
  CHECK(rank["last_stderr"][1] == "two");
  CHECK(report["ranks"][1]["outcome"] == "not_started");
  for (const char* name : {"said", "last_call", "stack", "signal", "exit_code"})
    CHECK(report["ranks"][1][name].is_null());
}

TEST_CASE("report json: exit codes are null where there is none", "[launch]") {
  RankStory rank;
  rank.status.pid = 1;
  CHECK(rank_story_to_json(rank)["outcome"] == "not_ended");
  CHECK(rank_story_to_json(rank)["exit_code"].is_null());
  rank.status.exited = true;
  rank.status.wait_status = 7 << 8;
  CHECK(rank_story_to_json(rank)["outcome"] == "exited");
  CHECK(rank_story_to_json(rank)["exit_code"] == 7);
}

TEST_CASE("report json: what is written is read again, and nothing is lost", "[launch]") {
  const JobStory before = full_story();
  const JobStory after = story_from_json(Json::parse(report_json_text(before)));
  CHECK(after.command_line == before.command_line);
  CHECK(after.started_at == before.started_at);
  CHECK(after.result.culprit == 5);
  CHECK(after.ranks.size() == 2);
  CHECK(after.ranks[0].status.peak_rss_bytes == 1ULL << 60);
  REQUIRE(after.ranks[0].last);
  CHECK(after.ranks[0].last->fingerprint == before.ranks[0].last->fingerprint);
  CHECK(after.ranks[0].last->since_ns == ~0ULL);
  CHECK_FALSE(after.ranks[1].last);
  // Every member that there is: what was read is written as before.
  CHECK(report_json_text(after) == report_json_text(before));
  JobStory interrupted = before;
  interrupted.result = {.exit_code = 130, .signal = SIGINT, .cause = EndCause::interrupted, .error = "x"};
  CHECK(report_json_text(story_from_json(report_json(interrupted))) == report_json_text(interrupted));
}

TEST_CASE("report json: every cause has a name", "[launch]") {
  for (int cause = 0; cause <= static_cast<int>(EndCause::launcher_failed); ++cause) {
    JobStory story = full_story();
    story.result.cause = static_cast<EndCause>(cause);
    CHECK(story_from_json(story_to_json(story)).result.cause == story.result.cause);
  }
  CHECK(to_string(EndCause::node_lost) == "node_lost");
  CHECK(to_string(EndCause::launcher_failed) == "launcher_failed");
}

TEST_CASE("report json: bytes that are no text are replaced", "[launch]") {
  JobStory story = full_story();
  story.command_line = {"a\xff"};
  story.ranks[0].last_stderr = {"\xc3\x28", std::string("nul \0 byte", 10)};
  story.ranks[0].said = RankError{"code", "\xf0\x9f"};
  const std::string text = report_json_text(story);
  const Json report = Json::parse(text);
  CHECK(report["command"]["arguments"][0] == "a\xef\xbf\xbd");
  CHECK(report["ranks"][0]["last_stderr"][0] == "\xef\xbf\xbd(");
  CHECK(report["ranks"][0]["last_stderr"][1] == std::string("nul \0 byte", 10));
  CHECK(story_from_json(report).ranks[0].said->message == "\xef\xbf\xbd");
}

TEST_CASE("report json: a rank's story that is none is refused, and the member named", "[launch]") {
  const Json good = rank_story_to_json(full_rank());
  REQUIRE(rank_story_from_json(good).rank == 5);
  // Whatever stands where a value was, and wherever it is missing.
  const Json wrong = {nullptr, -7, 1e300, 1ULL << 63, "text", true, Json::array({1}), Json{{"a", 1}}};
  const auto refused = [](const Json& value, const std::string& name) {
    try {
      rank_story_from_json(value);
      return false;
    } catch (const col::Error& error) {
      const std::string& text = error.message();
      INFO(text);
      CHECK(text.find("rank story: ") == 0);
      const bool names_it =
          text.find("'" + name + "'") != std::string::npos || text.find("/" + name) != std::string::npos;
      CHECK(names_it);
      CHECK(text.find('\n') == std::string::npos);
      return true;
    }
  };
  for (const auto& [name, value] : good.items()) {
    const bool derived = name == "outcome" || name == "exit_code" || name == "signal";
    if (derived) continue;
    if (name != "times" && name != "burden") {  // which are left out where there is nothing to say
      Json without = good;
      without.erase(name);
      CHECK(refused(without, name));
    }
    int refusals = 0;
    for (const Json& other : wrong) {
      Json changed = good;
      changed[name] = other;
      try {
        rank_story_from_json(changed);
      } catch (const col::Error&) {
        ++refusals;
      }
    }
    INFO(name);
    CHECK(refusals >= 5);
  }
  for (const char* member : {"state", "group", "sequence", "op", "fingerprint", "step", "peer", "pid", "since_ns",
                             "held_up_by", "stopped"}) {
    Json changed = good;
    changed["last_call"][member] = Json::array();
    CHECK(refused(changed, "last_call"));
  }
  Json state = good;
  state["last_call"]["state"] = "asleep";
  CHECK(refused(state, "state"));
  for (const char* text : {"", "0x", "17", "0x1g", "0x12345678901234567"}) {
    Json changed = good;
    changed["last_call"]["fingerprint"] = text;
    CHECK(refused(changed, "fingerprint"));
  }
  for (const Json& value : {Json(), Json(7), Json("text"), Json::array(), Json::object()})
    CHECK_THROWS_AS(rank_story_from_json(value), col::Error);
}

TEST_CASE("report json: there is a limit to what is read", "[launch]") {
  Json rank = rank_story_to_json(full_rank());
  rank["last_stderr"] = std::vector<std::string>(100'000, "x");
  CHECK_THROWS_AS(rank_story_from_json(rank), col::Error);
  rank["last_stderr"] = Json::array({std::string(1 << 20, 'x')});
  CHECK_THROWS_AS(rank_story_from_json(rank), col::Error);
  rank["last_stderr"] = Json::array();
  rank["host"] = std::string(10'000, 'x');
  CHECK_THROWS_AS(rank_story_from_json(rank), col::Error);
  auto nested = nlohmann::json::parse(std::string(100'000, '[') + std::string(100'000, ']'));
  CHECK_THROWS_AS(rank_story_from_json(nested), col::Error);
  // Where another member is wrong, too.
  nlohmann::json beside = rank_story_to_json(full_rank());
  beside["a"].swap(nested);
  beside["stack"] = 7;
  CHECK_THROWS_AS(rank_story_from_json(beside), col::Error);
}

TEST_CASE("report json: a job's story that is none is refused", "[launch]") {
  const Json good = story_to_json(full_story());
  const auto with = [&](const char* name, const Json& value) {
    Json changed = good;
    changed[name] = value;
    return changed;
  };
  REQUIRE(story_from_json(good).nodes == 3);
  CHECK_THROWS_AS(story_from_json(with("schema", "col.job/2")), col::Error);
  CHECK_THROWS_AS(story_from_json(with("cause", "bad luck")), col::Error);
  CHECK_THROWS_AS(story_from_json(with("exit_code", 256)), col::Error);
  CHECK_THROWS_AS(story_from_json(with("nodes", 0)), col::Error);
  CHECK_THROWS_AS(story_from_json(with("command", "colrun")), col::Error);
  CHECK_THROWS_AS(story_from_json(with("ranks", Json::object())), col::Error);
  CHECK_THROWS_AS(story_from_json(with("ranks", Json::array({7}))), col::Error);
  for (const char* time : {"", "yesterday", "2026-08-01T10:00:00", "9999-01-01T00:00:00.000000000Z",
                           "2026-08-01T10:00:00.000000000Zz", "2026-08-01T10:00:00.-00000001Z"})
    CHECK_THROWS_AS(story_from_json(with("started_at", time)), col::Error);
}

TEST_CASE("report json: any mixture of members is read or refused", "[launch]") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string text = story_to_json(full_story()).dump();
  int read = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string changed = text;
    for (unsigned count = random() % 4 + 1; count > 0; --count) {
      // Bytes that leave it JSON more often than not.
      constexpr std::string_view kBytes = "0123456789-.eE\",:[]{}nulltruefals";
      changed[random() % changed.size()] = kBytes[random() % kBytes.size()];
    }
    const Json value = Json::parse(changed, nullptr, false);
    if (value.is_discarded()) continue;
    try {
      const JobStory story = story_from_json(value);
      const std::string again = report_json_text(story);
      CHECK(report_json_text(story_from_json(Json::parse(again))) == again);
      CHECK(report_lines(story).size() < 100);
      ++read;
    } catch (const col::Error&) {
      ++refused;
    }
  }
  CHECK(read > 10);
  CHECK(refused > 100);
}
