// What samples say: in general, and of a cell.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "colbench/cell/results.hpp"
#include "colbench/stats/sample.hpp"
#include "colbench/stats/two_samples.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
using Catch::Approx;

namespace {

using Values = std::vector<double>;

// 1, 2, …, n.
Values first_numbers(std::size_t n) {
  Values values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// In [0, 1), the same everywhere.
double uniform64(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

Values uniforms(std::size_t n, std::mt19937_64& random) {
  Values values(n);
  for (double& value : values) value = uniform64(random);
  return values;
}

double sum_of_ranks_of_second(const Values& a, const Values& b) {
  Values all = a;
  all.insert(all.end(), b.begin(), b.end());
  const Values ranks = ranking_of(all).ranks;
  return std::accumulate(ranks.begin() + static_cast<std::ptrdiff_t>(a.size()), ranks.end(), 0.0);
}

// The rank-sum test as its definition has it: every choice of who is in b.
double rank_sum_by_enumeration(const Values& a, const Values& b) {
  Values all = a;
  all.insert(all.end(), b.begin(), b.end());
  const Values ranks = ranking_of(all).ranks;
  const double expected = static_cast<double>(b.size()) * static_cast<double>(all.size() + 1) / 2;
  const double seen = std::abs(sum_of_ranks_of_second(a, b) - expected);
  std::size_t ways = 0, as_far = 0;
  for (unsigned chosen = 0; chosen < 1u << all.size(); ++chosen) {
    if (static_cast<std::size_t>(__builtin_popcount(chosen)) != b.size()) continue;
    double sum = 0;
    for (std::size_t i = 0; i < all.size(); ++i) sum += (chosen >> i & 1u) != 0 ? ranks[i] : 0;
    ++ways;
    if (std::abs(sum - expected) >= seen - 1e-9) ++as_far;
  }
  return static_cast<double>(as_far) / static_cast<double>(ways);
}

double exchange_by_enumeration(const Values& a, const Values& b) {
  const double expected = static_cast<double>(b.size()) * static_cast<double>(2 * b.size() + 1) / 2;
  const double seen = std::abs(sum_of_ranks_of_second(a, b) - expected);
  std::size_t as_far = 0;
  for (unsigned exchanged = 0; exchanged < 1u << a.size(); ++exchanged) {
    Values x = a, y = b;
    for (std::size_t i = 0; i < a.size(); ++i)
      if ((exchanged >> i & 1u) != 0) std::swap(x[i], y[i]);
    if (std::abs(sum_of_ranks_of_second(x, y) - expected) >= seen - 1e-9) ++as_far;
  }
  return static_cast<double>(as_far) / static_cast<double>(1u << a.size());
}

}  // namespace

TEST_CASE("quantile: it is linear between order statistics, as R's type 7", "[colbench]") {
  const Values values = {1, 2, 4, 8};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 1) == 8);
  CHECK(quantile(values, 0.5) == Approx(3));
  CHECK(quantile(values, 0.25) == Approx(1.75));
  CHECK(quantile(values, 0.95) == Approx(7.4));
  CHECK(quantile(Values{5}, 0.95) == 5);
  CHECK(quantile(Values{}, 0.5) == 0);
}

TEST_CASE("median: it is the middle, or between the middle two, in any order", "[colbench]") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({7}) == 7);
  CHECK(median({}) == 0);
}

TEST_CASE("median interval: its ends are the order statistics of the binomial tables", "[colbench]") {
  // n, and the rank of the lower end: 95 % two-sided, from tables of the sign test.
  constexpr std::array<std::pair<std::size_t, int>, 11> kTable = {
      {{6, 1}, {8, 1}, {9, 2}, {10, 2}, {12, 3}, {15, 4}, {20, 6}, {25, 8}, {30, 10}, {50, 18}, {100, 40}}};
  for (const auto& [n, rank] : kTable) {
    INFO(n);
    CHECK(median_interval(first_numbers(n)) == Interval{static_cast<double>(rank), static_cast<double>(n) - rank + 1});
  }
}

TEST_CASE("median interval: nothing is sure below six samples", "[colbench]") {
  for (std::size_t n = 0; n < 6; ++n) {
    CHECK(median_interval(first_numbers(n)) == Interval{0, std::numeric_limits<double>::infinity()});
  }
}

TEST_CASE("median interval: with very many samples it is that of the normal approximation", "[colbench]") {
  constexpr std::size_t kSize = 100'000;
  const Interval interval = median_interval(first_numbers(kSize));
  const double half_width = 1.95996 * std::sqrt(static_cast<double>(kSize)) / 2;
  CHECK(interval.low == Approx(kSize / 2.0 - half_width).margin(2));  // of ranks: both are rounded
  CHECK(interval.high == Approx(kSize / 2.0 + half_width).margin(2));
}

