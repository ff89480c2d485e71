// The rows of a run on the terminal and as CSV.
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "colbench/report/report.hpp"
#include "colbench/report/values.hpp"
#include "common/text.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
using col::tools::Style;

namespace {

constexpr Style kWide{.columns = kTableColumns};

// Without the lines that begin with '#' and the rule.
std::vector<std::string> rows_of(const std::string& text) {
  std::vector<std::string> rows = lines_of(text);
  std::erase_if(rows, [](const std::string& line) { return line.starts_with("#") || line.starts_with("--"); });
  return rows;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Results one_row() {
  Results results = sample_run();
  results.warnings.clear();
  results.cells = {sample_cell(Operation::allreduce, "ring", 32 << 20, 7.7e-3)};
  results.cells[0].spec.ranks = 4;
  return results;
}

bool has_line(const std::string& text, const std::string& line) {
  const auto lines = lines_of(text);
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

}  // namespace

TEST_CASE("values: times have three digits in a unit that suits them", "[colbench]") {
  CHECK(time_text(0.0) == "0");
  CHECK(time_text(5.31e-8) == "53.1 ns");
  CHECK(time_text(9.994e-8) == "0.10 us");
  CHECK(time_text(5.31e-7) == "0.53 us");
  CHECK(time_text(9.996e-6) == "10.0 us");
  CHECK(time_text(9.994e-4) == "999 us");
  CHECK(time_text(9.9951e-4) == "1.00 ms");
  CHECK(time_text(7.7e-3) == "7.70 ms");
  CHECK(time_text(0.9996) == "1.00 s");
  CHECK(time_text(1234.0) == "1234 s");
  CHECK(time_text(std::numeric_limits<double>::infinity()) == "-");
  CHECK(time_text(std::optional<double>()) == "-");
}

TEST_CASE("values: bandwidths and percents keep what is small apart from nothing", "[colbench]") {
  CHECK(bandwidth_text(0) == "-");
  CHECK(bandwidth_text(1e3) == "<0.001");
  CHECK(bandwidth_text(5.32e8) == "0.532");
  CHECK(bandwidth_text(9.996e8) == "1.00");
  CHECK(bandwidth_text(4.12e10) == "41.2");
  CHECK(bandwidth_text(1.5e11) == "150");
  CHECK(percent_text(0.876) == "88");
  CHECK(percent_text(0.0314) == "3.1");
  CHECK(percent_text(0.0004) == "<0.1");
  CHECK(percent_text(0) == "0.0");
  CHECK(percent_text(std::numeric_limits<double>::infinity()) == "-");
}

TEST_CASE("table: a row with everything in it, and what ran above it", "[colbench]") {
  const std::string text = table_report(one_row(), kWide, false);
  CHECK(has_line(text,
                 "# colbench 0.1.0: 2 ranks on node1 (4 CPUs, Example CPU @ 2.4 GHz), 6 launches, common start, seed "
                 "0xffffffffffffffff"));
  CHECK(has_line(text, "# all rows: shm, float32, sum, 4 ranks, out of place, isolated; bandwidths in GB/s"));
  CHECK(text.find("# memory in GB/s, alone/together: 32K 88.1/150, ") != std::string::npos);
  CHECK(text.find("256M 11.2/13.0; hand-over 0.12 us") != std::string::npos);
  const auto rows = rows_of(text);
  REQUIRE(rows.size() == 2);
  CHECK(words_of(rows[0]) == std::vector<std::string>{"coll", "algo", "size", "n", "t50", "+-CI", "spread", "tmin",
                                                      "p95", "p99", "max", "skew", "algbw", "busbw", "%bound", "%model",
                                                      "wrong"});
  const auto words = words_of(rows[1]);
  REQUIRE(words.size() == 22);  // five of the times have a unit beside them
  CHECK(std::vector(words.begin(), words.begin() + 4) == std::vector<std::string>{"allreduce", "ring", "32M", "42"});
  CHECK(words[5] == "ms");
  CHECK(words[12] == "-");  // p99 of 42 samples
  // 32 MiB in 7.7 ms, and 2 * 3/4 of that.
  CHECK(words[17].substr(0, 3) == "4.3");
  CHECK(words[18].substr(0, 3) == "6.5");
  CHECK(words[21] == "0");
  CHECK(lines_of(text).back() == "# 14.2 s; every row is verified; 1 row stopped by interval");
}

TEST_CASE("table: what differs between rows has a column, what is equal is said once", "[colbench]") {
  Results results = one_row();
  results.cells.push_back(results.cells[0]);
  results.cells[1].spec.in_place = true;
  results.cells[1].spec.dtype = col::DType::float16;
  const std::string text = table_report(results, kWide, false);
  const auto rows = rows_of(text);
  CHECK(rows[0].starts_with("coll      algo dt      size place"));
  CHECK(rows[1].starts_with("allreduce ring float32  32M out"));
  CHECK(rows[2].starts_with("allreduce ring float16  32M in"));
  CHECK(has_line(text, "# all rows: shm, sum, 4 ranks, isolated; bandwidths in GB/s"));
}

TEST_CASE("table: never wider than it may be, and what had no room is named", "[colbench]") {
  Results results = sample_results();
  for (const bool utf8 : {true, false}) {
    const std::string text = table_report(results, Style{utf8, false, kTableColumns}, false);
    CHECK(text.find("# no room here for skew, tmin") != std::string::npos);
    for (const std::string& row : rows_of(text)) {
      CAPTURE(row);
      CHECK(col::tools::columns_of(row) <= kTableColumns);
    }
  }
  CHECK(table_report(one_row(), kWide, false).find("no room") == std::string::npos);
  const std::string narrow = table_report(results, Style{.columns = 80}, false);
  CHECK(narrow.find("# no room here for ") != std::string::npos);
  for (const std::string& row : rows_of(narrow)) CHECK(col::tools::columns_of(row) <= 80);
}

TEST_CASE("table: columns are aligned", "[colbench]") {
  for (const Results& results : {sample_results(), one_row()}) {
    const auto rows = rows_of(table_report(results, kWide, false));
    const std::size_t end = rows[0].find("t50") + 3;
    for (const std::string& row : rows) {
      CAPTURE(row);
      CHECK(row[end - 1] != ' ');
      CHECK(row[end] == ' ');
      CHECK(row.back() != ' ');
    }
  }
}

TEST_CASE("table: an invalid row has a mark, a reason and no rates; one reason is said once", "[colbench]") {
  const std::string text = table_report(sample_results(), kWide, false);
  CHECK(has_line(text, "# [1] 1 row invalid: 1.00 us is below the bound of 2.60 ms"));
  CHECK(has_line(text, "# [2] 1 row invalid: 3 of 4,096 elements are wrong"));
  CHECK(has_line(text, "# [3] 2 rows not measured: rank 1 died"));
  CHECK(has_line(text, "# 4 ranks on 2 cores: they take turns"));
  CHECK(occurrences(text, "FAIL [1]") == 1);
  CHECK(occurrences(text, "- [3]") == 2);
  for (const std::string& row : rows_of(text)) {
    if (row.find("FAIL") == std::string::npos) continue;
    const auto words = words_of(row);
    CAPTURE(row);
    REQUIRE(words.size() > 7);
    // algbw, busbw, %bound, %model before wrong and the mark.
    for (std::size_t i = words.size() - 7; i < words.size() - 3; ++i) CHECK(words[i] == "-");
  }
  CHECK(lines_of(text).back() ==
        "# 14.2 s; 8 of 9 rows verified; 9 rows stopped by interval, 1 by time; 2 rows invalid");
  CHECK(table_report(sample_results(), Style{true, false, kTableColumns}, false).find("✘ [1]") != std::string::npos);
}

TEST_CASE("table: few launches have no interval, a world of one has no bus bandwidth", "[colbench]") {
  Results results = one_row();
  results.cells[0] = sample_cell(Operation::allreduce, "ring", 1024, 1e-3, 5);
  results.cells[0].spec.ranks = 1;
  results.cells[0].check.mode = "off";
  const std::string text = table_report(results, kWide, false);
  const auto rows = rows_of(text);
  const auto below = [&](const char* name) {
    const std::size_t end = rows[0].find(name) + std::string(name).size();
    return rows[1].substr(end - 2, 2);
  };
  CHECK(below("+-CI") == " -");
  CHECK(below("busbw") == " -");
  CHECK(below("wrong") == " -");
  CHECK(below("algbw") == "01");
  CHECK(lines_of(text).back() == "# 14.2 s; no row is verified; 1 row stopped by interval");
}

TEST_CASE("table: the legend explains every column that is there", "[colbench]") {
  const Results results = sample_results();
  const std::string plain = table_report(results, kWide, false), text = table_report(results, kWide, true);
  for (const std::string& name : words_of(rows_of(text)[0])) {
    CAPTURE(name);
    CHECK(occurrences(text, "\n# " + name + " ") == 1);
    CHECK(occurrences(plain, "\n# " + name + " ") == 0);
  }
}

TEST_CASE("table: ASCII where the terminal is, harmless whatever the results hold", "[colbench]") {
  Results results = sample_results();
  results.run.host = results.run.cpu = results.ended_early = results.warnings[0] = kNasty;
  for (Cell& cell : results.cells) cell.algorithm = kNasty + "ü";
  results.cells[8].invalid = kNasty;
  const std::string text = table_report(results, kWide, true);
  CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= ' ' && c < 127); }));
  CHECK(table_report(results, Style{true, false, kTableColumns}, true).find('\x1b') == std::string::npos);
  CHECK(table_report(results, Style{true, true, kTableColumns}, true).find("\x1b[31m") != std::string::npos);
}

