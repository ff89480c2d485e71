#include "colcheck/report/report.hpp"

#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include "results.hpp"
#include "support/catch.hpp"

using namespace col::colcheck;
using Json = nlohmann::json;

TEST_CASE("json: facts, sums, matrix, properties and cases", "[colcheck]") {
  Results results = good_run();
  results.seed = 0xffffffffffffffffULL;
  results.cases.push_back(failed("gloo", Primitive::scan, 2, "byte 3 is wrong", 7));
  results.cases.back().smallest_token = "exact,backend=gloo,np=2,coll=scan";
  results.cases.back().smallest_text = "byte 0";
  results.cases.push_back(skipped("shm", Primitive::scan, "needs 4 GiB", 8));
  const Json json = Json::parse(json_report(results));
  CHECK(json.at("schema") == "colcheck");
  CHECK(json.at("schema_version") == kJsonVersion);
  const Json& run = json.at("run");
  CHECK(run.at("version") == "0.1.0");
  CHECK(run.at("command") == "colcheck --quick");
  CHECK(run.at("seed") == "0xffffffffffffffff");
  CHECK(run.at("seconds") == 14.23);
  CHECK(run.at("ranks") == Json({1, 2, 3, 4, 5, 6, 7, 8, 9, 16}));
  CHECK(run.at("unavailable") == Json::array({{{"name", "nccl"}, {"why", "there is no libnccl.so.2"}}}));
  CHECK(run.at("ended_early").is_null());
  CHECK(json.at("totals") ==
        Json{{"passed", kAllGoodCases}, {"failed", 1}, {"skipped", 1}, {"passed_while_soaking", 0}, {"holes", 0}});
  const Json& columns = json.at("matrix").at("columns");
  REQUIRE(columns.size() == 3);
  CHECK(columns[2].at("device") == "cuda");
  CHECK(columns[2].at("why_not") == "nccl: there is no libnccl.so.2");
  const Json& rows = json.at("matrix").at("rows");
  REQUIRE(rows.size() == kPrimitiveCount);
  CHECK(rows[2].at("primitive") == "scan");
  CHECK(rows[2].at("cells")[0] == Json{{"state", "passed"}, {"passed", 1}, {"failed", 0}, {"skipped", 1}});
  CHECK(rows[2].at("cells")[1].at("state") == "failed");
  CHECK(rows[2].at("cells")[2].at("state") == "unavailable");
  const Json& properties = json.at("properties");
  REQUIRE(properties.size() == 1);
  CHECK(properties[0].at("failed") == 1);
  CHECK(properties[0].at("backends").at("shm") == Json{{"passed", kGoodCases}, {"failed", 0}, {"skipped", 1}});
  CHECK_FALSE(properties[0].at("summary").get<std::string>().empty());
}

TEST_CASE("json: what was checked on which GPU, and whether that was a stand-in", "[colcheck]") {
  for (const bool fake : {false, true}) {
    const Json json = Json::parse(json_report(gpu_run(fake ? "fake GPU 0" : "NVIDIA H200")));
    const Json& run = json.at("run");
    CHECK(run.at("backends") == Json{"shm", "gloo", "nccl"});
    REQUIRE(run.at("gpus").size() == 3);
    CHECK(run.at("gpus")[1] ==
          Json{{"rank", 1}, {"name", fake ? "fake GPU 0" : "NVIDIA H200"}, {"bus", "0000:02:00.0"}, {"fake", fake}});
    CHECK(run.at("nccl") == "NCCL 2.28.9");
    CHECK(run.at("limits") == Json{"nccl: groups of 2 ranks at most here"});
    const Json& columns = json.at("matrix").at("columns");
    REQUIRE(columns.size() == 4);
    CHECK((columns[0].at("device") == "cpu" && columns[0].at("fake") == false));
    CHECK((columns[3].at("device") == "mixed" && columns[3].at("fake") == fake));
    CHECK(json.at("properties")[0].at("backends").contains(fake ? "nccl (mixed, fake)" : "nccl (mixed)"));
    CHECK(json.at("cases").back().at("device") == "mixed");
  }
}

TEST_CASE("json: a case has its token and its circumstances, and null for what does not apply", "[colcheck]") {
  Results results = empty_run();
  results.cases = {failed("gloo", Primitive::scan, 2, "wrong", 7), passed("", Primitive::barrier)};
  results.cases[0].smallest_token = "t";
  const Json cases = Json::parse(json_report(results)).at("cases");
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].at("token") == "exact,backend=gloo,np=3,coll=scan,seed=0x7");
  CHECK(cases[0].at("verdict") == "failed");
  CHECK(cases[0].at("dtype") == "uint8");
  CHECK(cases[0].at("op") == "sum");
  CHECK(cases[0].at("root").is_null());
  CHECK(cases[0].at("rank") == 2);
  CHECK(cases[0].at("smallest") == Json{{"token", "t"}, {"text", ""}});
  for (const char* name : {"backend", "algorithm", "dtype", "op", "count", "root", "rank", "text", "smallest"}) {
    CHECK(cases[1].at(name).is_null());
  }
}

TEST_CASE("json: valid whatever the results hold, and without the environment", "[colcheck]") {
  ::setenv("COLCHECK_TEST_SECRET", "hunter2hunter2", 1);
  Results results = empty_run();
  results.command = results.host = results.ended_early = kNasty;
  results.cases = {failed("gloo", Primitive::scan, 2, kNasty, 7)};
  const std::string text = json_report(results);
  ::unsetenv("COLCHECK_TEST_SECRET");
  CHECK(text.find("hunter2") == std::string::npos);
  CHECK(text.find("SECRET") == std::string::npos);
  const Json json = Json::parse(text);
  CHECK(json.at("cases")[0].at("text").get<std::string>().starts_with("<b a=\"1\">&amp; ' ]]> \x1b[31m \x01 "));
  CHECK(json.at("run").at("ended_early").is_string());
}

TEST_CASE("json: a run without cases has holes, not passes", "[colcheck]") {
  const Json json = Json::parse(json_report(empty_run()));
  CHECK(json.at("totals").at("holes") == 2 * kPrimitiveCount);
  CHECK(json.at("matrix").at("rows")[0].at("cells")[0].at("state") == "none");
  CHECK(json.at("cases") == Json::array());
}
