#include "launch/report/why.hpp"

#include <csignal>
#include <cstdint>
#include <string>

#include "common/text.hpp"
#include "launch/nodes/pulse.hpp"
#include "launch/report/look.hpp"
#include "launch/supervise/metrics_server.hpp"
#include "support/catch.hpp"
#include "unit/launch/joined_ranks.hpp"

using namespace col::launch;
using col::CallDetails;
using col::Collective;
using col::RankActivity;
using col::RecordedCall;
using State = RankActivity::State;
using Cause = Why::Cause;

namespace {

// Ranks that have joined, and are members of `default`, in which they have made so many calls.
JobStory job(int ranks, std::uint64_t calls = 0) {
  return joined_ranks(ranks, 100, "default", "barrier", calls);
}

RankActivity& last(JobStory& story, std::size_t rank) {
  return *story.ranks[rank].last;
}

void wait_in(JobStory& story, std::size_t rank, const std::string& op, std::uint64_t sequence,
             const CallDetails& details = {}, const std::string& group = "default") {
  RankActivity& activity = last(story, rank);
  activity.state = State::waiting;
  activity.op = op;
  activity.sequence = sequence;
  activity.group = group;
  activity.details = details;
}

RecordedCall message(Collective op, int partner, int tag) {
  return {.op = op, .group = "default", .details = {.dtype = col::DType::float32, .partner = partner, .tag = tag}};
}

std::vector<std::string> why_lines(const JobStory& story, col::tools::Style style = {}) {
  return col::tools::lines_of(report_text(why_part(story, why(story)), style, ""));
}

}  // namespace

TEST_CASE("why: nobody waits", "[launch]") {
  const Why found = why(job(3));
  CHECK(found.cause == Cause::nothing);
  CHECK(found.culprits.empty());
  CHECK(found.sentence == "no rank waits for another");
}

TEST_CASE("why: a rank that has not come to a call", "[launch]") {
  JobStory story = job(4, 416);
  for (const std::size_t rank : {0U, 1U, 2U})
    wait_in(story, rank, "allreduce", 417, {.dtype = col::DType::float32, .count = 1000});
  SECTION("is named, with what it did last") {
    const Why found = why(story);
    CHECK(found.cause == Cause::own_code);
    CHECK(found.culprits == std::vector{3});
    CHECK(found.waiting == std::vector{0, 1, 2});
    CHECK(found.seconds == 14);
    CHECK(found.sentence ==
          "ranks 0-2 have waited for 14.0 s in allreduce #417 of group 'default' (1,000 float32): rank 3 (pid 103) has "
          "not called it: it is in its own code, for 14.0 s (last: barrier #416)");
  }
  SECTION("so many calls behind") {
    last(story, 3).sequence = 414;
    story.ranks[3].history.groups[0].last = 414;
    CHECK(why(story).sentence.ends_with("(last: barrier #414; 3 calls behind)"));
  }
  SECTION("with its host, if there are several") {
    story.nodes = 2;
    story.ranks[3].host = "n7";
    CHECK(why(story).sentence.find("rank 3 (pid 103, host n7) has not called it") != std::string::npos);
  }
  SECTION("swapping") {
    story.ranks[3].burden = {.resident_bytes = 1 << 30, .swapped_bytes = std::uint64_t{3} << 30};
    CHECK(why(story).sentence.ends_with(
        "(last: barrier #416), and 3.0 GiB of its memory are swapped out: this host has too little"));
    story.ranks[3].burden.swapped_bytes = 1 << 20;
    CHECK(why(story).sentence.ends_with("(last: barrier #416)"));
  }
  SECTION("waiting for a disk") {
    story.ranks[3].burden.waits_for_disk = true;
    CHECK(why(story).sentence.ends_with("(last: barrier #416), and waits in the kernel for a disk or a file system"));
  }
  SECTION("stopped") {
    last(story, 3).stopped = true;
    CHECK(why(story).cause == Cause::stopped);
    CHECK(why(story).sentence.find("rank 3 (pid 103) stands still: a signal (SIGSTOP, ^Z) or a debugger") !=
          std::string::npos);
  }
  SECTION("dead") {
    story.ranks[3].status.exited = true;
    story.ranks[3].status.wait_status = SIGKILL;
    CHECK(why(story).cause == Cause::dead);
    CHECK(why(story).sentence.find("rank 3 (pid 103) was killed by SIGKILL") != std::string::npos);
  }
  SECTION("dead, and nobody has waited for it") {
    last(story, 3).gone = true;
    CHECK(why(story).cause == Cause::dead);
    CHECK(why(story).sentence.find("rank 3 (pid 103) has ended without col::finalize()") != std::string::npos);
  }
  SECTION("left") {
    last(story, 3).state = State::finished;
    CHECK(why(story).cause == Cause::left);
  }
  SECTION("that is in another group of the same name") {
    story.ranks[3].history.groups = {{"default", 8, 500}};
    last(story, 3).sequence = 500;
    CHECK(why(story).culprits == std::vector{3});
  }
  SECTION("that is no member is not waited for") {
    story.ranks[3].history.groups.clear();
    last(story, 3).group = "other";
    CHECK(why(story).cause == Cause::moves);
  }
  SECTION("that has started it, and does not wait") {
    story.ranks[3].history.groups[0].last = 417;
    RecordedCall started = message(Collective::allreduce, -1, -1);
    started.sequence = 417;
    started.ended = false;
    story.ranks[3].history.calls = {started};
    const Why found = why(story);
    CHECK(found.cause == Cause::not_waited);
    CHECK(found.culprits == std::vector{3});
    started.ended = true;
    story.ranks[3].history.calls.push_back(started);
    CHECK(why(story).cause == Cause::moves);
  }
}

