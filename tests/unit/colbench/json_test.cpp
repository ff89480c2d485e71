#include "colbench/report/json.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "colbench/report/spec_fields.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col::colbench;
using Json = nlohmann::json;

namespace {

// What the reader says of `text`; anything but a UsageError goes through.
std::string complaint(const std::string& text) {
  return complaint_of([&] { parse_json_results(text, "r.json"); });
}

Results small() {
  Results results = sample_run();
  results.cells = {sample_cell(Operation::allreduce, "ring", 1024, 5.31e-6, 7)};
  return results;
}

// small() as JSON, with a change.
std::string changed(const std::function<void(Json&)>& change) {
  Json json = Json::parse(json_results(small()));
  change(json);
  return json.dump();
}

}  // namespace

TEST_CASE("json: what is written is read back without loss", "[colbench]") {
  Results results = sample_results();
  results.cells[0].spec.root = kRotatingRoot;
  results.cells[0].spec.op = col::ReduceOp::bxor;
  results.cells[0].spec.dtype = col::DType::uint64;
  results.cells[0].spec.bytes = std::size_t{1} << 62;
  results.cells[0].spec.cadence = Cadence::stream;
  results.cells[0].spec.cache = CacheState::rotate;
  results.cells[0].spec.device = Devices::cpu_cuda;
  results.cells[0].fake = true;
  results.run.gpus = "rank 0: fake GPU 0 0000:01:00.0";
  results.run.nccl = "NCCL 2.28.9";
  results.run.other_work = 0.125;
  results.cells[0].spec.in_place = true;
  results.cells[0].spec.order = col::Order::tree;
  results.cells[0].launches[0].late = 3;
  results.cells[0].launches[0].device_seconds = results.cells[0].launches[0].start_skew;
  results.cells[0].launches[1].seconds[0] = 12345678901.5e-9;
  results.ended_early = "rank 1 died";
  results.exit_code = 5;
  const std::string text = json_results(results);
  const Results read = parse_json_results(text, "r.json");
  CHECK(read.run.seed == 0xffffffffffffffffULL);
  CHECK(read.run.environment == results.run.environment);
  CHECK((read.cells[0].fake && !read.cells[1].fake));
  REQUIRE(read.cells.size() == results.cells.size());
  for (std::size_t i = 0; i < read.cells.size(); ++i) {
    CHECK(read.cells[i].spec == results.cells[i].spec);
    CHECK(all_seconds(read.cells[i]) == all_seconds(results.cells[i]));
    CHECK(read.cells[i].invalid == results.cells[i].invalid);
    CHECK(read.cells[i].model_seconds == results.cells[i].model_seconds);
  }
  CHECK(read.exit_code == 5);
  // All other members: one list of them serves for writing and for reading.
  CHECK(json_results(read) == text);
}

TEST_CASE("json: samples are nanoseconds, to a tenth of one, each launch on a line", "[colbench]") {
  Results results = small();
  results.cells[0].launches = {{.launch = 2, .seconds = {5.0e-7, 1.2345e-8, 0.1 + 0.2}, .start_skew = {0, 0, 0}}};
  const std::string text = json_results(results);
  CHECK(text.find("\"ns\": [500,12.3,300000000],") != std::string::npos);
  const Json cell = Json::parse(text).at("cells")[0];
  CHECK(cell.at("stats").at("n") == 3);
  CHECK(cell.at("stats").at("p50") == 500);
  CHECK(cell.at("stats").at("ci_lo").is_null());
  CHECK(cell.at("stats").at("ci_hi").is_null());  // of one launch there is no interval
  CHECK(cell.at("launches")[0].at("p50") == 500);
  CHECK(cell.at("stats").at("p99").is_null());
  CHECK(cell.at("valid") == true);
  const Json again = Json::parse(json_results(parse_json_results(text, "r.json")));
  CHECK(again.at("cells")[0].at("launches") == cell.at("launches"));
}