TEST_CASE("table: a run without rows says so, one that ended early says why", "[colbench]") {
  Results results = sample_run();
  results.ended_early = "rank 1 died";
  const std::string text = table_report(results, kWide, true);
  CHECK(rows_of(text).empty());
  CHECK(has_line(text, "# ended early: rank 1 died"));
  CHECK(lines_of(text).back() == "# 14.2 s; nothing was measured");
}

TEST_CASE("table: GPUs and NCCL are named, and stand-ins for them called fake", "[colbench]") {
  Results results = one_row();
  results.run.gpus = "rank 0: fake GPU 0 0000:01:00.0";
  results.run.nccl = "NCCL 2.28.9";
  results.cells[0].spec.device = Devices::cuda;
  results.cells[0].fake = true;
  const std::string text = table_report(results, kWide, false);
  const std::string first = lines_of(text).front();
  CHECK(first.ends_with("; rank 0: fake GPU 0 0000:01:00.0; NCCL 2.28.9"));
  CHECK(text.find("fake cuda") != std::string::npos);
  CHECK(text.find(" tdev ") != std::string::npos);
}

namespace {

using Record = std::vector<std::string>;

// RFC 4180, strictly.
std::vector<Record> parse_csv(const std::string& text) {
  std::vector<Record> records;
  std::size_t at = 0;
  while (at < text.size()) {
    Record record;
    for (;;) {
      std::string field;
      if (text.at(at) == '"') {
        for (++at;; ++at) {
          if (text.at(at) == '"' && text.at(at + 1) != '"') break;
          if (text.at(at) == '"') ++at;
          field += text.at(at);
        }
        ++at;
      } else {
        while (text.at(at) != ',' && text.at(at) != '\r') {
          REQUIRE((text[at] != '"' && text[at] != '\n'));
          field += text[at++];
        }
      }
      record.push_back(field);
      if (text.at(at) == ',') {
        ++at;
        continue;
      }
      REQUIRE(text.substr(at, 2) == "\r\n");
      at += 2;
      break;
    }
    records.push_back(record);
  }
  return records;
}

std::vector<std::map<std::string, std::string>> rows_of(const Results& results) {
  const auto records = parse_csv(csv_results(results));
  std::vector<std::map<std::string, std::string>> rows;
  for (std::size_t i = 1; i < records.size(); ++i) {
    REQUIRE(records[i].size() == records[0].size());
    auto& row = rows.emplace_back();
    for (std::size_t field = 0; field < records[0].size(); ++field) row[records[0][field]] = records[i][field];
    REQUIRE(row.size() == records[0].size());  // no name comes twice
  }
  return rows;
}

}  // namespace

