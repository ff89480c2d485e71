// colbench compare and colbench noise, from the command line to the exit code.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/report/json.hpp"
#include "common/write_file.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col::colbench;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

namespace {

struct Outcome {
  int code = -1;
  std::string text;  // what went to stdout
};

// Runs it with stdout in a file.
Outcome outcome_of(int (*command)(const Invocation&), const Invocation& invocation) {
  const col::test::TempDir directory;
  const std::string path = directory / "stdout";
  std::fflush(stdout);
  const int own = ::dup(STDOUT_FILENO);
  REQUIRE(own >= 0);
  struct Restore {
    int fd;
    ~Restore() {
      std::fflush(stdout);
      ::dup2(fd, STDOUT_FILENO);
      ::close(fd);
    }
  };
  Outcome outcome;
  {
    const Restore restore{own};
    std::FILE* file = std::fopen(path.c_str(), "w");
    ::dup2(::fileno(file), STDOUT_FILENO);
    std::fclose(file);
    outcome.code = command(invocation);
  }
  outcome.text = content_of(path);
  return outcome;
}

Outcome compare_files(const std::vector<std::string>& arguments) {
  return outcome_of(run_compare, {.arguments = arguments, .screen = {.utf8 = false}, .measure = {}});
}

// Launches around `seconds` whose medians differ by a few percent, in no order.
Cell cell_of(const CellSpec& spec, int launches, double seconds) {
  Cell cell{.spec = spec, .backend = "shm", .algorithm = "ring"};
  for (int i = 0; i < launches; ++i) {
    const double here = seconds * (1 + 0.002 * (7 * i % 20));
    cell.launches.push_back({.launch = i, .seconds = {here, here, here}, .start_skew = {0, 0, 0}});
  }
  return cell;
}

class Files {
 public:
  std::string write(const std::string& name, const std::vector<Cell>& cells) {
    Results results;
    results.run.launches = 20;
    results.cells = cells;
    col::tools::write_file(directory_ / name, json_results(results));
    return directory_ / name;
  }
  std::string path(const std::string& name) const { return directory_ / name; }

 private:
  col::test::TempDir directory_;
};

const CellSpec kRow = {.backend = "shm", .algorithm = "ring", .bytes = 1024};

}  // namespace

TEST_CASE("compare: a slower row is an exit code only when that is asked for, and only beyond it", "[colbench]") {
  Files files;
  const std::string a = files.write("a.json", {cell_of(kRow, 20, 1e-3)});
  const std::string b = files.write("b.json", {cell_of(kRow, 20, 1.2e-3)});
  const Outcome plain = compare_files({a, b});
  CHECK(plain.code == 0);
  CHECK_THAT(plain.text, Contains("slower") && Contains("1.200") && Contains("# A: " + a + "\n"));
  CHECK(compare_files({a, b, "--fail-over", "5%"}).code == 4);
  CHECK(compare_files({a, b, "--fail-over=30%"}).code == 0);
  CHECK(compare_files({b, a, "--fail-over", "5%"}).code == 0);  // faster
  CHECK(compare_files({a, a, "--fail-over", "0%"}).code == 0);
  CHECK_THAT(compare_files({a, b, "--min-effect", "25%"}).text, Contains("0 slower, 1 undecided"));
}

TEST_CASE("compare: the comparison is written as JSON", "[colbench]") {
  Files files;
  const std::string a = files.write("a.json", {cell_of(kRow, 20, 1e-3)});
  const std::string json = files.path("c.json");
  CHECK(compare_files({a, a, "--json", json}).code == 0);
  CHECK_THAT(content_of(json), Contains("\"schema\": \"colbench-compare\"") && Contains("\"ratio\": 1.0"));
  CHECK_THROWS_AS(compare_files({a, a, "--json", files.path("none/c.json")}), UsageError);
}

TEST_CASE("compare: when all rows are invalid, nothing has been compared, and the exit code says so", "[colbench]") {
  Files files;
  Cell invalid = cell_of(kRow, 20, 1e-3);
  invalid.invalid = "below the bound";
  const Outcome outcome =
      compare_files({files.write("a.json", {cell_of(kRow, 20, 1e-3)}), files.write("b.json", {invalid})});
  CHECK(outcome.code == 6);
  CHECK_THAT(outcome.text, Contains("invalid in B: below the bound"));
}