TEST_CASE("why: a chain through groups ends at the rank that waits for nobody", "[launch]") {
  JobStory story = job(3);
  story.ranks[0].history.groups = {{"rows", 2, 0}};
  story.ranks[1].history.groups = {{"rows", 2, 0}, {"columns", 3, 0}};
  story.ranks[2].history.groups = {{"columns", 3, 0}};
  wait_in(story, 0, "barrier", 1, {}, "rows");
  wait_in(story, 1, "barrier", 1, {}, "columns");
  last(story, 2).group = "columns";
  const Why found = why(story);
  CHECK(found.culprits == std::vector{2});
  CHECK(found.sentence.starts_with("rank 1 has waited for 14.0 s in barrier #1 of group 'columns': rank 2 (pid 102)"));
  CHECK(found.sentence.ends_with("; rank 0 waits for rank 1 in barrier #1 of group 'rows'"));
  SECTION("or is a circle") {
    story.ranks[0].history.groups.push_back({"columns", 3, 0});
    wait_in(story, 1, "barrier", 1, {}, "columns");
    story.ranks[2].history.groups.clear();
    last(story, 2).group = "default";
    const Why circle = why(story);
    CHECK(circle.cause == Cause::circle);
    CHECK(circle.culprits == std::vector{0, 1});
    CHECK(circle.sentence ==
          "ranks 0-1 wait for one another in a circle, for 14.0 s: rank 0 for rank 1 in barrier #1 of group 'rows'; "
          "rank 1 for rank 0 in barrier #1 of group 'columns'");
  }
}

TEST_CASE("why: messages that do not fit", "[launch]") {
  JobStory story = job(2);
  wait_in(story, 1, "recv", 0, {.dtype = col::DType::float32, .count = 1, .partner = 0, .tag = 5});
  auto& sent = story.ranks[0].history.calls;
  auto& received = story.ranks[1].history.calls;
  SECTION("nothing was sent") {
    CHECK(why(story).cause == Cause::own_code);
    CHECK(why(story).sentence.find("rank 0 (pid 100) has not sent it") != std::string::npos);
  }
  SECTION("with another tag") {
    sent = {message(Collective::send, 1, 6)};
    const Why found = why(story);
    CHECK(found.cause == Cause::wrong_tag);
    CHECK(found.culprits == std::vector{0});
    CHECK(
        found.sentence ==
        "rank 1 has waited for 14.0 s in recv of a message with tag 5 from rank 0 of group 'default': rank 0 (pid 100) "
        "has sent one with tag 6, which nobody receives");
    received = {message(Collective::recv, 0, 6)};  // that one was received
    CHECK(why(story).cause == Cause::own_code);
    sent.push_back(message(Collective::send, 1, 5));  // this one is on its way
    sent.push_back(message(Collective::send, 1, 6));
    CHECK(why(story).cause == Cause::own_code);
  }
  SECTION("which the sender waits for") {
    wait_in(story, 0, "send", 0, {.dtype = col::DType::float32, .count = 1, .partner = 1, .tag = 6});
    CHECK(why(story).cause == Cause::wrong_tag);
    CHECK(why(story).sentence.find("rank 0 (pid 100) waits to send one with tag 6") != std::string::npos);
  }
  SECTION("before the record of the receiver begins") {
    story.ranks[0].seen_ns = story.ranks[1].seen_ns = 1'000'000;
    sent = {message(Collective::send, 1, 6)};
    sent.front().at_ns = 100;
    received.assign(kReportedCalls, message(Collective::recv, 7, 1));  // as many as are kept: of others
    for (RecordedCall& call : received) call.at_ns = 500;
    CHECK(why(story).cause == Cause::own_code);
    sent.front().at_ns = 900;
    CHECK(why(story).cause == Cause::wrong_tag);
  }
  SECTION("to somebody else") {
    sent = {message(Collective::send, 2, 6)};
    CHECK(why(story).cause == Cause::own_code);
  }
}