TEST_CASE("csv: a row for every cell, with what was asked for and what came of it", "[colbench]") {
  const Results results = sample_results();
  auto rows = rows_of(results);
  REQUIRE(rows.size() == results.cells.size());
  CHECK(rows[4].at("algorithm") == "ring");
  CHECK(rows[4].at("algorithm_asked") == "auto");
  CHECK(rows[4].at("backend") == "gloo");
  CHECK(rows[1].at("bytes") == "33554432");
  CHECK(rows[1].at("n") == "42");
  CHECK(rows[1].at("p99_ns").empty());
  CHECK_FALSE(rows[0].at("p99_ns").empty());
  CHECK(rows[1].at("bound_ns") == "6160000");
  CHECK(rows[5].at("groups") == "mod:2");
  CHECK(rows[6].at("pair") == "0-1");
  CHECK(rows[7].at("algbw_bytes_per_s").empty());
  CHECK(rows[3].at("ci_high_ns").empty());
}

TEST_CASE("csv: no rates for what is invalid, and nothing but the reason for what was not measured", "[colbench]") {
  auto rows = rows_of(sample_results());
  CHECK(rows[8].at("invalid") == "1.00 us is below the bound of 2.60 ms");
  CHECK(rows[8].at("busbw_bytes_per_s").empty());
  CHECK(rows[8].at("bound_percent").empty());
  CHECK(rows[9].at("wrong") == "3");
  CHECK(rows[10].at("note") == "rank 1 died");
  CHECK(rows[10].at("n") == "0");
  CHECK(rows[10].at("t50_ns").empty());
}

TEST_CASE("csv: commas, quotes and line ends stay within their field", "[colbench]") {
  Results results = sample_run();
  CHECK(rows_of(results).empty());
  results.cells = {sample_cell(Operation::allreduce, "a,\"b\"\r\nc", 8, 1e-6)};
  results.cells[0].invalid = kNasty;
  auto rows = rows_of(results);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("algorithm") == "a,\"b\"\r\nc");
  CHECK(rows[0].at("invalid") == kNasty);
}

TEST_CASE("csv: a row that was measured over stand-ins for GPUs says so", "[colbench]") {
  Results results = sample_results();
  results.cells.resize(3);
  results.cells[0].spec.device = results.cells[1].spec.device = Devices::cuda;
  results.cells[1].fake = true;
  results.cells[1].launches[0].device_seconds = {1e-6, 3e-6, 2e-6};
  const auto rows = rows_of(results);
  CHECK(rows[0].at("device") == "cuda");
  CHECK(rows[1].at("device") == "fake cuda");
  CHECK(rows[2].at("device") == "cpu");
  CHECK(rows[0].at("device_t50_ns").empty());
  CHECK(rows[1].at("device_t50_ns") == "2000");
}
