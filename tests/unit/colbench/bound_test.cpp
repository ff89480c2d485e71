// The physical bound of a cell, on one node and between nodes.
#include <nlohmann/json.hpp>

#include "colbench/launching.hpp"
#include "colbench/machine/bound.hpp"
#include "colbench/rank/calibration.hpp"
#include "colbench/report/json.hpp"
#include "common/exit_codes.hpp"
#include "support/catch.hpp"

using namespace col::colbench;

namespace {

constexpr std::size_t kMega = std::size_t{1} << 20;

Machine machine_with(std::size_t level, double best) {
  Machine machine;
  machine.levels.push_back({.bytes = level, .alone = best / 2, .together = best, .best = best, .calibrations = 5});
  machine.hand_over_seconds = 1e-7;
  machine.switch_seconds = 1e-6;
  return machine;
}

RunFacts on_cores(int cpus) {
  return {.cpus = cpus};
}

Results with_time(double seconds, int recalibrations) {
  Results results;
  Cell cell{.spec = {.operation = Operation::allreduce, .bytes = 32 * kMega, .ranks = 2}};
  cell.launches.push_back({.seconds = std::vector<double>(20, seconds), .start_skew = std::vector<double>(20, 0.0)});
  cell.bound.recalibrations = recalibrations;
  results.cells.push_back(cell);
  results.run.cpus = 2;
  results.machine = machine_with(64 * kMega, 40e9);
  return results;
}

}  // namespace

TEST_CASE("bound: every input is read once and every output written once", "[colbench]") {
  CellSpec spec{.operation = Operation::allreduce, .bytes = 32 * kMega, .ranks = 4};
  CHECK(bytes_that_must_move(spec) == 8 * 32 * kMega);
  spec.operation = Operation::broadcast;
  CHECK(bytes_that_must_move(spec) == 4 * 32 * kMega);
  spec.operation = Operation::reduce;
  CHECK(bytes_that_must_move(spec) == 5 * 32 * kMega);
  spec.operation = Operation::allgather;
  CHECK(bytes_that_must_move(spec) == (4 + 16) * 8 * kMega);
  spec.operation = Operation::alltoall;
  CHECK(bytes_that_must_move(spec) == 8 * 32 * kMega);
  spec.operation = Operation::barrier;
  CHECK(bytes_that_must_move(spec) == 0);
  spec.operation = Operation::pingpong;
  CHECK(bytes_that_must_move(spec) == 2 * 32 * kMega);
  spec = {.operation = Operation::allreduce, .bytes = kMega, .ranks = 4, .groups = "mod:2"};
  CHECK(bytes_that_must_move(spec) == 2 * 4 * kMega);
}

TEST_CASE("bound: what is there already need not move", "[colbench]") {
  CellSpec alone{.operation = Operation::broadcast, .bytes = kMega, .ranks = 1};
  CHECK(bytes_that_must_move(alone) == 0);
  alone.operation = Operation::allreduce;
  CHECK(bytes_that_must_move(alone) == 2 * kMega);
  alone.in_place = true;
  CHECK(bytes_that_must_move(alone) == 0);
  CellSpec spec{.operation = Operation::allgather, .bytes = 4 * kMega, .ranks = 4, .in_place = true};
  CHECK(bytes_that_must_move(spec) == (4 + 12) * kMega);
  spec = {.operation = Operation::scan, .bytes = kMega, .ranks = 4, .in_place = true};
  CHECK(bytes_that_must_move(spec) == 7 * kMega);
  // Groups of 2, 2, 1 and 1: those of one have nobody to wait for either.
  spec = {.operation = Operation::allreduce, .bytes = kMega, .ranks = 6, .in_place = true, .groups = "mod:4"};
  CHECK(bytes_that_must_move(spec) == 2 * 4 * kMega);
  spec = {.operation = Operation::barrier, .ranks = 4, .groups = "div:1"};
  CHECK(bound_of(spec, machine_with(64 * kMega, 40e9), on_cores(4)).seconds == 0);
}