TEST_CASE("compare: what cannot be compared is refused in one line", "[colbench]") {
  Files files;
  const std::string a = files.write("a.json", {cell_of(kRow, 20, 1e-3)});
  CellSpec other = kRow;
  other.bytes = 2048;
  const std::string b = files.write("b.json", {cell_of(other, 20, 1e-3)});
  const auto refusal = [](const std::vector<std::string>& arguments) {
    return complaint_of([&] { compare_files(arguments); });
  };
  CHECK_THAT(refusal({a, b}),
             Contains("have no row in common") && Contains("allreduce 1K") && Contains("allreduce 2K"));
  CHECK_THAT(refusal({a, files.path("none.json")}), Contains("none.json"));
  col::tools::write_file(files.path("text.json"), "no JSON");
  CHECK_THAT(refusal({files.path("text.json"), a}), Contains("text.json"));
  col::tools::write_file(files.path("other.json"), "{\"schema\": \"colbench\", \"schema_version\": 99}");
  CHECK_THAT(refusal({files.path("other.json"), a}), Contains("99"));
  CHECK_THAT(refusal({a}), Equals("compare needs two files: colbench compare A.json B.json"));
  CHECK_THAT(refusal({a, b, a}), Contains("unexpected argument"));
  for (const char* percent : {"5", "%", "x%", "-1%", "5%%", "2000%", "nan%"}) {
    INFO(percent);
    CHECK_THAT(refusal({a, a, std::string("--fail-over=") + percent}),
               Equals(std::string("--fail-over '") + percent + "' is no percentage; write one such as 3%"));
  }
}

TEST_CASE("noise: it measures twice the launches, and states the floor of what it has measured", "[colbench]") {
  Method asked;
  std::vector<CellSpec> cells;
  const Measure measure = [&](const Method& method, std::span<const CellSpec> specs) {
    asked = method;
    cells.assign(specs.begin(), specs.end());
    Results results;
    results.run.launches = method.launches;
    for (const CellSpec& spec : specs) results.cells.push_back(cell_of(spec, method.launches, 1e-3));
    results.warnings = {"4 ranks on 2 cores: they take turns"};
    return results;
  };
  const auto noise = [&](const std::vector<std::string>& arguments) {
    return outcome_of(run_noise, {.arguments = arguments, .screen = {.utf8 = false}, .measure = measure});
  };
  const Outcome outcome = noise({});
  CHECK(outcome.code == 0);
  CHECK(asked.launches == 40);
  CHECK(asked.min_iterations == 400);
  REQUIRE(cells.size() == 2);
  CHECK(cells[0].operation == Operation::allreduce);
  CHECK(cells[0].bytes == 1024);
  CHECK(cells[1].bytes == 1024 * 1024);
  CHECK_THAT(outcome.text, Contains("false alarms in 2 rows") && Contains("20 launches a side") &&
                               Contains("# 4 ranks on 2 cores: they take turns\n"));

  Files files;
  const std::string json = files.path("noise.json");
  CHECK(noise({"broadcast", "--size", "4K", "--launches", "7", "--min-iters", "50", "--json", json}).code == 0);
  CHECK(asked.launches == 14);
  CHECK(asked.min_iterations == 50);
  REQUIRE(cells.size() == 1);
  CHECK(cells[0].operation == Operation::broadcast);
  CHECK(read_json_results(json).cells.size() == 1);
  CHECK_THROWS_AS(noise({"--min-effect", "3"}), UsageError);
  CHECK_THROWS_AS(noise({"nonsense"}), UsageError);
}

TEST_CASE("noise: how a run has ended is its exit code", "[colbench]") {
  const Measure measure = [](const Method&, std::span<const CellSpec> specs) {
    Results results;
    for (const CellSpec& spec : specs) results.cells.push_back(cell_of(spec, 3, 1e-3));
    results.ended_early = "rank 1 died of signal 9";
    results.exit_code = 5;
    return results;
  };
  const Outcome outcome = outcome_of(run_noise, {.arguments = {}, .screen = {.utf8 = false}, .measure = measure});
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.text, Contains("rank 1 died of signal 9"));
}