TEST_CASE("why: different calls", "[launch]") {
  JobStory story = job(3, 4);
  for (const std::size_t rank : {0U, 1U, 2U}) {
    wait_in(story, rank, rank == 1 ? "broadcast" : "allreduce", 5, {.dtype = col::DType::float32, .count = 4});
    last(story, rank).fingerprint = rank == 1 ? 11 : 10;
  }
  const Why found = why(story);
  CHECK(found.cause == Cause::calls_differ);
  CHECK(found.culprits == std::vector{1});
  CHECK(found.sentence ==
        "rank 1 (pid 101) is in broadcast #5 of group 'default' (4 float32), and rank 0 in allreduce #5 of group "
        "'default' (4 float32): all ranks of a group must make the same calls");
}

TEST_CASE("why: the table has one row for ranks that do the same", "[launch]") {
  JobStory story = job(4, 1);
  for (const std::size_t rank : {0U, 1U, 2U}) wait_in(story, rank, "barrier", 2);
  const std::vector<std::string> lines = why_lines(story);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0] == why(story).sentence);
  CHECK(lines[3].starts_with("0-2"));
  CHECK(lines[3].find("waiting") != std::string::npos);
  CHECK(lines[4].find("103") != std::string::npos);
  CHECK(lines[4].find("after barrier #1 of group 'default'") != std::string::npos);
  for (const std::size_t columns : {60U, 80U}) {
    for (const std::string& line : why_lines(story, {.columns = columns, .wraps = true})) {
      CAPTURE(line);
      CHECK(line.size() <= columns);
    }
  }
}

TEST_CASE("why: a thousand ranks are explained in one line", "[launch]") {
  JobStory story = job(1000, 1);
  for (std::size_t rank = 0; rank < 999; ++rank) wait_in(story, rank, "barrier", 2);
  const Why found = why(story);
  CHECK(found.culprits == std::vector{999});
  CHECK(found.sentence.starts_with("ranks 0-998 have waited"));
  CHECK(found.sentence.size() < 300);
}

TEST_CASE("why: a label and a place are said, where they are the same for all that wait", "[launch]") {
  JobStory story = job(3, 4);
  for (const std::size_t rank : {0, 1}) {
    wait_in(story, rank, "allreduce", 5, {.dtype = col::DType::float32, .count = 1000});
    last(story, rank).names.label = "backward";
    last(story, rank).place = "train.py:88";
    last(story, rank).progress = {.round = 1, .rounds = 4};
  }
  CHECK(
      why(story).sentence.find("in allreduce #5 of group 'default' (1,000 float32), 'backward', called in train.py:88: "
                               "rank 2") != std::string::npos);
  const auto lines = why_lines(story);
  CHECK(lines[3].find("'backward', called in train.py:88, in round 2 of 4") != std::string::npos);
  last(story, 1).place = "train.py:99";
  const Why found = why(story);
  CHECK(found.sentence.find("ranks 0-1 have waited") == 0);
  CHECK(found.sentence.find("train.py") == std::string::npos);
}