TEST_CASE("bound: the working set is that of one rank", "[colbench]") {
  CellSpec spec{.operation = Operation::bidirectional, .bytes = kMega, .ranks = 16, .groups = "bisect"};
  CHECK(bytes_that_must_move(spec) == 8 * 4 * kMega);
  CHECK(level_of(spec) == 2 * kMega);
  spec = {.operation = Operation::allreduce, .bytes = 1024, .ranks = 2};
  CHECK(level_of(spec) == 4096);
  spec.cache = CacheState::cold;
  CHECK(level_of(spec) == most_level(2));
  spec.cache = CacheState::rotate;
  CHECK(level_of(spec) > 4096);
  CHECK(most_level(1 << 20) < most_level(2));
}

TEST_CASE("bound: bytes at the best bandwidth of the working set, or a hand-over", "[colbench]") {
  CellSpec spec{.operation = Operation::allreduce, .bytes = 32 * kMega, .ranks = 2};
  REQUIRE(level_of(spec) == 64 * kMega);
  CHECK(bound_of(spec, machine_with(64 * kMega, 40e9), on_cores(2)).seconds == Approx(128.0 * kMega / 40e9));
  spec.bytes = 8;
  CHECK(bound_of(spec, machine_with(64 * kMega, 40e9), on_cores(2)).seconds == 1e-7);
  spec.ranks = 8;
  CHECK(bound_of(spec, machine_with(64 * kMega, 40e9), on_cores(2)).seconds == Approx(3e-6));
  CHECK(bound_of(spec, Machine{}, on_cores(2)).seconds == 0);
}

TEST_CASE("bound: a time that cannot be is invalid only when the machine was measured again", "[colbench]") {
  const double bound = 128.0 * kMega / 40e9;
  Method method{.ranks = 2};
  const auto concluded = [&](double seconds, int recalibrations) {
    Results results = with_time(seconds, recalibrations);
    conclude(results, method);
    return results;
  };
  CHECK(concluded(1.1 * bound, 1).warnings.empty());
  const Results near = concluded(0.9 * bound, 1);
  CHECK(near.warnings.size() == 1);
  CHECK(near.exit_code == 0);
  CHECK(concluded(0.5 * bound, 0).exit_code == 0);
  const Results impossible = concluded(0.5 * bound, 1);
  CHECK(impossible.exit_code == col::tools::exit_code::kInvalidMeasurement);
  CHECK(impossible.cells[0].below_bound);
  CHECK_FALSE(impossible.cells[0].invalid.empty());
  method.strict_bound = false;
  CHECK(concluded(0.5 * bound, 1).exit_code == 0);
}

TEST_CASE("merge: launches of a cell come together, and the machine is the best of them", "[colbench]") {
  Results all;
  Results one = with_time(1e-3, 0), two = with_time(2e-3, 1);
  two.cells[0].launches[0].launch = 1;
  two.machine = machine_with(64 * kMega, 50e9);
  add_launch(all, one);
  add_launch(all, two);
  REQUIRE(all.cells.size() == 1);
  CHECK(all.cells[0].launches.size() == 2);
  CHECK(all.cells[0].bound.recalibrations == 1);
  REQUIRE(all.machine.levels.size() == 1);
  CHECK(all.machine.levels[0].best == 50e9);
  CHECK(all.machine.levels[0].calibrations == 10);
}

