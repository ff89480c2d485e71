#include "launch/report/report.hpp"

#include <csignal>

#include "common/text.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using col::RankActivity;
using State = RankActivity::State;

namespace {

constexpr int kExited7 = 7 << 8;

JobStory story_of(int ranks) {
  JobStory story;
  for (int rank = 0; rank < ranks; ++rank) {
    RankStory one;
    one.rank = one.local_rank = rank;
    one.host = "n7";
    one.status.pid = 100 + rank;
    one.status.exited = true;
    story.ranks.push_back(one);
  }
  return story;
}

RankStatus& status(JobStory& story, std::size_t rank) {
  return story.ranks[rank].status;
}

void end_by_launcher(JobStory& story, std::initializer_list<std::size_t> ranks) {
  for (const std::size_t rank : ranks) {
    status(story, rank).told_to_end = true;
    status(story, rank).wait_status = SIGTERM;
  }
}

RankActivity activity(State state, const std::string& op, std::uint64_t sequence,
                      const std::string& group = "default") {
  RankActivity last;
  last.state = state;
  last.op = op;
  last.sequence = sequence;
  last.group = group;
  last.fingerprint = sequence;
  return last;
}

using Lines = std::vector<std::string>;

Lines usage_lines(const JobStory& story) {
  return col::tools::lines_of(report_text(usage_part(story), {}, ""));
}

}  // namespace

TEST_CASE("report: nothing to say about a job that is well", "[launch]") {
  CHECK(report_lines(story_of(4)).empty());
}

TEST_CASE("report: names the culprit, what it said, and who was ended", "[launch]") {
  JobStory story = story_of(4);
  story.result.culprit = 2;
  story.result.cause = EndCause::rank_failed;
  status(story, 2).wait_status = kExited7;
  status(story, 2).seconds = 3.21;
  end_by_launcher(story, {0, 1, 3});
  status(story, 3).needed_kill = true;
  story.ranks[2].said = RankError{"mismatch", "counts differ"};
  CHECK(report_lines(story) == Lines{"colrun: rank 2 (pid 102, host n7) exited with code 7 after 3.2 s",
                                     "colrun: rank 2 said mismatch: counts differ",
                                     "colrun: ended 3 other ranks (ranks 0-1, 3)",
                                     "colrun: rank 3 did not end when told to and had to be killed"});
  story.ranks[2].said = RankError{"", "ValueError: torch has no code"};
  CHECK(report_lines(story)[1] == "colrun: rank 2 said ValueError: torch has no code");
  story.ranks[2].said = RankError{"timeout", ""};
  CHECK(report_lines(story)[1] == "colrun: rank 2 said timeout");
}

TEST_CASE("report: the rank that hung is to blame, not the one that gave up first", "[launch]") {
  JobStory story = story_of(4);
  story.result.culprit = 0;
  story.result.cause = EndCause::rank_failed;
  status(story, 0).wait_status = kExited7;
  end_by_launcher(story, {1, 2, 3});
  story.ranks[0].said = RankError{"timeout", "rank 1 did not enter it"};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    story.ranks[rank].last = activity(rank == 3 ? State::running : State::waiting, "allreduce", 7);
    story.ranks[rank].last->rank = static_cast<int>(rank);
    story.ranks[rank].last->held_up_by = rank == 3 ? -1 : static_cast<int>(rank) + 1;
  }
  SECTION("it is at the end of the chain") {
    REQUIRE(hung_rank(story) == &story.ranks[3]);
    CHECK(blamed_rank(story) == 3);
    CHECK(report_lines(story)[0] ==
          "colrun: rank 2 has waited in allreduce #7 of group 'default': rank 3 (pid 103) is in it, and in none of "
          "col's waits; rank 0 waits for rank 1 in allreduce #7 of group 'default'; rank 1 waits for rank 2 in "
          "allreduce #7 of group 'default'");
    CHECK(report_lines(story)[1] == "colrun: rank 0 (pid 100, host n7) exited with code 7 after 0.0 s");
  }
  SECTION("one that stands still in its wait is the end") {
    story.ranks[1].last->stopped = true;
    CHECK(blamed_rank(story) == 1);
  }
  SECTION("one that has not joined") {
    story.ranks[3].last.reset();
    CHECK(blamed_rank(story) == 3);
    CHECK(report_lines(story)[0].starts_with(
        "colrun: rank 2 has waited in allreduce #7 of group 'default': rank 3 (pid 103) has not joined the job"));
  }
  SECTION("without a timeout the first failure is") {
    story.ranks[0].said = RankError{"peer_lost", "rank 1 is gone"};
    CHECK(blamed_rank(story) == 0);
  }
  SECTION("a circle has no end") {
    story.ranks[3].last->state = State::waiting;
    story.ranks[3].last->held_up_by = 0;
    CHECK(blamed_rank(story) == 0);
  }
  SECTION("out of the job's time") {
    story.result = {};
    story.result.cause = EndCause::timed_out;
    CHECK(blamed_rank(story) == 3);
  }
}

