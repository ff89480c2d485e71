#include "launch/report.hpp"

#include <csignal>

#include "support/catch.hpp"

using namespace col::launch;

namespace {

constexpr int kExited7 = 7 << 8;

JobResult four_ranks() {
  JobResult result;
  result.ranks.resize(4);
  for (int rank = 0; rank < 4; ++rank) {
    result.ranks[static_cast<std::size_t>(rank)].pid = 100 + rank;
    result.ranks[static_cast<std::size_t>(rank)].exited = true;
  }
  return result;
}

}  // namespace

TEST_CASE("report: nothing to say about a job that is well", "[launch]") {
  CHECK(report_lines(four_ranks(), "colrun", std::nullopt).empty());
}

TEST_CASE("report: names the culprit, what it said, and who was ended", "[launch]") {
  JobResult result = four_ranks();
  result.culprit = 2;
  result.ranks[2].wait_status = kExited7;
  for (std::size_t rank : {0U, 1U, 3U}) result.ranks[rank].told_to_end = true;
  result.ranks[3].needed_kill = true;
  const auto lines = report_lines(result, "colrun", RankError{"mismatch", "counts differ"});
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].find("colrun: rank 2 (pid 102, host ") == 0);
  CHECK(lines[0].find(") exited with code 7 after 0.0 s") != std::string::npos);
  CHECK(lines[1] == "colrun: rank 2 said mismatch: counts differ");
  CHECK(lines[2] == "colrun: ended 3 other ranks (ranks 0-1, 3)");
  CHECK(lines[3] == "colrun: rank 3 did not end when told to and had to be killed");
}

TEST_CASE("report: only ranks that were signalled count as ended", "[launch]") {
  JobResult result = four_ranks();
  result.culprit = 0;
  result.ranks[0].wait_status = kExited7;
  result.ranks[3].wait_status = kExited7;
  SECTION("not those that ended in a way of their own") {
    CHECK(report_lines(result, "colrun", std::nullopt).size() == 1);
  }
  SECTION("nor those that failed because of the culprit") {
    result.ranks[1].collateral = result.ranks[2].collateral = true;
    const auto lines = report_lines(result, "colrun", std::nullopt);
    REQUIRE(lines.size() == 2);
    CHECK(lines[1] == "colrun: 2 other ranks failed because of it (ranks 1-2)");
  }
  SECTION("a rank is in one of the lists, all lists are in one line") {
    result.ranks[1].collateral = result.ranks[2].collateral = true;
    result.ranks[2].told_to_end = true;
    const auto lines = report_lines(result, "colrun", std::nullopt);
    REQUIRE(lines.size() == 2);
    CHECK(lines[1] == "colrun: 1 other rank failed because of it (rank 1); ended 1 other rank (rank 2)");
  }
}

TEST_CASE("report: a rank that left without a word is named when only its victims failed", "[launch]") {
  JobResult result = four_ranks();
  result.culprit = 0;
  result.ranks[0].wait_status = result.ranks[1].wait_status = 1 << 8;
  result.ranks[0].collateral = result.ranks[1].collateral = true;
  result.ranks[2].walked_out = true;
  result.ranks[3].told_to_end = result.ranks[3].needed_kill = true;
  const RankError lost{"peer_lost", "rank 2 has died"};
  auto lines = report_lines(result, "colrun", lost);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "colrun: rank 2 exited with code 0 without col::finalize() while others were waiting for it");
  CHECK(lines[1].find("colrun: rank 0 (pid 100, host ") == 0);
  CHECK(lines[2] == "colrun: 1 other rank failed likewise (rank 1); ended 1 other rank (rank 3)");
  CHECK(lines[3] == "colrun: rank 3 did not end when told to and had to be killed");

  result.ranks[0].collateral = false;  // it failed on its own
  lines = report_lines(result, "colrun", RankError{"mismatch", "counts differ"});
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].find("colrun: rank 0 ") == 0);
  CHECK(lines[1] == "colrun: rank 0 said mismatch: counts differ");
}

TEST_CASE("report: an interrupted job has ended ranks and no others", "[launch]") {
  JobResult result = four_ranks();
  result.signal = SIGINT;
  for (std::size_t rank : {0U, 1U}) result.ranks[rank].told_to_end = true;
  const auto lines = report_lines(result, "colrun", std::nullopt);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "colrun: interrupted by SIGINT");
  CHECK(lines[1] == "colrun: ended 2 ranks (ranks 0-1)");
}

TEST_CASE("report: ranks that were never started are told apart", "[launch]") {
  JobResult result = four_ranks();
  result.culprit = 0;
  result.ranks[0].wait_status = SIGSEGV;
  result.ranks[2] = result.ranks[3] = RankStatus{};
  const auto lines = report_lines(result, "colrun", std::nullopt);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("was killed by SIGSEGV") != std::string::npos);
  CHECK(lines[1] == "colrun: did not start ranks 2-3 any more");
}

TEST_CASE("report: rank lists are short", "[launch]") {
  CHECK(name_ranks({5}) == "rank 5");
  CHECK(name_ranks({0, 1, 2, 3}) == "ranks 0-3");
  CHECK(name_ranks({0, 2, 3, 9}) == "ranks 0, 2-3, 9");
}
