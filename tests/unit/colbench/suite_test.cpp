#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <col/plan.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/report/summary.hpp"
#include "colbench/suite/ps.hpp"
#include "common/exit_codes.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace col;
using namespace col::colbench;
using Words = std::vector<std::string>;

namespace {

constexpr std::size_t kSizes[] = {1024, 1 << 20};

std::vector<int> suite_ranks_of(Words words) {
  return take_rank_list(words, {1, 2});
}

// Every method at every size; `seconds` says how long each takes.
Results results_of(int ranks, const std::function<double(const CellSpec&)>& seconds) {
  Results results;
  results.run.cpus = 4;
  results.run.ranks = ranks;
  results.machine.levels = {{.bytes = 32 << 10, .alone = 2e10, .together = 4e10, .best = 4e10},
                            {.bytes = 64 << 20, .alone = 5e9, .together = 1e10, .best = 1e10}};
  for (const CellSpec& spec : ps_cells(ranks, kSizes, true)) {
    Cell cell{.spec = spec, .backend = spec.backend, .algorithm = spec.algorithm == "auto" ? "ring" : spec.algorithm};
    for (int i = 0; i < 30; ++i) cell.launches.push_back({.launch = i, .seconds = {seconds(spec) * (1 + 0.0001 * i)}});
    results.cells.push_back(cell);
  }
  return results;
}

double central_is_ten_times_slower(const CellSpec& spec) {
  const double seconds = spec.bytes < 2000 ? 1e-5 : 1e-3;
  return spec.algorithm == "ps_central" ? 10 * seconds : seconds;
}

// The words of the table's line that begins with these.
std::string line_with(const std::string& text, const std::string& part) {
  for (const std::string& line : lines_of(text)) {
    if (has(line, part)) return line;
  }
  return {};
}

}  // namespace

TEST_CASE("suite ps: -n is a list, wherever it stands", "[colbench]") {
  CHECK(suite_ranks_of({}) == std::vector{1, 2});
  CHECK(suite_ranks_of({"-n", "4,8"}) == std::vector{4, 8});
  CHECK(suite_ranks_of({"--sizes", "1K", "-n=8,2-4"}) == std::vector{2, 3, 4, 8});
  CHECK(suite_ranks_of({"--ranks=5"}) == std::vector{5});
  Words words = {"--json", "x", "--ranks", "3", "--seed", "1"};
  CHECK(take_rank_list(words, {}) == std::vector{3});
  CHECK(words == Words{"--json", "x", "--seed", "1"});
  for (const char* wrong : {"0", "x", "", "2,,3", "65", "-1"}) {
    CHECK(has(complaint_of([&] { suite_ranks_of({"-n", wrong}); }), "-n takes numbers of ranks"));
  }
  CHECK(has(complaint_of([] { suite_ranks_of({"-n"}); }), "needs a value"));
  CHECK(has(complaint_of([] { suite_ranks_of({"-n", "2", "--ranks", "3"}); }), "twice"));
}

TEST_CASE("suite ps: every method at every size, over algorithms that exist", "[colbench]") {
  const std::vector<CellSpec> cells = ps_cells(4, kSizes, true);
  CHECK(cells.size() == 2 * ps_methods().size());
  std::set<const PsMethod*> methods;
  for (const CellSpec& spec : cells) {
    CHECK(spec.ranks == 4);
    CHECK(spec.dtype == DType::float32);
    const PsMethod* method = ps_method_of(spec);
    REQUIRE(method != nullptr);
    methods.insert(method);
    if (spec.algorithm != "auto") CHECK(find_algorithm(Collective::allreduce, spec.algorithm) != nullptr);
  }
  CHECK(methods.size() == ps_methods().size());
  for (const CellSpec& spec : ps_cells(4, kSizes, false)) CHECK(spec.backend != "gloo");
  CHECK(ps_method_of({.operation = Operation::broadcast}) == nullptr);
}

TEST_CASE("suite ps: one rank has no peers, and sizes are whole elements", "[colbench]") {
  CHECK(ps_cells(1, kSizes, true).size() == 2);  // a copy
  const std::size_t odd[] = {1, 3, 10};
  const std::vector<CellSpec> cells = ps_cells(1, odd, true);
  REQUIRE(cells.size() == 2);  // 1 and 3 bytes are one element
  CHECK(cells.front().bytes == 4);
  CHECK(cells.back().bytes == 8);
}