TEST_CASE("json: says what is invalid and what was not measured", "[colbench]") {
  const Json json = Json::parse(json_results(sample_results()));
  CHECK(json.at("schema") == "colbench");
  CHECK(json.at("schema_version") == kJsonVersion);
  CHECK(json.at("run").at("seed") == "0xffffffffffffffff");
  const Json& cells = json.at("cells");
  CHECK(cells[8].at("valid") == "1.00 us is below the bound of 2.60 ms");
  CHECK(cells[8].at("stats").at("busbw").is_null());
  CHECK(cells[8].at("below_bound") == true);
  CHECK(cells[10].at("note") == "rank 1 died");
  CHECK(cells[10].at("valid").is_null());
  CHECK(cells[10].at("stats").is_null());
  CHECK(cells[10].at("launches") == Json::array());
}

TEST_CASE("json: valid whatever the results hold, and without the environment", "[colbench]") {
  ::setenv("COLBENCH_TEST_SECRET", "hunter2hunter2", 1);
  Results results = small();
  results.run.host = results.ended_early = results.cells[0].invalid = kNasty;
  results.run.environment = {{kNasty, kNasty}};
  const std::string text = json_results(results);
  ::unsetenv("COLBENCH_TEST_SECRET");
  CHECK(text.find("hunter2") == std::string::npos);
  CHECK(parse_json_results(text, "r.json").run.host.starts_with("<b a=\"1\">&amp;"));
}

TEST_CASE("json: a text that is cut anywhere is refused in one line", "[colbench]") {
  std::string text = json_results(small());
  while (text.back() != '}') text.pop_back();
  REQUIRE(complaint(text) == "nothing");
  for (std::size_t length = 0; length < text.size(); ++length) {
    const std::string said = complaint(text.substr(0, length));
    if (said.starts_with("r.json: not valid JSON at line ") && said.find('\n') == std::string::npos) continue;
    CAPTURE(length);
    CHECK(said == "a refusal");
  }
  const std::string end = "; give a file that colbench --json has written";
  CHECK(complaint("").starts_with("r.json: not valid JSON at line 1, column 1: unexpected end of input"));
  CHECK(complaint("").ends_with(end));
  CHECK(complaint(std::string(1'000'000, '[')).starts_with("r.json: not valid JSON at line 1, column 1000001: "));
  CHECK(complaint(kNasty).starts_with("r.json: not valid JSON at line 1, column 1: "));
}

TEST_CASE("json: every member that is missing, or of another type, is named", "[colbench]") {
  const Json original = Json::parse(json_results(small())).flatten();
  const std::vector<Json> others = {nullptr, true, -1, 0.5, 1e300, "?", Json::array({Json::object()}), Json::object()};
  std::size_t refused = 0;
  for (const auto& [path, value] : original.items()) {
    if (path.find("/stats/") != std::string::npos || path.find("/environment/") != std::string::npos) continue;
    const Json::json_pointer place(path);
    const bool in_list = path.find_last_not_of("0123456789") != path.size() - 1;
    for (std::size_t i = 0; i <= others.size(); ++i) {
      const std::string text = changed([&](Json& json) {
        if (i < others.size()) {
          json[place] = others[i];
        } else if (!in_list) {
          json[place.parent_pointer()].erase(place.back());
        }
      });
      const std::string said = complaint(text);
      if (said == "nothing") continue;
      CAPTURE(path, i, said);
      CHECK(said.starts_with("r.json: "));
      CHECK(said.find('\n') == std::string::npos);
      if (path.find("/schema") != 0 && !in_list) CHECK(said.find(place.back()) != std::string::npos);
      ++refused;
    }
  }
  CHECK(refused > 300);
}