TEST_CASE("report: a rank that the kernel killed for want of memory is told from one that somebody killed",
          "[launch]") {
  JobStory story = story_of(1);
  story.result.culprit = 0;
  status(story, 0).wait_status = SIGKILL;
  status(story, 0).seconds = 9;
  CHECK(report_lines(story) == Lines{"colrun: rank 0 (pid 100, host n7) was killed by SIGKILL after 9.0 s"});
  status(story, 0).out_of_memory = true;
  status(story, 0).peak_rss_bytes = 13'207'024'435;
  CHECK(report_lines(story) == Lines{"colrun: rank 0 (pid 100, host n7) was killed by SIGKILL: out of memory (peak RSS "
                                     "12.3 GiB) after 9.0 s"});
}

TEST_CASE("report: those that failed as well are told apart by why", "[launch]") {
  JobStory story = story_of(5);
  story.result.culprit = 0;
  status(story, 0).wait_status = kExited7;
  SECTION("on their own") {
    status(story, 1).wait_status = status(story, 3).wait_status = kExited7;
    status(story, 4).wait_status = SIGSEGV;
    const auto lines = report_lines(story);
    REQUIRE(lines.size() == 2);
    CHECK(lines[1] == "colrun: 3 other ranks failed, too (rank 4: SIGSEGV; ranks 1, 3: exit code 7)");
  }
  SECTION("because of the culprit") {
    status(story, 1).collateral = status(story, 2).collateral = true;
    status(story, 1).wait_status = status(story, 2).wait_status = kExited7;
    const auto lines = report_lines(story);
    REQUIRE(lines.size() == 2);
    CHECK(lines[1] == "colrun: 2 other ranks failed because of it (ranks 1-2)");
  }
  SECTION("a rank is in one of the lists, all lists are in one line") {
    status(story, 1).collateral = status(story, 2).collateral = true;
    status(story, 2).told_to_end = true;
    const auto lines = report_lines(story);
    REQUIRE(lines.size() == 2);
    CHECK(lines[1] == "colrun: 1 other rank failed because of it (rank 1); ended 1 other rank (rank 2)");
  }
}

TEST_CASE("report: a rank that left without a word is named when only its victims failed", "[launch]") {
  JobStory story = story_of(4);
  story.result.culprit = 0;
  status(story, 0).wait_status = status(story, 1).wait_status = 1 << 8;
  status(story, 0).collateral = status(story, 1).collateral = true;
  status(story, 2).walked_out = true;
  status(story, 3).told_to_end = status(story, 3).needed_kill = true;
  story.ranks[0].said = RankError{"peer_lost", "rank 2 has died"};
  auto lines = report_lines(story);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "colrun: rank 2 exited with code 0 without col::finalize() while others were waiting for it");
  CHECK(lines[1].find("colrun: rank 0 (pid 100, host ") == 0);
  CHECK(lines[2] == "colrun: 1 other rank failed likewise (rank 1); ended 1 other rank (rank 3)");
  CHECK(lines[3] == "colrun: rank 3 did not end when told to and had to be killed");

  status(story, 0).collateral = false;  // it failed on its own
  story.ranks[0].said = RankError{"mismatch", "counts differ"};
  lines = report_lines(story);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].find("colrun: rank 0 ") == 0);
  CHECK(lines[1] == "colrun: rank 0 said mismatch: counts differ");
}