namespace {

constexpr std::size_t kKilo = 1024, kMebi = std::size_t{1} << 20;
constexpr double kAlpha = 40e-6, kBeta = 40e-9;  // a link of 25 MB/s

// A link that lets 32 KiB pass at once when it has rested.
Machine::Fit fit_with_burst() {
  Machine::Fit fit{.backend = "gloo", .best_gamma = 1e-10};
  for (const std::size_t bytes : kFitted)
    fit.best.push_back(
        {bytes, kAlpha + (bytes > 32 * kKilo ? static_cast<double>(bytes - 32 * kKilo) * kBeta : 0), 35});
  return fit;
}

// `ranks` ranks, so many on each node.
Machine machine_of(int ranks, int each) {
  Machine machine;
  machine.fits = {fit_with_burst()};
  for (int rank = 0; rank < ranks; ++rank) machine.node_of_rank.push_back(rank / each);
  return machine;
}

double bound_of_cell(Operation operation, std::size_t bytes, const Machine& machine, const std::string& groups = "") {
  const CellSpec spec{.operation = operation,
                      .backend = "gloo",
                      .bytes = bytes,
                      .ranks = static_cast<int>(machine.node_of_rank.size()),
                      .groups = groups};
  return network_bound(spec, machine, true).seconds;
}

Answer answer_of(std::vector<double> seconds, double operations = 1) {
  Answer answer{.operations = operations};
  for (const double one : seconds) answer.ended.push_back(one * operations);
  return answer;
}

}  // namespace

TEST_CASE("network: bytes pass a port no faster than the best messages of their length and beyond", "[colbench]") {
  const Machine::Fit fit = fit_with_burst();
  CHECK(least_passing_seconds(fit, 8) == 0);
  CHECK(least_passing_seconds(fit, 32 * kKilo) == 0);
  CHECK(least_passing_seconds(fit, 64 * kKilo) == Approx(32.0 * kKilo * kBeta));
  CHECK(least_passing_seconds(fit, 256 * kKilo) == Approx(128.0 * kKilo * kBeta));
  CHECK(least_passing_seconds(fit, 512 * kKilo) == Approx(480.0 * kKilo * kBeta));
  CHECK(least_passing_seconds(fit, 14 * kMebi) == Approx(14.0 * kMebi * kBeta * (1 - 1.0 / 128)));
  // What really passes in so long, with the burst, is never more.
  for (std::size_t bytes = kKilo; bytes < 64 * kMebi; bytes += bytes / 3 + 1) {
    const double possible = kBeta * std::max(0.0, static_cast<double>(bytes) - 32.0 * kKilo);
    INFO(bytes);
    CHECK(least_passing_seconds(fit, bytes) <= possible * (1 + 1e-9));
  }
}