TEST_CASE("median interval: it holds the true median at least as often as it says", "[colbench]") {
  std::mt19937_64 random(7);
  int held = 0;
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    Values values = uniforms(21, random);
    std::sort(values.begin(), values.end());
    const Interval interval = median_interval(values);
    if (interval.low <= 0.5 && 0.5 <= interval.high) ++held;
  }
  CHECK(held >= kTries * 95 / 100);
  CHECK(held < kTries);  // or it would say nothing
}

TEST_CASE("launch interval: three launches count as one observation, and six at least as six", "[colbench]") {
  // n, and the rank of the lower end.
  constexpr std::array<std::pair<std::size_t, int>, 8> kTable = {
      {{6, 1}, {8, 1}, {11, 1}, {12, 2}, {18, 3}, {20, 3}, {30, 6}, {40, 9}}};
  for (const auto& [n, rank] : kTable) {
    INFO(n);
    CHECK(launch_interval(first_numbers(n)) == Interval{static_cast<double>(rank), static_cast<double>(n) - rank + 1});
    CHECK(launch_interval(first_numbers(n)).low <= median_interval(first_numbers(n)).low);
  }
  for (std::size_t n = 0; n < kFewestLaunches; ++n)
    CHECK(launch_interval(first_numbers(n)) == Interval{0, std::numeric_limits<double>::infinity()});
}

TEST_CASE("ranks: equal values share the mean of theirs", "[colbench]") {
  CHECK(ranking_of(Values{30, 10, 20}).ranks == Values{3, 1, 2});
  CHECK(ranking_of(Values{5, 1, 5, 5}).ranks == Values{3, 1, 3, 3});
}

TEST_CASE("rank sum: small samples are what counting all orders gives", "[colbench]") {
  CHECK(rank_sum_p(Values{1, 2, 3}, Values{4, 5, 6}) == Approx(0.1));
  CHECK(rank_sum_p(Values{4, 5, 6}, Values{1, 2, 3}) == Approx(0.1));
  std::mt19937_64 random(3);
  for (int i = 0; i < 50; ++i) {
    INFO(i);
    const Values a = uniforms(2 + random() % 6, random), b = uniforms(2 + random() % 6, random);
    CHECK(rank_sum_p(a, b) == Approx(rank_sum_by_enumeration(a, b)));
  }
}

TEST_CASE("rank sum: the critical values are those of the published tables", "[colbench]") {
  // U of the two-sided 5 % test for n a side: Mann and Whitney's table as continued by Auble (1953).
  constexpr std::array<std::pair<int, int>, 4> kTable = {{{5, 2}, {8, 13}, {10, 23}, {20, 127}}};
  for (const auto& [n, critical] : kTable) {
    // b's values each above some of a's, so that b wins exactly `wins` pairs.
    const auto p_of = [&, size = n](int wins) {
      const Values a = first_numbers(static_cast<std::size_t>(size));
      Values b;
      for (int i = 0; i < size; ++i) {
        const int here = std::min(wins, size);
        b.push_back(here + 0.5 + 0.001 * i);
        wins -= here;
      }
      return rank_sum_p(a, b);
    };
    INFO(n);
    CHECK(p_of(critical) <= 0.05);
    CHECK(p_of(critical + 1) > 0.05);
  }
}

TEST_CASE("rank sum: with ties and with many values the approximation is close to what is exact", "[colbench]") {
  const Values a = {1, 2, 2, 3, 5, 5, 7}, b = {2, 5, 6, 7, 7, 8, 9};
  CHECK(rank_sum_p(a, b) == Approx(rank_sum_by_enumeration(a, b)).margin(0.01));
  std::mt19937_64 random(5);
  Values many = uniforms(kMostExact, random), others = uniforms(kMostExact, random);
  for (double& value : others) value += 0.15;
  const double exact = rank_sum_p(many, others);
  CHECK(exact < 0.2);
  CHECK(rank_sum_p(many, others, 1 + 1e-12) == Approx(exact).margin(0.002));  // no longer the exact one
  many.push_back(many.front() + 1e-9);
  CHECK(rank_sum_p(many, others) == Approx(exact).margin(0.02));  // one value more
}

TEST_CASE("rank sum: there is nothing to find where there is nothing", "[colbench]") {
  CHECK(rank_sum_p(Values{}, Values{1, 2}) == 1);
  CHECK(rank_sum_p(Values{1, 2}, Values{}) == 1);
  CHECK(rank_sum_p(Values(10, 3.0), Values(10, 3.0)) == 1);
  CHECK(rank_sum_p(first_numbers(9), first_numbers(9)) == 1);
}