TEST_CASE("report: an interrupted job has ended ranks and no others", "[launch]") {
  JobStory story = story_of(4);
  story.result.signal = SIGINT;
  story.result.cause = EndCause::interrupted;
  end_by_launcher(story, {0, 1});
  CHECK(report_lines(story) == Lines{"colrun: interrupted by SIGINT", "colrun: ended 2 ranks (ranks 0-1)"});
}

TEST_CASE("report: ranks that were never started are told apart", "[launch]") {
  JobStory story = story_of(4);
  story.result.culprit = 0;
  status(story, 0).wait_status = SIGSEGV;
  status(story, 2) = status(story, 3) = RankStatus{};
  const auto lines = report_lines(story);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("was killed by SIGSEGV") != std::string::npos);
  CHECK(lines[1] == "colrun: did not start ranks 2-3 any more");
}

TEST_CASE("report: ranks and processes that cannot be killed are said", "[launch]") {
  JobStory story = story_of(2);
  story.result.culprit = 0;
  status(story, 0).wait_status = kExited7;
  status(story, 1).exited = false;
  status(story, 1).told_to_end = status(story, 1).needed_kill = true;
  story.processes_left = 2;
  const auto lines = report_lines(story);
  REQUIRE(lines.size() == 4);
  CHECK(lines[2] ==
        "colrun: rank 1 survived SIGKILL: stuck in the kernel; look at the file systems and devices of this host");
  CHECK(lines[3] == "colrun: 2 processes of the job are left and could not be killed");
}

TEST_CASE("report: the culprit's last lines are repeated, made harmless", "[launch]") {
  JobStory story = story_of(2);
  story.result.culprit = 1;
  status(story, 1).wait_status = kExited7;
  story.ranks[0].last_stderr = {"not mine"};
  auto& words = story.ranks[1].last_stderr;
  SECTION("bytes that are no text, colours, progress bars, empty lines") {
    words = {"\x1b[31mred\x1b[0m \x07 \xff", " 10%\r 20%\r", "", "a\tb", "\x1b[", "\xc3\xa9"};
    CHECK(report_lines(story, {.text = {.utf8 = true}}) ==
          Lines{"colrun: rank 1 (pid 101, host n7) exited with code 7 after 0.0 s",
                "colrun: its last lines on stderr:", "colrun:   red \\x07 \\xff", "colrun:    20%",
                "colrun:", "colrun:   a\tb", "colrun:", "colrun:   \xc3\xa9"});
    CHECK(report_lines(story).back() == "colrun:   \\xc3\\xa9");
  }
  SECTION("the exception of a Python program is the cause") {
    words = {"Traceback (most recent call last):",
             "  File \"old.py\", line 1, in <module>",
             "    open('x')",
             "OSError: no file",
             "",
             "During handling of the above exception, another exception occurred:",
             "",
             "Traceback (most recent call last):",
             "  File \"new.py\", line 7, in <module>",
             "    f()",
             "    ^^^",
             "  File \"new.py\", line 2, in f",
             "    raise ValueError(a)",
             "ValueError: two \x1b[31mlines",
             "of it",
             "last words of a thread"};
    CHECK(report_lines(story)[0] ==
          "colrun: rank 1 (pid 101, host n7) exited with code 7 after 0.0 s: ValueError: two lines");
    words.resize(13);
    CHECK(report_lines(story)[0] == "colrun: rank 1 (pid 101, host n7) exited with code 7 after 0.0 s");
  }
  SECTION("no more than the last of them") {
    for (int line = 0; line < 30; ++line) words.push_back("line " + std::to_string(line));
    const auto lines = report_lines(story);
    REQUIRE(lines.size() == 2 + kStderrLines);
    CHECK(lines[2] == "colrun:   line 10");
    CHECK(lines.back() == "colrun:   line 29");
  }
}