TEST_CASE("network: messages that cost less by the byte the longer they are bound shorter ones as well", "[colbench]") {
  Machine::Fit fit{.backend = "gloo", .best = {{8, 1e-5, 5}, {1000, 3e-5, 5}, {10'000, 5e-5, 5}}};
  CHECK(least_passing_seconds(fit, 1000) == Approx(4e-6));
  CHECK(least_passing_seconds(fit, 10'000) == Approx(4e-5));
  CHECK(least_passing_seconds(fit, 999) == 0);
  CHECK(least_passing_seconds({}, 1000) == 0);
}

TEST_CASE("network: what must pass a node's port, by collective", "[colbench]") {
  const double rate = kBeta * (1 - 1.0 / 128);
  const auto of = [&](double megabytes) { return Approx(megabytes * kMebi * rate); };
  const Machine machine = machine_of(8, 1);
  CHECK(bound_of_cell(Operation::allreduce, 8 * kMebi, machine) == of(14));
  CHECK(bound_of_cell(Operation::broadcast, 8 * kMebi, machine) == of(8));
  CHECK(bound_of_cell(Operation::allgather, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::gatherv, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::scatterv, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::alltoall, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::alltoallv, 8 * kMebi, machine) == of(7));
  CHECK(bound_of_cell(Operation::pingpong, 8 * kMebi, machine) == of(8));
  CHECK(bound_of_cell(Operation::bidirectional, 8 * kMebi, machine) == of(8));
  CHECK(bound_of_cell(Operation::allreduce, 8, machine) == kAlpha);
  CHECK(bound_of_cell(Operation::barrier, 0, machine) == kAlpha);
  CHECK(bound_of_cell(Operation::oneway, 8, machine) == 0);  // many are on their way
}

TEST_CASE("network: ranks of a node share its port and what has come through it", "[colbench]") {
  const double rate = kBeta * (1 - 1.0 / 128);
  const Machine machine = machine_of(8, 4);
  CHECK(bound_of_cell(Operation::allreduce, 8 * kMebi, machine) == Approx(8.0 * kMebi * rate));
  // Four ranks send half of their blocks each.
  CHECK(bound_of_cell(Operation::alltoall, 8 * kMebi, machine) == Approx(16.0 * kMebi * rate));
  // Groups within a node have no network.
  CHECK(bound_of_cell(Operation::allreduce, 8 * kMebi, machine, "div:4") == 0);
  CHECK(bound_of_cell(Operation::pingpong, 8 * kMebi, machine, "pairs") == 0);
  CHECK(bound_of_cell(Operation::allreduce, 8 * kMebi, machine, "mod:4") == Approx(8.0 * kMebi * rate));
  CHECK(bound_of_cell(Operation::pingpong, 8 * kMebi, machine, "bisect") == Approx(8.0 * kMebi * rate));
  // With unequal numbers all that is certain is that a message passes.
  CHECK(bound_of_cell(Operation::gather, 8 * kMebi, machine_of(8, 5)) == kAlpha);
}

TEST_CASE("network: no bound without nodes, without messages, or for another backend", "[colbench]") {
  CellSpec spec{.operation = Operation::allreduce, .backend = "gloo", .bytes = 8 * kMebi, .ranks = 8};
  Machine machine = machine_of(8, 1);
  CHECK(network_bound(spec, machine, true).seconds > 0);
  CHECK(network_bound(spec, machine_of(8, 8), true).seconds == 0);
  spec.backend = "shm";
  CHECK(network_bound(spec, machine, true).seconds == 0);
  spec.backend = "gloo";
  machine.fits[0].best.clear();
  CHECK(network_bound(spec, machine, true).seconds == 0);
  machine = machine_of(8, 1);
  machine.node_of_rank.clear();
  CHECK(network_bound(spec, machine, true).seconds == 0);
}

TEST_CASE("network: who counts from its own start may start after the message", "[colbench]") {
  const Machine machine = machine_of(8, 1);
  CellSpec spec{.operation = Operation::broadcast, .backend = "gloo", .bytes = 8, .ranks = 8};
  CHECK(network_bound(spec, machine, true).seconds == kAlpha);
  CHECK(network_bound(spec, machine, false).seconds == 0);
  spec.bytes = 8 * kMebi;
  CHECK(network_bound(spec, machine, false).seconds == Approx(network_bound(spec, machine, true).seconds - kAlpha));
  spec.operation = Operation::allreduce;
  CHECK(network_bound(spec, machine, false).seconds == network_bound(spec, machine, true).seconds);
  spec.bytes = 8;
  CHECK(network_bound(spec, machine, false).seconds == kAlpha);
  spec.cadence = Cadence::stream;
  CHECK(network_bound(spec, machine, true).seconds < 1e-9);  // what is left is reducing 7 bytes
}

TEST_CASE("network: the greater of the bounds of memory and network counts, and reducing is one", "[colbench]") {
  Machine machine = machine_of(8, 1);
  const CellSpec spec{.operation = Operation::allreduce, .backend = "gloo", .bytes = 8 * kMebi, .ranks = 8};
  machine.levels = {{.bytes = level_of(spec), .best = 10e9, .calibrations = 5}};
  const RunFacts run{.cpus = 8, .sync = "window"};
  CHECK(bound_of(spec, machine, run).how == "14M must pass a node's port, at 0.0252 GB/s");
  CHECK(bound_of(spec, machine, run).calibrations == 35);
  machine.levels[0].best = 1e6;
  CHECK(bound_of(spec, machine, run).how == "128M must move, at 0.0 GB/s");
  machine.levels.clear();
  machine.fits[0].best_gamma = 1e-6;
  CHECK(bound_of(spec, machine, run).seconds == Approx(7.0 * kMebi * 1e-6));
  CHECK(bound_of(spec, machine, run).how == "each rank must reduce, at 0.001 GB/s");
}

TEST_CASE("network: the best messages of all launches count, and JSON keeps them", "[colbench]") {
  Results all, one, two;
  one.machine = two.machine = machine_of(4, 1);
  two.machine.fits[0].best = {{8, kAlpha / 2, 5}, {16, 1, 5}};
  two.machine.fits[0].best_gamma = 5e-11;
  add_launch(all, parse_json_results(json_results(one), "one"));
  add_launch(all, parse_json_results(json_results(two), "two"));
  CHECK(all.machine.node_of_rank == std::vector<int>{0, 1, 2, 3});
  REQUIRE(all.machine.fits.size() == 1);
  const Machine::Fit& fit = all.machine.fits[0];
  CHECK(fit.best_gamma == 5e-11);
  REQUIRE(fit.best.size() == kFitted.size() + 1);
  CHECK(fit.best[0].seconds == kAlpha / 2);
  CHECK(fit.best[0].calibrations == 40);
  CHECK(fit.best[1].bytes == 16);
  CHECK(fit.best[2].seconds == one.machine.fits[0].best[1].seconds);
  // Files from before there were such bounds.
  auto old = nlohmann::json::parse(json_results(one));
  old["machine"].erase("node_of_rank");
  old["machine"]["fits"][0].erase("best");
  old["machine"]["fits"][0].erase("best_gamma");
  const Results read = parse_json_results(old.dump(), "old");
  CHECK(read.machine.node_of_rank.empty());
  CHECK(read.machine.fits[0].best.empty());
}

TEST_CASE("fitting: messages go between nodes, one by one and all at once", "[colbench]") {
  const std::vector<CellSpec> within = cells_to_fit("gloo", 4, {});
  REQUIRE(within.size() == kFitted.size());
  CHECK_FALSE(within[0].pair);
  const std::vector<int> nodes = {0, 0, 1, 1, 0};
  const std::vector<CellSpec> cells = cells_to_fit("gloo", 5, nodes);
  REQUIRE(cells.size() == 2 * kFitted.size() + 2);
  CHECK(cells[0].pair == std::pair(0, 3));
  CHECK(cells[kFitted.size()].groups == "bisect:2");
  CHECK(cells[2 * kFitted.size()].operation == Operation::alltoall);
  CHECK(cells.back().operation == Operation::oneway);
  CHECK(cells.back().bytes == kFitted.back());
  CHECK(cells.back().pair == std::pair(0, 3));
}

TEST_CASE("fitting: what passes the busiest port of several at once adds up", "[colbench]") {
  const std::vector<int> nodes = {0, 0, 1, 1};
  CellSpec spec{
      .operation = Operation::pingpong, .dtype = col::DType::uint8, .bytes = 1000, .ranks = 4, .groups = "bisect:2"};
  // Of two pairs at once: a byte takes half as long as one of them says. The slower rank of a pair counts.
  const std::vector<Answer> answers = {answer_of({4, 2}, 2), answer_of({4, 3}, 2), answer_of({1, 2}, 2),
                                       answer_of({1, 2}, 2)};
  CHECK(longest_of(answers, 2) == std::vector<double>{4, 3});
  CHECK(least_between_nodes(spec, answers, nodes) == Approx(1000 / (1000.0 / 2 + 1000.0 / 3)));
  spec.bytes = kFitted.front();
  CHECK(least_between_nodes(spec, answers, nodes) == Approx(2));
  spec.groups = "pairs";
  CHECK(least_between_nodes(spec, answers, nodes) == 0);
  // Each of the two ranks of a node sends half of its 1000 bytes away.
  spec = {.operation = Operation::alltoall, .dtype = col::DType::uint8, .bytes = 1000, .ranks = 4};
  CHECK(least_between_nodes(spec, answers, nodes) == Approx(3));
  // Refused.
  CHECK(least_between_nodes(spec, std::vector<Answer>(4), nodes) == 0);
}
