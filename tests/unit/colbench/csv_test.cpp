#include "colbench/report/csv.hpp"

#include <map>
#include <string>
#include <vector>

#include "sample_results.hpp"
#include "support/catch.hpp"

using namespace col::colbench;

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