TEST_CASE("report: a job that lasted too long says what its ranks were doing", "[launch]") {
  JobStory story = story_of(4);
  story.result.cause = EndCause::timed_out;
  story.result.exit_code = 124;
  end_by_launcher(story, {0, 1, 2, 3});
  for (const std::size_t rank : {0U, 2U, 3U}) story.ranks[rank].last = activity(State::waiting, "allreduce", 417);
  story.ranks[1].last = activity(State::joined, "barrier", 12);
  CHECK(report_lines(story, {.limit = std::chrono::seconds(90)}) ==
        Lines{"colrun: the job did not end within 90.0 s (--timeout)",
              "colrun: ranks 0, 2-3 have waited in allreduce #417 of group 'default': rank 1 (pid 101) has not called "
              "it: it is in its own code (last: barrier #12; 405 calls behind)",
              "colrun: ended 4 ranks (ranks 0-3)"});
  CHECK(report_lines(story)[0] == "colrun: the job did not end within its time limit (--timeout)");
}

TEST_CASE("report: ranks that do not end after the others are named", "[launch]") {
  JobStory story = story_of(3);
  story.result.cause = EndCause::exit_timed_out;
  end_by_launcher(story, {1});
  status(story, 2).exited = false;
  status(story, 2).needed_kill = status(story, 2).told_to_end = true;
  const auto lines = report_lines(story, {.limit = std::chrono::seconds(2)});
  REQUIRE(!lines.empty());
  CHECK(lines[0] == "colrun: ranks 1-2 did not end within 2.0 s after another rank had ended well (--exit-timeout)");
}

TEST_CASE("report: with several nodes the hosts of ranks are named", "[launch]") {
  JobStory story = story_of(6);
  story.nodes = 2;
  for (const std::size_t rank : {3U, 4U, 5U}) {
    story.ranks[rank].host = "n8";
    story.ranks[rank].node_rank = 1;
  }
  SECTION("a rank failed") {
    story.result.culprit = 4;
    status(story, 4).wait_status = kExited7;
    end_by_launcher(story, {0, 1, 2, 3, 5});
    const auto lines = report_lines(story);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] == "colrun: rank 4 (pid 104, host n8) exited with code 7 after 0.0 s");
    CHECK(lines[1] == "colrun: ended 5 other ranks (ranks 0-2 on n7, ranks 3, 5 on n8)");
  }
  SECTION("a node was lost: result.error says which, and is not the report's") {
    story.result.cause = EndCause::node_lost;
    story.ranks.resize(3);  // nobody knows what became of the others
    end_by_launcher(story, {0, 1, 2});
    CHECK(report_lines(story) == Lines{"colrun: ended 3 ranks (ranks 0-2 on n7)"});
  }
}

TEST_CASE("report: stacks that are the same but for addresses are shown once", "[launch]") {
  JobStory story = story_of(3);
  story.result.culprit = 1;
  status(story, 1).wait_status = kExited7;
  const auto stack = [](const std::string& address, const std::string& thread, const std::string& frame) {
    return Stack{"gdb", {"Thread 1 (Thread " + address + " (LWP " + thread + ") \"x\"):", "#0  " + frame + " ()"}};
  };
  story.ranks[0].stack = stack("0x7f01", "17", "poll");
  story.ranks[2].stack = stack("0xff02", "4711", "poll");
  auto lines = report_lines(story);
  REQUIRE(lines.size() == 4);
  CHECK(lines[1] == "colrun: stack of ranks 0, 2 (gdb):");
  CHECK(lines[2] == "colrun:   Thread 1 (Thread 0x7f01 (LWP 17) \"x\"):");
  CHECK(lines[3] == "colrun:   #0  poll ()");
  CHECK(report_lines(story, {.columns = 20})[2] == "colrun:   Thread ...");

  story.ranks[2].stack = stack("0xff02", "4711", "read");
  lines = report_lines(story);
  REQUIRE(lines.size() == 7);
  CHECK(lines[4] == "colrun: stack of rank 2 (gdb):");
}

TEST_CASE("report: with colours the first words stand out", "[launch]") {
  JobStory story = story_of(1);
  story.result.culprit = 0;
  status(story, 0).wait_status = kExited7;
  const auto lines = report_lines(story, {.text = {.colour = true}});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == "colrun: \x1b[31mrank 0 (pid 100, host n7) exited with code 7 after 0.0 s\x1b[0m");
}

