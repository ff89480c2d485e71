#include "launch/shared_report.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "support/catch.hpp"

using namespace col::launch;

TEST_CASE("shared report: what a child has published its parent reads whole, else nothing", "[launch]") {
  SharedReport report;
  JobResult result;
  result.exit_code = 77;
  CHECK_FALSE(report.read(result));
  CHECK(result.exit_code == 77);
  const pid_t child = ::fork();
  if (child == 0) {
    JobResult mine;
    mine.exit_code = 3;
    mine.signal = 15;
    mine.cause = EndCause::node_lost;
    mine.culprit = 9;
    mine.error = "why";
    report.publish(mine);
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  REQUIRE(report.read(result));
  CHECK(result.exit_code == 3);
  CHECK(result.signal == 15);
  CHECK(result.cause == EndCause::node_lost);
  CHECK(result.culprit == 9);
  CHECK(result.error == "why");
}

TEST_CASE("shared report: a long error is cut, not written beyond its place", "[launch]") {
  SharedReport report;
  JobResult result;
  result.error = std::string(100'000, 'x');
  report.publish(result);
  JobResult read;
  REQUIRE(report.read(read));
  CHECK(read.error.size() >= 512);
  CHECK(read.error == result.error.substr(0, read.error.size()));
}
