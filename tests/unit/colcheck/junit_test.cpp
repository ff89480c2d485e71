#include "colcheck/report/report.hpp"

#include <string>
#include <vector>

#include "markup.hpp"
#include "results.hpp"
#include "support/catch.hpp"

using namespace col::colcheck;

namespace {

Results mixed_run() {
  Results results = good_run();
  results.cases.push_back(failed("gloo", Primitive::scan, 2, "byte 3 is wrong", 7));
  results.cases.back().smallest_token = "exact,backend=gloo,np=2,coll=scan";
  results.cases.back().smallest_text = "byte 0";
  results.cases.push_back(skipped("shm", Primitive::scan, "needs 4 GiB", 8));
  results.cases.back().c.algorithm = "ring";
  CaseResult alone = passed("", Primitive::scan);
  alone.c.property = "zzz_plans";
  results.cases.push_back(alone);
  return results;
}

}  // namespace

TEST_CASE("junit: a suite per property, a test per call, and sums that are right", "[colcheck]") {
  const Element root = parse_xml(junit_report(mixed_run()));
  CHECK(root.name == "testsuites");
  CHECK(root.attributes.at("tests") == std::to_string(kAllGoodCases + 2));
  CHECK(root.attributes.at("failures") == "1");
  CHECK(root.attributes.at("errors") == "0");
  CHECK(root.attributes.at("skipped") == "1");
  CHECK(root.attributes.at("time") == "14.230");
  const auto suites = root.all("testsuite");
  REQUIRE(suites.size() == 2);
  CHECK(suites[0]->attributes.at("name") == "colcheck.exact");
  CHECK(suites[0]->attributes.at("timestamp") == "2025-03-04T05:06:07");
  CHECK(suites[0]->attributes.at("hostname") == "node1");
  CHECK(suites[1]->attributes.at("name") == "colcheck.zzz_plans");
  for (const Element* suite : suites) {
    CHECK(suite->attributes.at("tests") == std::to_string(suite->all("testcase").size()));
    CHECK(suite->attributes.at("failures") == std::to_string(suite->all("failure").size()));
    CHECK(suite->attributes.at("skipped") == std::to_string(suite->all("skipped").size()));
    CHECK(suite->attributes.at("errors") == "0");
  }
  CHECK(suites[0]->all("testcase").size() == kAllGoodCases + 1);
}

TEST_CASE("junit: the class of a test case says what its buffers were, and whether GPUs were stand-ins", "[colcheck]") {
  const std::string real = junit_report(gpu_run("NVIDIA H200")), fake = junit_report(gpu_run("fake GPU 0"));
  CHECK(occurrences(real, "classname=\"colcheck.exact.shm\"") == kPrimitiveCount);
  CHECK(occurrences(real, "classname=\"colcheck.exact.nccl-mixed\"") == 1);
  CHECK(occurrences(fake, "classname=\"colcheck.exact.nccl-mixed-fake\"") == 1);
  CHECK(occurrences(fake, "fake GPU 0") > 0);
}

TEST_CASE("junit: a test has a name without what was drawn, and its draws; a failure says all that is known",
          "[colcheck]") {
  const Element root = parse_xml(junit_report(mixed_run()));
  const auto cases = root.all("testcase");
  CHECK(cases[0]->attributes.at("classname") == "colcheck.exact.shm");
  CHECK(cases[0]->attributes.at("name") == "allreduce");
  const auto draws = cases[0]->all("property");
  REQUIRE(draws.size() == 1);
  CHECK(draws[0]->attributes.at("name") == "draw");
  CHECK(draws[0]->attributes.at("value") == "exact,backend=shm,np=3,coll=allreduce,seed=0x1");
  CHECK(cases.back()->attributes.at("classname") == "colcheck.zzz_plans");
  const auto failures = root.all("failure");
  REQUIRE(failures.size() == 1);
  CHECK(failures[0]->attributes.at("message") == "rank 2: byte 3 is wrong");
  CHECK(failures[0]->text ==
        "rank 2: byte 3 is wrong\nsmallest: exact,backend=gloo,np=2,coll=scan: byte 0\n"
        "run: colcheck --repro 'exact,backend=gloo,np=2,coll=scan'");
  const auto skips = root.all("skipped");
  REQUIRE(skips.size() == 1);
  CHECK(skips[0]->attributes.at("message") == "needs 4 GiB");
}