TEST_CASE("rank sum: the smallest p is that of sides that do not overlap", "[colbench]") {
  for (const std::size_t n : {1u, 3u, 4u, 7u, 20u}) {
    Values above = first_numbers(n);
    for (double& value : above) value += 100;
    CHECK(smallest_rank_sum_p(n, n) == Approx(rank_sum_p(first_numbers(n), above)));
  }
  CHECK(smallest_rank_sum_p(5, 5) == Approx(2.0 / 252));
}

TEST_CASE("rank sum: the ratios that it does not refuse are those of the interval", "[colbench]") {
  std::mt19937_64 random(31);
  for (const double factor : {1.0, 3.0}) {
    INFO(factor);
    Values a = uniforms(20, random), b = uniforms(20, random);
    for (double& value : a) value += 1;
    for (double& value : b) value += 1.2;
    const Interval interval = rank_sum_ratios(a, b, factor);
    const auto p_at = [&](double ratio) {
      Values scaled = a;
      for (double& value : scaled) value *= ratio;
      return rank_sum_p(scaled, b, factor + 1e-12);
    };
    CHECK(interval.low < median(b) / median(a));
    CHECK(interval.high > median(b) / median(a));
    CHECK(p_at(interval.low * 1.001) > 0.045);
    CHECK(p_at(interval.high * 0.999) > 0.045);
    CHECK(p_at(interval.low * 0.98) < 0.05);
    CHECK(p_at(interval.high * 1.02) < 0.05);
  }
  CHECK(rank_sum_ratios(first_numbers(8), first_numbers(8), 3) == Interval{0, std::numeric_limits<double>::infinity()});
  CHECK(rank_sum_ratios({}, first_numbers(8)) == Interval{0, std::numeric_limits<double>::infinity()});
}

TEST_CASE("exchange: it is what counting all exchanges gives, with ties too", "[colbench]") {
  std::mt19937_64 random(11);
  for (int i = 0; i < 50; ++i) {
    INFO(i);
    const std::size_t n = 1 + random() % 9;
    Values a = uniforms(n, random), b = uniforms(n, random);
    if (i % 2 == 1) {
      for (double& value : a) value = std::floor(5 * value);
      for (double& value : b) value = std::floor(5 * value);
    }
    CHECK(exchange_p(a, b) == Approx(exchange_by_enumeration(a, b)));
  }
  CHECK(exchange_p(Values{}, Values{}) == 1);
}

TEST_CASE("exchange: what disturbs both sides of a pair does not hide a difference", "[colbench]") {
  Values a, b;
  for (int i = 0; i < 12; ++i) {
    a.push_back(std::pow(2, i));
    b.push_back(1.1 * a.back());
  }
  CHECK(exchange_p(a, b) == Approx(smallest_exchange_p(12)));
  CHECK(rank_sum_p(a, b) > 0.5);
}

TEST_CASE("bootstrap: the same seed gives the same interval, and it lies around the ratio", "[colbench]") {
  std::mt19937_64 random(13);
  Values a = uniforms(20, random), b = uniforms(20, random);
  for (double& value : a) value = 1 + 0.1 * value;
  for (double& value : b) value = 2 + 0.2 * value;
  const Interval interval = ratio_interval(a, b, {.seed = 1});
  CHECK(interval == ratio_interval(a, b, {.seed = 1}));
  CHECK_FALSE(interval == ratio_interval(a, b, {.seed = 2}));
  CHECK(interval.low < median(b) / median(a));
  CHECK(interval.high > median(b) / median(a));
  CHECK(interval.low > 1.85);
  CHECK(interval.high < 2.15);
  CHECK(ratio_interval({}, {}, {}) == Interval{0, std::numeric_limits<double>::infinity()});
}

TEST_CASE("bootstrap: pairs that are drawn together share what they share", "[colbench]") {
  std::mt19937_64 random(17);
  Values a = uniforms(30, random), b = a;
  for (double& value : b) value *= 3;
  const Interval together = ratio_interval(a, b, {});
  CHECK(together.low == Approx(3));
  CHECK(together.high == Approx(3));
}

TEST_CASE("bootstrap: the interval holds the true ratio about as often as it says", "[colbench]") {
  std::mt19937_64 random(19);
  int held = 0;
  constexpr int kTries = 400;
  for (int i = 0; i < kTries; ++i) {
    Values a = uniforms(20, random), b = uniforms(20, random);
    for (double& value : a) value += 1;
    for (double& value : b) value += 1;
    const Interval interval = ratio_interval(a, b, {.resamples = 300, .seed = static_cast<std::uint64_t>(i)});
    if (interval.low <= 1 && 1 <= interval.high) ++held;
  }
  CHECK(held >= kTries * 92 / 100);  // 95 %, less what 400 tries and a percentile interval may lack
  CHECK(held < kTries);
}