TEST_CASE("report: who waits for whom", "[launch]") {
  JobStory story = story_of(5);
  const auto set = [&](std::size_t rank, const RankActivity& last) { story.ranks[rank].last = last; };
  SECTION("nobody is in a call: only a job that lasted too long is worth a word") {
    for (std::size_t rank = 0; rank < 4; ++rank) set(rank, activity(State::joined, "barrier", 3));
    CHECK(describe_calls(story).empty());
    story.result.cause = EndCause::timed_out;
    end_by_launcher(story, {0, 1, 2, 3, 4});
    CHECK(describe_calls(story) == Lines{"ranks 0-3 are in no call (last: barrier #3 of group 'default'); rank 4 does "
                                         "not use col, or not yet"});
  }
  SECTION("nobody uses col") {
    story.result.cause = EndCause::timed_out;
    CHECK(describe_calls(story).empty());
  }
  SECTION("a rank within the call that does not wait, and the culprit, that died in it") {
    for (std::size_t rank = 0; rank < 3; ++rank) set(rank, activity(State::waiting, "allreduce", 7));
    set(3, activity(State::running, "allreduce", 7));
    set(4, activity(State::waiting, "allreduce", 7));
    story.result.culprit = 4;
    end_by_launcher(story, {0, 1, 2, 3});
    CHECK(describe_calls(story) == Lines{"ranks 0-2 wait in allreduce #7 of group 'default'; rank 3 is in it and not "
                                         "waiting; rank 4 "
                                         "was in it when it ended"});
  }
  SECTION("the culprit had not come to it") {
    for (std::size_t rank = 0; rank < 4; ++rank) set(rank, activity(State::waiting, "allreduce", 7));
    set(4, activity(State::joined, "init_group", 0));
    story.result.culprit = 4;
    end_by_launcher(story, {0, 1, 2, 3});
    CHECK(describe_calls(story) ==
          Lines{"ranks 0-3 wait in allreduce #7 of group 'default'; rank 4 had not called it (last: nothing yet)"});
  }
  SECTION("a rank of which it is not known how it has called differs from none") {
    for (std::size_t rank = 0; rank < 5; ++rank) set(rank, activity(State::running, "allreduce", 7));
    story.ranks[0].last->fingerprint = 0;
    const Lines all = {"ranks 0-4 are in allreduce #7 of group 'default'"};
    end_by_launcher(story, {0, 1, 2, 3, 4});
    CHECK(describe_calls(story) == all);
    story.ranks[3].last->fingerprint = 99;
    CHECK(describe_calls(story) == Lines{all.front() + "; they differ in what they called, here or before"});
  }
  SECTION("calls of one number are side by side, and those that differ before are told") {
    end_by_launcher(story, {0, 1, 2, 3, 4});
    set(0, activity(State::waiting, "allreduce", 10));
    set(1, activity(State::waiting, "broadcast", 9));
    set(2, activity(State::waiting, "allreduce", 9));
    set(3, activity(State::waiting, "allreduce", 10));
    set(4, activity(State::joined, "barrier", 8));
    story.ranks[3].last->fingerprint = 99;
    CHECK(
        describe_calls(story) ==
        Lines{"rank 2 waits in allreduce #9 of group 'default'; rank 4 has not called it (last: barrier #8)",
              "rank 1 waits in broadcast #9 of group 'default'",
              "ranks 0, 3 wait in allreduce #10 of group 'default'; they differ in what they called, here or before"});
  }
  SECTION("messages name their peer, and ranks elsewhere are not blamed") {
    end_by_launcher(story, {0, 1, 2, 3, 4});
    set(0, activity(State::waiting, "recv", 5, "pair"));
    story.ranks[0].last->peer = 1;
    set(1, activity(State::joined, "barrier", 2, "other"));
    set(2, activity(State::finished, "barrier", 2));
    set(3, activity(State::joined, "", 0));
    set(4, activity(State::running, "send", 5, "pair"));
    CHECK(describe_calls(story) ==
          Lines{"rank 0 waits in recv for rank 1 of group 'pair'", "rank 4 is in send of group 'pair'",
                "rank 1 is in no call (last: barrier #2 of group 'other'); rank 2 has left by col::finalize(); rank 3 "
                "is in no call (last: nothing yet)"});
  }
}

