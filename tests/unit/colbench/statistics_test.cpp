#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "colbench/results.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
using Catch::Approx;

namespace {

Cell cell_of(const std::vector<std::vector<double>>& launches) {
  Cell cell;
  int number = 0;
  for (const auto& seconds : launches) {
    cell.launches.push_back({.launch = number++, .seconds = seconds, .start_skew = seconds});
  }
  return cell;
}

std::vector<double> numbers(std::size_t n) {
  std::vector<double> values;
  for (std::size_t i = 1; i <= n; ++i) values.push_back(static_cast<double>(i));
  return values;
}

}  // namespace

TEST_CASE("statistics: a launch counts as one observation, however many samples it has", "[colbench]") {
  const Cell cell = cell_of({{3, 1, 2}, {6, 5, 4}, {}, {9, 8, 70}, {7}, {6}, {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}});
  CHECK(all_seconds(cell).size() == 22);
  CHECK(launch_medians(cell) == std::vector<double>{2, 5, 9, 7, 6, 3});
  const CellStatistics statistics = statistics_of(cell);
  CHECK(statistics.n == 22);
  CHECK(statistics.median == 5.5);
  REQUIRE(statistics.has_interval());
  CHECK(statistics.low == 2);
  CHECK(statistics.high == 9);
  CHECK(statistics.half_width() == Approx(3.5 / 5.5));
  CHECK(statistics.launch_spread == Approx((6.75 - 3.5) / 5.5));
  CHECK(statistics.min == 1);
  CHECK(statistics.max == 70);
}

TEST_CASE("statistics: extremes and deviations are of the samples of all launches together", "[colbench]") {
  const CellStatistics statistics = statistics_of(cell_of({{3, 1, 2}, {6, 5, 4}, {}, {9, 8, 70}}));
  CHECK(statistics.p95 == Approx(9 + 0.6 * 61));
  CHECK(statistics.mad == 3);
  CHECK(statistics.outliers == 1);
  CHECK(statistics.skew == 5);
}

TEST_CASE("statistics: the times of GPUs have a median of their own", "[colbench]") {
  Cell cell = cell_of({{3, 1, 2}, {6, 5, 4}});
  CHECK_FALSE(statistics_of(cell).device_median);
  cell.launches[0].device_seconds = {0.5, 0.25, 4};
  cell.launches[1].device_seconds = {1, 2, 3};
  CHECK(statistics_of(cell).device_median == 1.25);
  CHECK(statistics_of(cell).median == 3.5);
}

TEST_CASE("statistics: of no samples there are none", "[colbench]") {
  const CellStatistics statistics = statistics_of(cell_of({{}, {}}));
  CHECK(statistics.n == 0);
  CHECK(statistics.median == 0);
  CHECK(statistics.high == 0);
  CHECK(launch_medians(cell_of({})).empty());
}

TEST_CASE("statistics: five launches have no interval, however many samples they have, and six have one",
          "[colbench]") {
  const std::vector<double> many(1000, 1.0);
  const CellStatistics five = statistics_of(cell_of({many, many, many, many, many}));
  CHECK(std::isinf(five.high));
  CHECK(five.low == 0);
  CHECK_FALSE(five.has_interval());
  CHECK(statistics_of(cell_of({many, many, many, many, many, many})).has_interval());
  CHECK(statistics_of(cell_of({many})).launch_spread == 0);
}

TEST_CASE("statistics: what few samples cannot tell is not told", "[colbench]") {
  CHECK_FALSE(statistics_of(cell_of({numbers(99)})).p99);
  const auto p99 = statistics_of(cell_of({numbers(100)})).p99;
  REQUIRE(p99);
  CHECK(*p99 == Approx(99.01));
}

TEST_CASE("statistics: launches that differ show in the autocorrelation, the step between them does not",
          "[colbench]") {
  CHECK(statistics_of(cell_of({{1, 1, 1, 1}, {2, 2, 2, 2}})).autocorrelation == Approx(1));
  CHECK(statistics_of(cell_of({{1, 2, 1, 2, 1, 2}})).autocorrelation == Approx(-1));
}

TEST_CASE("bandwidth: the factors are those of nccl-tests", "[colbench]") {
  const auto bus = [](Operation operation, int size) {
    return bus_bandwidth({.operation = operation, .bytes = 8000, .ranks = size}, size, 2.0);
  };
  CHECK(algorithm_bandwidth({.bytes = 8000}, 2.0) == 4000);
  CHECK(bus(Operation::allreduce, 8) == Approx(4000 * 2 * 7 / 8.0));
  CHECK(bus(Operation::store, 8) == bus(Operation::allreduce, 8));  // so that the two can be compared
  for (const Operation operation :
       {Operation::allgather, Operation::allgatherv, Operation::reduce_scatter, Operation::reduce_scatterv,
        Operation::gather, Operation::gatherv, Operation::scatter, Operation::scatterv, Operation::alltoall,
        Operation::alltoallv}) {
    INFO(to_string(operation));
    CHECK(bus(operation, 4) == Approx(3000));
    CHECK(bus(operation, 1) == 0);  // nothing needs to move
  }
  for (const Operation operation :
       std::vector<Operation>{Operation::broadcast, Operation::reduce, Operation::scan, Operation::exscan,
                              Operation::pingpong, Operation::oneway, Operation::bidirectional}) {
    INFO(to_string(operation));
    CHECK(bus(operation, 4) == 4000);
  }
  CHECK(bus_bandwidth({.operation = Operation::barrier, .bytes = 0}, 4, 1e-6) == 0);
  CHECK(algorithm_bandwidth({.bytes = 8000}, 0) == 0);
}

TEST_CASE("groups: their size is that of the largest", "[colbench]") {
  const auto size = [](const char* groups, int ranks, Operation operation = Operation::allreduce) {
    return group_size_of({.operation = operation, .ranks = ranks, .groups = groups});
  };
  CHECK(size("", 7) == 7);
  CHECK(size("mod:2", 7) == 4);
  CHECK(size("mod:2", 8) == 4);
  CHECK(size("mod:9", 4) == 1);
  CHECK(size("div:4", 7) == 4);
  CHECK(size("div:4", 3) == 3);
  CHECK(size("pairs", 7) == 2);
  CHECK(size("pairs", 1) == 1);
  CHECK(size("bisect", 7) == 4);
  CHECK(size("bisect", 8) == 4);
  CHECK(size("", 7, Operation::pingpong) == 2);
  CHECK(size("bisect", 8, Operation::oneway) == 2);
}