TEST_CASE("junit: cases of one call are one test; it fails with one of them, and lasts as long as all", "[colcheck]") {
  Results results = empty_run();
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    results.cases.push_back(passed("shm", Primitive::scan, seed));
    results.cases.back().c.algorithm = "ring";
    results.cases.back().seconds = 0.25;
  }
  results.cases.push_back(results.cases.back());
  results.cases.back().c.algorithm = "mst";
  Element root = parse_xml(junit_report(results));
  REQUIRE(root.all("testcase").size() == 2);
  CHECK(root.all("testcase")[0]->attributes.at("name") == "scan by ring");
  CHECK(root.all("testcase")[0]->attributes.at("time") == "1.000000");
  CHECK(root.all("testcase")[0]->all("property").size() == 4);
  results.cases[2].verdict = Finding::Verdict::fail;
  root = parse_xml(junit_report(results));
  CHECK(root.attributes.at("tests") == "2");
  CHECK(root.attributes.at("failures") == "1");
  results.cases[2].verdict = Finding::Verdict::skip;
  CHECK(parse_xml(junit_report(results)).attributes.at("skipped") == "0");
  // Another seed, other draws: the same names.
  for (CaseResult& result : results.cases) result.c.count = result.c.seed += 100;
  CHECK(parse_xml(junit_report(results)).all("testcase")[0]->attributes.at("name") == "scan by ring");
}

TEST_CASE("junit: a run that ended early is an error, whatever else passed", "[colcheck]") {
  Results results = good_run();
  results.ended_early = "rank 3 was killed by SIGKILL";
  const Element root = parse_xml(junit_report(results));
  CHECK(root.attributes.at("errors") == "1");
  CHECK(root.attributes.at("tests") == std::to_string(kAllGoodCases + 1));
  const auto errors = root.all("error");
  REQUIRE(errors.size() == 1);
  CHECK(errors[0]->attributes.at("message") == "rank 3 was killed by SIGKILL");
}

TEST_CASE("junit: well formed whatever the results hold", "[colcheck]") {
  Results results = mixed_run();
  results.command = results.host = results.ended_early = results.started = results.launcher = kNasty;
  results.unavailable[0] = {kNasty, kNasty};
  for (CaseResult& result : results.cases) {
    result.text = result.smallest_text = result.smallest_token = kNasty;
    result.c.algorithm = kNasty;
  }
  results.cases.back().c.property = kNasty;
  const Element root = parse_xml(junit_report(results));
  CHECK(root.all("testcase").size() == kAllGoodCases + 2);
  const std::string message = root.all("failure")[0]->attributes.at("message");
  CHECK(message.starts_with("rank 2: <b a=\"1\">&amp; ' ]]> \\x1b[31m \\x01 \\xff"));
  CHECK(message.ends_with("a b\\x00Z"));
}

TEST_CASE("junit: the reader that checks it refuses what is not well formed", "[colcheck]") {
  for (const char* bad :
       {"<a>", "<a></b>", "<a b=\"1\" b=\"2\"/>", "<a>&nbsp;</a>", "<a>&</a>", "<a b=\"<\"/>", "<a>\x01</a>",
        "<a>\xff</a>", "<a>\xef\xbf\xbf</a>", "<a/><b/>", "<a b=1/>", "<a>&#1;</a>", "<a b=\"1\"c=\"2\"/>"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_xml(bad), std::runtime_error);
  }
}
