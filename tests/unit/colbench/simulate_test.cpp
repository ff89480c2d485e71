// Crossovers, simulations that end in time, and what the command line of simulate says.
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "colbench/commands/command.hpp"
#include "colbench/plans/notation.hpp"
#include "colbench/plans/simulated_costs.hpp"
#include "common/command_line.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace col;
using namespace col::colbench;
using Catch::Approx;

namespace {

// Of candidates that cost first + second * size.
CostAt lines(std::vector<std::pair<double, double>> costs) {
  return [costs](std::size_t candidate, std::size_t bytes) -> std::optional<double> {
    return costs[candidate].first + costs[candidate].second * static_cast<double>(bytes);
  };
}

const std::vector<std::size_t> kGrid = {8, 1024, 1 << 20, 1 << 30};

CellSpec allreduce(int ranks, std::size_t bytes) {
  CellSpec cell;
  cell.ranks = ranks;
  cell.bytes = bytes;
  return cell;
}

}  // namespace

TEST_CASE("crossovers: where two lines cross is found to a factor of 1.1", "[colbench]") {
  const auto ranges = best_ranges(kGrid, 2, lines({{1, 1}, {50'001, 0.5}}));  // at 100,000
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].candidate == 0);
  CHECK(ranges[1].candidate == 1);
  CHECK(ranges[0].least == 8);
  CHECK(ranges[0].most <= 100'000);
  CHECK(ranges[1].least >= 100'000);
  CHECK(static_cast<double>(ranges[1].least) <= 1.1 * static_cast<double>(ranges[0].most));
  CHECK(ranges[1].most == kGrid.back());
}

TEST_CASE("crossovers: one that is the fastest only between two sizes is found there", "[colbench]") {
  // The second from 2,000 to 200,000, which lies between 1K and 1M.
  const auto ranges = best_ranges(kGrid, 3, lines({{0, 1}, {1000, 0.5}, {81'000, 0.1}}));
  REQUIRE(ranges.size() == 3);
  CHECK(ranges[1].candidate == 1);
  CHECK(static_cast<double>(ranges[1].least) == Approx(2000).epsilon(0.1));
  CHECK(static_cast<double>(ranges[1].most) == Approx(200'000).epsilon(0.1));
}

TEST_CASE("crossovers: of equal ones the first; sizes without a cost are left out", "[colbench]") {
  CHECK(best_ranges(kGrid, 2, lines({{1, 1}, {1, 1}})).size() == 1);
  const CostAt some = [](std::size_t, std::size_t bytes) {
    return bytes < 1024 ? std::nullopt : std::optional<double>(1);
  };
  const auto ranges = best_ranges(kGrid, 1, some);
  REQUIRE(ranges.size() == 1);
  CHECK(ranges[0].least == 1024);
  const CostAt none = [](std::size_t, std::size_t) { return std::optional<double>(); };
  CHECK(best_ranges(kGrid, 3, none).empty());
}

TEST_CASE("crossovers: as ranges in words", "[colbench]") {
  const auto name = [](std::size_t i) { return std::string(i == 0 ? "bde" : i == 1 ? "rabenseifner" : "ring"); };
  const std::vector<BestRange> three = {{8, 12 << 10, 0}, {13 << 10, 3 << 20, 1}, {4 << 20, 1 << 30, 2}};
  CHECK((range_lines(three, name) ==
         std::vector<std::string>{"up to 12K: bde", "12K to 3M: rabenseifner", "above 3M: ring"}));
  const std::vector<BestRange> one = {{8, 1 << 30, 2}};
  CHECK((range_lines(one, name) == std::vector<std::string>{"at all sizes: ring"}));
}

TEST_CASE("simulate_within: gives up when the time is over, and before it takes gigabytes", "[colbench]") {
  const Algorithm* ring = find_algorithm(Collective::allreduce, "ring");
  const PlanProblem small({.collective = Collective::allreduce, .size = 16, .count = 1000});
  const auto whole = simulate_within(std::chrono::seconds(60), small, plans_of(*ring, small), {}, 4, 4);
  CHECK(whole.seconds.value() == simulate(small, plans_of(*ring, small), {}).seconds);
  const auto cut = simulate_within(Duration(0), small, plans_of(*ring, small), {}, 4, 4);
  CHECK_FALSE(cut.seconds.has_value());
  CHECK(cut.why_not.find("--max-time") != std::string::npos);

  const Algorithm* one_shot = find_algorithm(Collective::allreduce, "one_shot");
  CHECK(steps_at_once(small, plans_of(*one_shot, small)) == 2 * 15 * 16);
  const PlanProblem large({.collective = Collective::allreduce, .size = 8192, .count = 8192});
  const auto refused = simulate_within(std::chrono::seconds(60), large, plans_of(*one_shot, large), {}, 4, 4);
  CHECK_FALSE(refused.seconds.has_value());
  CHECK(refused.why_not.find("under way") != std::string::npos);
}

TEST_CASE("simulated costs: simulation and closed form agree where both are exact", "[colbench]") {
  const auto sources = PlanSource::list(Collective::allreduce, {"ring", "bde", "mst"});
  SimulatedCosts costs({.cell = allreduce(16, 0), .max_time = std::chrono::seconds(60)}, sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const SimulatedCosts::Cost& cost = costs.at(i, 64 << 10);
    INFO(sources[i].name());
    CHECK(cost.simulated.value() == Approx(cost.closed_form.value()));
    CHECK(cost.seconds() == cost.simulated);
  }
}

TEST_CASE("simulated costs: without time, the closed form; refused is refused", "[colbench]") {
  const auto ring = PlanSource::list(Collective::allreduce, {"ring"});
  SimulatedCosts hasty({.cell = allreduce(16, 0), .max_time = Duration(0)}, ring);
  const SimulatedCosts::Cost& cost = hasty.at(0, 1024);
  CHECK_FALSE(cost.simulated.has_value());
  CHECK(cost.seconds() == cost.closed_form);
  CHECK_FALSE(cost.why_not.empty());

  CellSpec cell = allreduce(7, 0);
  cell.operation = Operation::allgather;
  const auto neighbor = PlanSource::list(Collective::allgather, {"neighbor"});
  SimulatedCosts odd({.cell = cell, .max_time = std::chrono::seconds(60)}, neighbor);
  CHECK(odd.at(0, 1024).refused);
  CHECK_FALSE(odd.at(0, 1024).seconds().has_value());
}

TEST_CASE("simulated costs: a slower link between nodes costs more", "[colbench]") {
  const auto ring = PlanSource::list(Collective::allreduce, {"ring"});
  SimulatedCosts one({.cell = allreduce(8, 0), .max_time = std::chrono::seconds(60)}, ring);
  SimulatedCosts four(
      {.cell = allreduce(8, 0), .node_of_rank = {0, 0, 1, 1, 2, 2, 3, 3}, .max_time = std::chrono::seconds(60)}, ring);
  CHECK(four.at(0, 1 << 20).simulated.value() > 2 * one.at(0, 1 << 20).simulated.value());
  CHECK_FALSE(four.at(0, 1 << 20).closed_form.has_value());
}

TEST_CASE("simulate: a wrong command line is one sentence", "[colbench]") {
  CHECK(has(complaint_of(run_simulate, {}), "--ranks"));
  CHECK(has(complaint_of(run_simulate, {"-n", "1"}), "2"));
  CHECK(has(complaint_of(run_simulate, {"-n", "8", "--alpha", "5"}), "5us"));
  CHECK(has(complaint_of(run_simulate, {"-n", "8", "--nic-shared"}), "--topology"));
  CHECK(has(complaint_of(run_simulate, {"-n", "8", "--algo", "rnig"}), "did you mean 'ring'"));
  CHECK(has(complaint_of(run_simulate, {"-n", "8", "--root", "8"}), "0 to 7"));
  CHECK(has(complaint_of(run_simulate, {"-n", "8", "--max-time", "soon"}), "10s"));
}

TEST_CASE("topology: ranks follow each other within a node", "[colbench]") {
  const Topology topology = parse_topology("nodes:3x2", 0);
  CHECK(topology.ranks == 6);
  CHECK(topology.nodes == 3);
  CHECK((topology.node_of_rank() == std::vector<int>{0, 0, 1, 1, 2, 2}));
  CHECK(topology.text() == "6 ranks, 3 nodes of 2");
  CHECK(parse_topology("nodes:3x2", 6).ranks == 6);
  CHECK(parse_topology("flat", 5).nodes == 1);
}

TEST_CASE("topology: what is wrong is said, and what to write instead", "[colbench]") {
  CHECK(has(complaint_of([] { parse_topology("nodes:3x2", 7); }), "has 6 ranks, not the 7"));
  CHECK(has(complaint_of([] { parse_topology("flat", 0); }), "--ranks"));
  CHECK(has(complaint_of([] { parse_topology("nodes:65536x65536", 0); }), "4294967296 ranks"));
  for (const char* text : {"", "nodes", "nodes:", "nodes:x", "nodes:3x", "nodes:x3", "nodes:0x3", "nodes:-1x3",
                           "nodes:3x4x5", "nodes:3 x4", "torus:3x4"}) {
    INFO(text);
    CHECK(has(complaint_of([&] { parse_topology(text, 0); }), "nodes:512x8"));
  }
}

TEST_CASE("units: times have a unit", "[colbench]") {
  CHECK(parse_time("5us").value() == Approx(5e-6));
  CHECK(parse_time("1.5ms").value() == Approx(1.5e-3));
  CHECK(parse_time("20 ns").value() == Approx(20e-9));
  CHECK(parse_time("2s").value() == Approx(2));
  CHECK(parse_time("0").value() == 0);
  for (const char* text : {"", "5", "us", "-5us", "5 u", "5usx", "1e3us", "nanus", "infs"}) {
    INFO(text);
    CHECK_FALSE(parse_time(text).has_value());
  }
  CHECK(has(complaint_of([] { time_option("--alpha", "5"); }), "--alpha should be a time such as 5us"));
}

TEST_CASE("units: speeds are in bytes or bits, by powers of 1000 or 1024", "[colbench]") {
  CHECK(parse_speed("25GB/s").value() == Approx(25e9));
  CHECK(parse_speed("200Gbit/s").value() == Approx(25e9));
  CHECK(parse_speed("200Gbps").value() == Approx(25e9));
  CHECK(parse_speed("1MiB/s").value() == Approx(1048576));
  CHECK(parse_speed("1.5kB/s").value() == Approx(1500));
  CHECK(parse_speed("100 B/s").value() == Approx(100));
  // "Gb/s" is read as bits by some, as bytes by others.
  for (const char* text : {"", "25", "25GB", "25Gb/s", "0GB/s", "-1GB/s", "25XB/s", "25GiiB/s", "GB/s"}) {
    INFO(text);
    CHECK_FALSE(parse_speed(text).has_value());
  }
  CHECK(has(complaint_of([] { speed_option("--beta", "25Gb/s"); }), "25GB/s or 200Gbit/s"));
}

TEST_CASE("units: speeds and sizes in three digits", "[colbench]") {
  CHECK(speed_text(25e9) == "25 GB/s");
  CHECK(speed_text(1.25e9) == "1.25 GB/s");
  CHECK(speed_text(340e6) == "340 MB/s");
  CHECK(speed_text(999.9e6) == "1 GB/s");
  CHECK(rough_size_text(1000) == "1000");
  CHECK(rough_size_text(12500) == "12.2K");
  CHECK(rough_size_text(3 << 20) == "3M");
  CHECK(rough_size_text((1 << 20) - 1) == "1M");
}