TEST_CASE("suite ps: shares add up, and none is more than there is", "[colbench]") {
  const Shares shares = shares_of(1.0, 0.1, 1'000'000, 1e7);  // copies: 0.2 s
  CHECK(shares.latency == Approx(0.1));
  CHECK(*shares.copies == Approx(0.2));
  CHECK(shares.bytes == Approx(0.7));
  const Shares smallest = shares_of(0.1, 0.1, 1'000'000, 1e7);
  CHECK(smallest.latency == Approx(0.1));
  CHECK(*smallest.copies == 0);
  CHECK(smallest.bytes == 0);
  const Shares quick = shares_of(0.05, 0.1, 10, 1e7);  // quicker than at its smallest size
  CHECK(quick.latency == Approx(0.05));
  const Shares copying = shares_of(1.0, 0.1, 1'000'000'000, 1e7);
  CHECK(*copying.copies == Approx(0.9));
  CHECK(copying.bytes == 0);
  CHECK_FALSE(shares_of(1.0, 0.1, std::nullopt, 1e7).copies);
  CHECK_FALSE(shares_of(1.0, 0.1, 10, 0).copies);  // the machine was not measured
}

TEST_CASE("suite ps: what is copied follows from the plan that ran", "[colbench]") {
  const auto copied = [](const std::string& algorithm, int ranks) {
    return copied_bytes({.spec = {.bytes = 4096, .ranks = ranks}, .algorithm = algorithm});
  };
  CHECK(copied("", 1) == 4096);
  CHECK_FALSE(copied("native", 4));
  CHECK_FALSE(copied("", 4));
  CHECK_FALSE(copied("ring:radix=", 4));
  for (const char* name : {"ps_central", "ps_sharded", "ring", "bde", "ring_pipelined:segment=1K"}) {
    INFO(name);
    const auto bytes = copied(name, 4);
    REQUIRE(bytes);
    CHECK(*bytes <= 4 * 2 * 4096);
  }
}

TEST_CASE("suite ps: the copy bandwidth is that of the level that holds the buffers", "[colbench]") {
  const Machine machine = results_of(2, central_is_ten_times_slower).machine;
  CHECK(copy_bandwidth(machine, 1000, 2) == 4e10);
  CHECK(copy_bandwidth(machine, 1000, 1) == 2e10);
  CHECK(copy_bandwidth(machine, 1 << 20, 2) == 1e10);
  CHECK(copy_bandwidth(machine, std::size_t{1} << 40, 2) == 1e10);
  CHECK(copy_bandwidth({}, 1000, 2) == 0);
}

TEST_CASE("suite ps: the table compares every method with col, and says who takes turns", "[colbench]") {
  const Results results = results_of(8, central_is_ten_times_slower);
  const std::string text = tools::render_noted(ps_table(results, 8, results.machine, true), {.utf8 = true});
  INFO(text);
  CHECK(has(text, "8 ranks, oversubscribed: they take turns on 4 cores\n"));
  CHECK(has(line_with(text, "1K"), "central server"));
  CHECK(has(line_with(text, "1K"), "10.0x"));
  CHECK(has(line_with(text, "sharded server"), "~1.00x"));
  CHECK(has(text, "central server takes 10.0x the time of col over shm\n"));
  const Results falling = results_of(8, [](const CellSpec& spec) {
    return central_is_ten_times_slower(spec) * (spec.bytes > 2000 && spec.algorithm == "ps_central" ? 0.4 : 1);
  });
  CHECK(has(tools::render_noted(ps_table(falling, 8, {}, false), {}),
            "central server takes 4.00x (1M) to 10.0x (1K) the time of"));
  // 100 us of 10 ms are latency, and a server copies nothing within its rank.
  const std::string central = line_with(text, "1M");
  CHECK(has(central, "10.0 ms"));
  CHECK(has(central, " 1.0"));
  CHECK(has(central, " 99"));
  CHECK_FALSE(has(tools::render_noted(ps_table(results_of(4, central_is_ten_times_slower), 4, {}, false), {}),
                  "oversubscribed"));
}

TEST_CASE("suite ps: of one size nobody can say what is latency", "[colbench]") {
  Results results = results_of(4, central_is_ten_times_slower);
  std::erase_if(results.cells, [](const Cell& cell) { return cell.spec.bytes < 2000; });
  const std::string text = tools::render_noted(ps_table(results, 4, results.machine, false), {});
  INFO(text);
  CHECK_FALSE(has(text, "latency"));
  CHECK(has(text, "central server takes 10.0x the time of col over shm"));
}

TEST_CASE("suite ps: rows that count for nothing say why, and are compared with nothing", "[colbench]") {
  Results results = results_of(4, central_is_ten_times_slower);
  for (Cell& cell : results.cells) {
    const PsMethod* method = ps_method_of(cell.spec);
    if (method->name == "col over shm") cell.invalid = "3 wrong elements";
    if (method->name == "central server") cell.launches.clear(), cell.note = "needs 4G of memory";
  }
  const std::string text = tools::render_noted(ps_table(results, 4, results.machine, false), {});
  INFO(text);
  CHECK(has(line_with(text, "col over shm"), "invalid"));
  CHECK(has(line_with(text, "central server"), "not measured"));
  CHECK_FALSE(has(text, "x "));  // no ratio
  CHECK_FALSE(has(text, "takes 1"));
  CHECK(has(notes_text(results, {}), "not measured: needs 4G of memory"));
  CHECK(has(notes_text(results, {}), "3 wrong elements"));
}

TEST_CASE("suite ps: results of several numbers of ranks become one", "[colbench]") {
  Results all;
  Results two = results_of(2, central_is_ten_times_slower), four = results_of(4, central_is_ten_times_slower);
  two.warnings = {"same", "two"};
  four.warnings = {"same", "four"};
  four.exit_code = tools::exit_code::kRankDied;
  four.ended_early = "rank 1 died";
  four.machine.levels.pop_back();
  add_results(all, two);
  add_results(all, four);
  CHECK(all.cells.size() == two.cells.size() + four.cells.size());
  CHECK(all.warnings == Words{"same", "two", "four"});
  CHECK(all.run.ranks == 4);
  CHECK(all.machine.levels.size() == 1);
  CHECK(all.exit_code == tools::exit_code::kRankDied);
  CHECK(all.ended_early == "rank 1 died");
  add_results(all, two);
  CHECK(all.run.ranks == 4);
  CHECK(all.exit_code == tools::exit_code::kRankDied);
}

TEST_CASE("suite: a wrong name gets the nearest one", "[colbench]") {
  const auto complaint = [](const Words& words) { return complaint_of(run_suite, words); };
  CHECK(has(complaint({"pss"}), "did you mean 'ps'?"));
  CHECK(has(complaint({"training"}), "there is no suite 'training'"));
  CHECK(has(complaint({"ps", "-n", "zero"}), "-n takes"));
  CHECK(complaint({"ps", "--sizes", "32X"}) != "nothing");
  CHECK(complaint({"ps", "--backend", "shm"}) != "nothing");
}