TEST_CASE("metrics: what ranks do, and how far they are", "[launch]") {
  JobStory story = job(3, 4);
  story.job_id = "a \"quoted\" job";
  story.restarts = 2;
  wait_in(story, 0, "allreduce", 5, {.dtype = col::DType::float32, .count = 1000});
  story.ranks[1].status.exited = true;
  story.ranks[1].status.wait_status = 256;
  const std::string text = metrics_text(story);
  CHECK(text.find("col_job_info{job=\"a \\\"quoted\\\" job\",") != std::string::npos);
  CHECK(text.find("\ncol_job_restarts_total 2\n") != std::string::npos);
  CHECK(text.find("\ncol_ranks{state=\"waiting\"} 1\n") != std::string::npos);
  CHECK(text.find("\ncol_ranks_failed 1\n") != std::string::npos);
  CHECK(text.find("\ncol_group_calls_total{group=\"default\",rank=\"2\"} 4\n") != std::string::npos);
  CHECK(text.find("\ncol_rank_waiting_seconds{group=\"default\",call=\"allreduce\",rank=\"0\"} 14\n") !=
        std::string::npos);
  CHECK(text.find("\ncol_hosts_silent 0\n") != std::string::npos);
  JobStory of_hosts = story;
  of_hosts.nodes = 3;
  of_hosts.ranks[2].host = "n2";
  of_hosts.silent.push_back({.node_rank = 2, .host = "n3", .first_rank = 3, .ranks = 1});
  const std::string all = metrics_text(of_hosts);
  CHECK(all.find("\ncol_group_calls_total{group=\"default\",rank=\"2\",host=\"n2\"} 4\n") != std::string::npos);
  CHECK(all.find("\ncol_hosts_silent 1\n") != std::string::npos);
  // Each value has a type before it, and each line is one of the two.
  std::string type;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("# TYPE ")) type = line.substr(7, line.find(' ', 7) - 7);
    if (!line.starts_with("#")) CHECK(line.substr(0, line.find_first_of("{ ")) == type);
  }
}

TEST_CASE("clock samples: offset and drift from the best answers, and their error", "[launch]") {
  ClockSamples samples;
  CHECK_FALSE(samples.shift());
  CHECK(samples.needs_more_early());
  // The clock here is 1,000 ns ahead at first; one answer is quicker than the others.
  for (int i = 0; i < 8; ++i) {
    const std::int64_t asked = 10'000 + i * 1000, way = i == 5 ? 20 : 300;
    samples.add(asked, asked + way - 1000, asked + 2 * way);
  }
  CHECK_FALSE(samples.needs_more_early());
  const auto early = samples.shift();
  REQUIRE(early);
  CHECK(early->ahead_at(1) == 1000);
  CHECK(early->error_ns == 20);
  // Later it is 1,400 ahead; a slow answer does not replace a good one.
  samples.add(1'015'000, 1'015'030 - 1400, 1'015'060);
  samples.add(1'020'000, 1'020'900 - 1500, 1'021'000);
  const auto late = samples.shift();
  REQUIRE(late);
  CHECK(late->error_ns == 30);
  CHECK(late->ahead_at(15'020) == 1000);
  CHECK(late->ahead_at(1'015'030) == 1400);
  CHECK(late->ahead_at(515'025) == 1200);
  samples.add(100, 50, 90);  // a clock that goes backwards
  CHECK(samples.shift()->error_ns == 30);
}

TEST_CASE("why: a host that does not answer is to blame only if nobody else is missing", "[launch]") {
  JobStory story = job(3, 1);
  story.nodes = 2;
  story.silent = {{.node_rank = 1, .host = "n2", .first_rank = 3, .ranks = 2}};
  for (const std::size_t rank : {0U, 1U, 2U}) wait_in(story, rank, "barrier", 2);
  const Why found = why(story);
  CHECK(found.cause == Cause::no_answer);
  CHECK(found.culprits == std::vector{3, 4});
  CHECK(found.sentence ==
        "ranks 0-2 have waited for 14.0 s in barrier #2 of group 'default': host n2 (node 1, ranks 3-4) does not "
        "answer: dead or frozen, or cut off");
  CHECK(why_lines(story).back() == "host n2 (node 1, ranks 3-4) has not answered: its ranks are not shown");
  last(story, 2).state = State::joined;
  last(story, 2).sequence = 1;
  CHECK(why(story).culprits == std::vector{2});
  CHECK(why_lines(story).back().starts_with("host n2 "));
}

TEST_CASE("why: a spare that nobody has taken is asleep", "[launch]") {
  JobStory story = job(3, 1);
  for (const std::size_t rank : {0U, 1U}) wait_in(story, rank, "barrier", 2);
  last(story, 2).state = State::joined;
  CHECK(state_of_rank(WaitGraph(story), 2) == "computing");
  story.ranks[2].is_spare = true;
  CHECK(state_of_rank(WaitGraph(story), 2) == "asleep");
}