TEST_CASE("report: a thousand ranks that all do something else fit in few lines", "[launch][rest]") {
  JobStory story = story_of(1000);
  story.result.cause = EndCause::timed_out;
  for (std::size_t rank = 0; rank < 1000; ++rank)
    story.ranks[rank].last = activity(rank % 2 == 0 ? State::waiting : State::joined, "allreduce", rank + 1);
  const auto lines = report_lines(story);
  CHECK(lines.size() < 20);
  std::size_t bytes = 0;
  for (const std::string& line : lines) bytes += line.size();
  CHECK(bytes < 4000);
}

TEST_CASE("report: times and memory of each rank of a small job", "[launch]") {
  JobStory story = story_of(3);
  story.seconds = 3.5;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    RankStatus& one = status(story, rank);
    one.started = 0.001 * static_cast<double>(rank + 1);
    one.seconds = 3 - static_cast<double>(rank);
    one.cpu_seconds = 0.25;
    one.peak_rss_bytes = (rank + 1) << 20;
  }
  CHECK(usage_lines(story) ==
        Lines{"3 ranks in 3.5 s: started within 2.0 ms (first rank 0, last rank 2); ended within 2.00 s (first "
              "rank 2, last rank 0)",
              "rank  started  ended   CPU time  peak RSS", "-----------------------------------------",
              "0     1.0 ms   3.00 s  250.0 ms  1.0 MiB", "1     2.0 ms   2.00 s  250.0 ms  2.0 MiB",
              "2     3.0 ms   1.00 s  250.0 ms  3.0 MiB"});
  story.nodes = 2;
  CHECK(usage_lines(story)[1] == "rank  host  started  ended   CPU time  peak RSS");
  story.nodes = 1;
  story.ranks[0].cpus = {0, 1};
  story.ranks[1].cpus = {5};
  CHECK(usage_lines(story)[1] == "rank  CPUs       started  ended   CPU time  peak RSS");
  CHECK(usage_lines(story)[3] == "0     0-1        1.0 ms   3.00 s  250.0 ms  1.0 MiB");
  CHECK(usage_lines(story)[5] == "2     not bound  3.0 ms   1.00 s  250.0 ms  3.0 MiB");
  CHECK(usage_lines(story).size() == 6);
  status(story, 0).pid = 0;
  status(story, 1).exited = false;
  CHECK(usage_lines(story).size() == 4);
  CHECK(usage_lines(JobStory()).empty());
}

TEST_CASE("report: why ranks are not bound is said once for all of them", "[launch]") {
  JobStory story = story_of(3);
  for (RankStory& rank : story.ranks) rank.why_not = "there are 3 ranks on 2 CPUs";
  CHECK(usage_lines(story).back() == "ranks 0-2 are not bound to CPUs: there are 3 ranks on 2 CPUs");
  CHECK(usage_lines(story).size() == 7);
  story.nodes = 2;
  for (std::size_t rank = 0; rank < 3; ++rank) story.ranks[rank].host = rank < 2 ? "ada" : "bob";
  story.ranks[2].why_not = "a single rank may use all of them";
  const Lines lines = usage_lines(story);
  REQUIRE(lines.size() == 8);
  CHECK(lines[6] == "ranks 0-1 on ada are not bound to CPUs: there are 3 ranks on 2 CPUs");
  CHECK(lines[7] == "rank 2 on bob is not bound to CPUs: a single rank may use all of them");
}

TEST_CASE("report: medians and extremes of a big job", "[launch]") {
  JobStory story = story_of(kMaxTableRanks + 1);
  for (std::size_t rank = 0; rank < story.ranks.size(); ++rank) {
    status(story, rank).seconds = static_cast<double>((rank + 5) % 17 + 1);
    status(story, rank).peak_rss_bytes = 1024;
  }
  const auto lines = usage_lines(story);
  REQUIRE(lines.size() == 6);
  CHECK(lines[1] == "        started           ended              CPU time          peak RSS");
  CHECK(lines[3] == "least   0.0 ms (rank 0)   1.00 s (rank 12)   0.0 ms (rank 0)   1 KiB (rank 0)");
  CHECK(lines[4] == "median  0.0 ms            9.00 s             0.0 ms            1 KiB");
  CHECK(lines[5] == "most    0.0 ms (rank 16)  17.00 s (rank 11)  0.0 ms (rank 16)  1 KiB (rank 16)");
}
