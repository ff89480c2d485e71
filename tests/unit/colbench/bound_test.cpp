#include "colbench/machine/bound.hpp"
#include "colbench/merge.hpp"
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