TEST_CASE("holm: each p is multiplied by how many are left, and order is kept", "[colbench]") {
  const Values adjusted = holm(Values{0.01, 0.04, 0.03, 0.005});
  CHECK(adjusted[0] == Approx(0.03));
  CHECK(adjusted[1] == Approx(0.06));
  CHECK(adjusted[2] == Approx(0.06));
  CHECK(adjusted[3] == Approx(0.02));
  CHECK(holm(Values{0.6, 0.7}) == Values{1, 1});
  CHECK(holm(Values{0.04}) == Values{0.04});
  CHECK(holm(Values{}).empty());
}

TEST_CASE("rank correlation: same order, opposite order, ties", "[colbench]") {
  const std::vector<double> up = {1, 2, 3, 4}, down = {9, 7, 5, 3}, tied = {1, 2, 2, 4}, flat = {5, 5, 5, 5};
  CHECK(rank_correlation(up, up).value() == Approx(1));
  CHECK(rank_correlation(up, down).value() == Approx(-1));
  // Ranks 1, 2.5, 2.5, 4 against 1 to 4: 4.5 / sqrt(5 * 4.5).
  CHECK(rank_correlation(up, tied).value() == Approx(0.948683298));
  CHECK_FALSE(rank_correlation(up, flat).has_value());
  CHECK_FALSE(rank_correlation(std::vector<double>{1}, std::vector<double>{1}).has_value());
}

TEST_CASE("outliers: those beyond one and a half interquartile ranges are counted, on both sides", "[colbench]") {
  CHECK(tukey_outliers(first_numbers(9)) == 0);
  CHECK(tukey_outliers(Values{1, 2, 3, 4, 5, 6, 7, 8, 100}) == 1);
  CHECK(tukey_outliers(Values{-100, 2, 3, 4, 5, 6, 7, 8, 100, 101}) == 3);
  CHECK(tukey_outliers(Values{1, 2, 3, 4, 5, 6, 7, 8, 13}) == 0);  // quartiles 3 and 7: the fence itself is inside
  CHECK(tukey_outliers(Values{1, 2, 3, 4, 5, 6, 7, 8, 13.1}) == 1);
  CHECK(tukey_outliers(Values{}) == 0);
}

TEST_CASE("deviation: it is the median of the distances from the median", "[colbench]") {
  CHECK(median_deviation(Values{1, 1, 2, 2, 4, 6, 9}) == 1);
  CHECK(median_deviation(Values{3}) == 0);
  CHECK(median_deviation(Values{}) == 0);
}

TEST_CASE("autocorrelation: drifting values have it, alternating ones the opposite, independent ones none",
          "[colbench]") {
  const auto of = [](const Values& values) { return lag1_autocorrelation(std::array{values}); };
  CHECK(of(first_numbers(100)) > 0.95);
  Values alternating(100);
  for (std::size_t i = 0; i < alternating.size(); ++i) alternating[i] = i % 2 == 0 ? 1 : -1;
  CHECK(of(alternating) == Approx(-1));
  std::mt19937_64 random(23);
  CHECK(std::abs(of(uniforms(2000, random))) < 0.06);  // 2.7 standard deviations
  CHECK(of({1}) == 0);
  CHECK(of({2, 2, 2}) == 0);
  // (1, 2), (3, 4): deviations -1.5, -0.5, 0.5, 1.5; products 0.75 and 0.75 over two pairs; squares 5 over four.
  CHECK(lag1_autocorrelation(std::array{Values{1, 2}, Values{3, 4}}) == Approx(0.6));
}

TEST_CASE("autocorrelation: only what is no chance widens a test", "[colbench]") {
  std::mt19937_64 random(29);
  int widened = 0;
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    if (dependence_factor(std::array{uniforms(20, random), uniforms(20, random)}) > 1) ++widened;
  }
  CHECK(widened <= kTries * 8 / 100);  // about 5 % of independent ones
  Values bursts;
  for (int i = 0; i < 20; ++i) bursts.push_back(uniform64(random) + (i / 5 % 2 == 0 ? 0 : 2));
  CHECK(dependence_factor(std::array{bursts, bursts}) > 1.5);
  CHECK(dependence_factor(std::array{first_numbers(20), first_numbers(20)}) == Approx(3));  // held at r = 0.5
  CHECK(dependence_factor(std::array<Values, 2>{}) == 1);
}

namespace {

Cell cell_of(const std::vector<std::vector<double>>& launches) {
  Cell cell;
  int number = 0;
  for (const auto& seconds : launches) {
    cell.launches.push_back({.launch = number++, .seconds = seconds, .start_skew = seconds});
  }
  return cell;
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
  CHECK_FALSE(statistics_of(cell_of({first_numbers(99)})).p99);
  const auto p99 = statistics_of(cell_of({first_numbers(100)})).p99;
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