TEST_CASE("json: a refusal says where and what", "[colbench]") {
  const auto without = [](const char* pointer) {
    return changed([&](Json& json) {
      const Json::json_pointer place(pointer);
      json[place.parent_pointer()].erase(place.back());
    });
  };
  const auto with = [](const char* pointer, const Json& value) {
    return changed([&](Json& json) { json[Json::json_pointer(pointer)] = value; });
  };
  CHECK(complaint(without("/cells/0/spec/dtype")) == "r.json: at /cells/0/spec: lacks the member 'dtype'");
  CHECK(complaint(without("/machine")) == "r.json: lacks the member 'machine'");
  CHECK(complaint(with("/cells/0/spec/dtype", "float31"))
            .starts_with("r.json: at /cells/0/spec/dtype: should be one of int8, uint8, "));
  CHECK(complaint(with("/cells/0/spec/dtype", "float31")).ends_with(", and is 'float31'"));
  CHECK(complaint(with("/cells/0/launches/1/ns/0", "x")) ==
        "r.json: at /cells/0/launches/1/ns/0: should be a number from 0 to 1e+18, and is a text");
  CHECK(complaint(with("/cells/0/launches/1/ns", {1, 2, 3})) ==
        "r.json: at /cells/0/launches/1/start_skew_ns: should have as many values as 'ns': 3");
  CHECK(complaint(with("/cells/0/launches/1/device_ns", {1, 2, 3, 4})) ==
        "r.json: at /cells/0/launches/1/device_ns: should have as many values as 'ns': 1");
  CHECK(complaint(without("/cells/0/launches/1/device_ns")) == "nothing");
  CHECK(complaint(without("/cells/0/launches/1/p50")) == "nothing");
  CHECK(complaint(without("/probes")) == "nothing");
  CHECK(complaint(with("/probes/1/spin_ns", "x")) ==
        "r.json: at /probes/1/spin_ns: should be a number from 0 to 1e+18, and is a text");
  CHECK(complaint(with("/cells/0/spec/ranks", 0)) ==
        "r.json: at /cells/0/spec/ranks: should be a whole number from 1 to 1000000, and is 0");
  CHECK(complaint(with("/cells/0/valid", false)) == "r.json: at /cells/0/valid: should be true or the reason why not");
  CHECK(complaint(with("/cells", 3)) == "r.json: at /cells: should be a list of values, and is a number");
  CHECK(complaint(with("/run/seed", "0x1g")) ==
        "r.json: at /run/seed: should be a hexadecimal number as text, \"0x2a\", and is '0x1g'");
  CHECK(complaint(with("/cells/0/spec/bytes", 18446744073709551615ULL)) ==
        "r.json: at /cells/0/spec/bytes: should be a whole number from 0 to 9223372036854775807, and is "
        "18446744073709551615");
  CHECK(complaint(with("/schema_version", 2)) ==
        "r.json: this is version 2 of the format, and this colbench reads version 1; measure anew");
  for (const std::string text : {"{}", "[]", "7", "null", R"({"schema": "colcheck"})"}) {
    CHECK(complaint(text) == "r.json: these are no results of colbench; give a file that colbench --json has written");
  }
  CHECK(complaint(with("/cells/0/new_member", 1)) == "nothing");
}

TEST_CASE("json: a file that cannot be read is said with the reason, and no FIFO is waited for", "[colbench]") {
  const col::test::TempDir directory;
  const auto said = [](const std::string& path) { return complaint_of([&] { read_json_results(path); }); };
  const std::string end = "; give a file that colbench --json has written";
  const std::string none = directory / "none.json", fifo = directory / "fifo";
  CHECK(said(none) == "cannot read " + none + ": No such file or directory" + end);
  CHECK(said(directory.path()) == "cannot read " + directory.path() + ": Is a directory" + end);
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(said(fifo) == "cannot read " + fifo + ": it is no regular file" + end);
  std::ofstream(directory / "good.json") << json_results(small());
  CHECK(said(directory / "good.json") == "nothing");
}

TEST_CASE("json: a row of opaque elements comes back with their size", "[colbench]") {
  CellSpec spec{.backend = "shm", .dtype = col::opaque(12), .bytes = 24, .ranks = 2};
  const std::string text = col::core::json_line(spec);
  CHECK(text.find("\"bytes[12]\"") != std::string::npos);
  CHECK(col::core::parsed_json<CellSpec>(text, "spec").dtype == col::opaque(12));
  std::string wrong = text;
  wrong.replace(wrong.find("bytes[12]"), 9, "bytes[ab]");
  CHECK_THROWS_AS(col::core::parsed_json<CellSpec>(wrong, "spec"), col::Error);
}
