#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/p2p/bisect.hpp"
#include "colbench/p2p/heat_map.hpp"
#include "colbench/p2p/outliers.hpp"
#include "common/text.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace col;
using namespace col::colbench;

namespace {

using Slowness = std::function<double(int, int)>;

// Every two ranks take a microsecond times what `slowness` says.
std::vector<PairTime> all_pairs(int ranks, const Slowness& slowness) {
  std::vector<PairTime> times;
  for (int a = 0; a < ranks; ++a) {
    for (int b = a + 1; b < ranks; ++b) {
      const double seconds = 1e-6 * slowness(a, b) * (1 + 0.01 * ((a * 7 + b * 3) % 5));
      times.push_back({a, b, seconds, seconds * 0.99});
    }
  }
  return times;
}

Slowness slow_ranks(std::set<int> slow, double factor) {
  return [=](int a, int b) { return slow.contains(a) || slow.contains(b) ? factor : 1; };
}

std::set<int> ranks_of(const Outliers& outliers) {
  std::set<int> ranks;
  for (const auto& slow : outliers.ranks) ranks.insert(slow.rank);
  return ranks;
}

std::set<RankPair> pairs_of(const Outliers& outliers) {
  std::set<RankPair> pairs;
  for (const auto& slow : outliers.pairs) pairs.emplace(slow.time.first, slow.time.second);
  return pairs;
}

Cell cell_of(const CellSpec& spec, double seconds) {
  Cell cell{.spec = spec, .backend = "shm"};
  LaunchSamples samples;
  for (int i = 0; i < 30; ++i) samples.seconds.push_back(seconds * (1 + 0.0001 * i));
  cell.launches = {samples};
  return cell;
}

Cell pair_cell(Operation operation, int a, int b, std::size_t bytes, double seconds) {
  return cell_of({.operation = operation, .dtype = DType::uint8, .bytes = bytes, .ranks = 8, .pair = std::pair(a, b)},
                 seconds);
}

}  // namespace

TEST_CASE("outliers: pairs that spread a little are all alike", "[colbench]") {
  for (const int ranks : {3, 4, 8, 16}) {
    const Outliers found = find_outliers(ranks, all_pairs(ranks, [](int, int) { return 1.0; }));
    CHECK(found.comparable);
    CHECK(found.ranks.empty());
    CHECK(found.pairs.empty());
    CHECK(has(outlier_text(found, "8-byte messages"), "no pair and no rank is slower"));
  }
}

TEST_CASE("outliers: a slow rank is named, and its pairs are not named once more", "[colbench]") {
  for (const int ranks : {3, 4, 5, 8, 16}) {
    for (int slow = 0; slow < ranks; ++slow) {
      INFO(ranks << " ranks, " << slow << " slow");
      const Outliers found = find_outliers(ranks, all_pairs(ranks, slow_ranks({slow}, 1.5)));
      CHECK(ranks_of(found) == std::set{slow});
      CHECK(found.pairs.empty());
      CHECK(has(outlier_text(found, "x"), fmt::format("rank {} is slow with everybody", slow)));
    }
  }
  CHECK(ranks_of(find_outliers(4, all_pairs(4, slow_ranks({1, 2}, 3)))) == std::set{1, 2});
  CHECK(ranks_of(find_outliers(8, all_pairs(8, slow_ranks({1, 2, 6}, 3)))) == std::set{1, 2, 6});
}

TEST_CASE("outliers: a slow pair between good ranks is named as a pair", "[colbench]") {
  const auto slow_pair = [](int a, int b) { return a == 2 && b == 5 ? 2.0 : 1.0; };
  const Outliers found = find_outliers(8, all_pairs(8, slow_pair));
  CHECK(found.ranks.empty());
  CHECK(pairs_of(found) == std::set<RankPair>{{2, 5}});
  CHECK(has(outlier_text(found, "x"), "ranks 2 and 5 are slow with each other"));
  const auto both = [&](int a, int b) { return a == 0 ? 4.0 : slow_pair(a, b); };
  const Outliers mixed = find_outliers(8, all_pairs(8, both));
  CHECK(ranks_of(mixed) == std::set{0});
  CHECK(pairs_of(mixed) == std::set<RankPair>{{2, 5}});
}

TEST_CASE("outliers: two sockets are no outliers, nor is what only noise may have made slow", "[colbench]") {
  const auto sockets = [](int a, int b) { return a / 4 == b / 4 ? 1.0 : 3.0; };
  const Outliers found = find_outliers(8, all_pairs(8, sockets));
  CHECK(found.ranks.empty());
  CHECK(found.pairs.empty());
  // Twice as slow, but its interval reaches down to the others.
  std::vector<PairTime> noisy = all_pairs(8, [](int a, int b) { return a == 2 && b == 5 ? 2.0 : 1.0; });
  for (PairTime& time : noisy) time.low = 0.9e-6;
  CHECK(find_outliers(8, noisy).pairs.empty());
  // 19 % are within the rule, 30 % are not, unless all spread so much.
  const auto by = [](double factor) { return [=](int a, int b) { return a == 2 && b == 5 ? factor : 1.0; }; };
  CHECK(find_outliers(8, all_pairs(8, by(1.15))).pairs.empty());
  CHECK(find_outliers(8, all_pairs(8, by(1.3))).pairs.size() == 1);
  const auto spread = [&](double factor) {
    return [=](int a, int b) { return a == 2 && b == 5 ? factor : 1 + 0.1 * ((a + b) % 6); };
  };
  CHECK(find_outliers(8, all_pairs(8, spread(1.6))).pairs.empty());
  CHECK(find_outliers(8, all_pairs(8, spread(2.5))).pairs.size() == 1);
}

TEST_CASE("outliers: a pair that was slow in one launch only does not stand out", "[colbench]") {
  Cell cell = pair_cell(Operation::pingpong, 2, 5, 8, 3e-6);
  REQUIRE(pair_time_of(cell));
  CHECK(pair_time_of(cell)->low >= 3e-6);
  for (int launch = 1; launch < 6; ++launch) cell.launches.push_back({.launch = launch, .seconds = {3e-6}});
  cell.launches.push_back({.launch = 6, .seconds = {1e-6, 1e-6, 1e-6}});
  CHECK(pair_time_of(cell)->seconds >= 3e-6);
  CHECK(pair_time_of(cell)->low == Approx(1e-6));
  cell.launches.erase(cell.launches.begin() + 1, cell.launches.begin() + 6);  // too few for an interval
  CHECK(pair_time_of(cell)->low == Approx(1e-6));
  cell.invalid = "wrong data";
  CHECK_FALSE(pair_time_of(cell));
  cell = pair_cell(Operation::pingpong, 2, 5, 8, 3e-6);
  cell.launches.clear();
  CHECK_FALSE(pair_time_of(cell));
}

TEST_CASE("outliers: one pair cannot be compared with anything", "[colbench]") {
  const Outliers found = find_outliers(2, all_pairs(2, [](int, int) { return 1.0; }));
  CHECK_FALSE(found.comparable);
  CHECK(has(outlier_text(found, "x"), "too few pairs"));
  CHECK_FALSE(find_outliers(8, {}).comparable);
}

TEST_CASE("heat map: takes the good cells of its size, whichever rank comes first", "[colbench]") {
  std::vector<Cell> cells = {
      pair_cell(Operation::pingpong, 0, 1, 8, 1e-6), pair_cell(Operation::pingpong, 0, 1, 64, 5e-6),
      pair_cell(Operation::pingpong, 0, 2, 8, 2e-6), pair_cell(Operation::pingpong, 1, 2, 8, 3e-6)};
  cells[2].invalid = "wrong data";
  const HeatMap map = heat_map_of(cells, 3, 8);
  REQUIRE(map.pairs.size() == 2);
  CHECK(*map.seconds(0, 1) == Approx(1e-6).epsilon(0.01));
  CHECK(*map.seconds(2, 1) == *map.seconds(1, 2));
  CHECK_FALSE(map.seconds(0, 2));
  CHECK(value_text(map, 0, 2) == "-");
  CHECK(value_text(map, 2, 1) == "3.00");
  CHECK(title_of(map) == "latency of 8-byte messages, in us");
}

TEST_CASE("heat map: large messages are about bandwidth", "[colbench]") {
  const std::vector<Cell> cells = {pair_cell(Operation::pingpong, 0, 1, 1 << 20, 1e-4)};
  const HeatMap map = heat_map_of(cells, 2, 1 << 20);
  CHECK(title_of(map) == "bandwidth of 1M messages, in GB/s");
  CHECK(value_text(map, 0, 1) == "10.5");
}

TEST_CASE("heat map: shades say how much slower than the median a pair is", "[colbench]") {
  CHECK(shade_of(0.5) == 0);
  CHECK(shade_of(1.05) == 0);
  CHECK(shade_of(1.15) == 1);
  CHECK(shade_of(1.3) == 2);
  CHECK(shade_of(1.7) == 3);
  CHECK(shade_of(10) == 4);
}

TEST_CASE("heat map: numbers are aligned, the slow rank is dark in its row and column", "[colbench]") {
  HeatMap map{.ranks = 12, .bytes = 8, .pairs = all_pairs(12, slow_ranks({3}, 12))};
  const std::string text = heat_map_text(map, {.utf8 = true}, 120);
  INFO(text);
  const std::vector<std::string> lines = lines_of(text);
  REQUIRE(lines.size() == 2 + 12 + 1);
  CHECK(lines[0] == "latency of 8-byte messages, in us");
  std::size_t dark = 0;
  for (std::size_t row = 0; row < 12; ++row) {
    const std::string& line = lines[2 + row];
    CHECK(tools::columns_of(line) <= tools::columns_of(lines[1]) + 1);
    const std::size_t here = occurrences(line, "█");
    CHECK(here == (row == 3 ? 11 : 1));
    dark += here;
  }
  CHECK(dark == 22);
  CHECK_FALSE(has(text, "\x1b["));
  CHECK(has(heat_map_text(map, {.utf8 = true, .colour = true}, 120), "\x1b[31m"));
  const std::string ascii = heat_map_text(map, {}, 120);
  CHECK(std::all_of(ascii.begin(), ascii.end(), [](char letter) { return static_cast<unsigned char>(letter) < 128; }));
}

TEST_CASE("heat map: where there is no room for numbers the shades remain", "[colbench]") {
  const HeatMap map{.ranks = 40, .bytes = 8, .pairs = all_pairs(40, slow_ranks({3}, 3))};
  const std::string text = heat_map_text(map, {.utf8 = true}, 80);
  INFO(text);
  CHECK(has(text, "shades only"));
  for (const std::string& line : lines_of(text)) CHECK(tools::columns_of(line) <= 100);
  CHECK(lines_of(text).size() == 2 + 40 + 1);
}

TEST_CASE("heat map: the page has a shaded cell for every pair, and nothing from outside", "[colbench]") {
  Results results;
  results.run.command = {"colbench", "pairs", "--size", "<8>"};
  results.warnings = {"a <b> & c"};
  const std::vector<HeatMap> maps = {{.ranks = 4, .bytes = 8, .pairs = all_pairs(4, slow_ranks({3}, 3))}};
  const std::string page = pairs_page(results, maps, "rank 3 is slow\nand so on\n");
  CHECK(occurrences(page, "class=\"s4\"") == 6);
  CHECK(has(page, "<p>rank 3 is slow</p>"));
  CHECK(has(page, "a &lt;b&gt; &amp; c"));
  CHECK(has(page, "&lt;8&gt;"));
  for (const char* outside : {"http:", "https:", "src=", "href=\"h", "url("}) CHECK_FALSE(has(page, outside));
}

TEST_CASE("cuts: a bisection of any number of ranks has as many pairs as fit", "[colbench]") {
  for (int ranks = 2; ranks <= 17; ++ranks) {
    INFO(ranks << " ranks");
    const std::vector<RankPair> pairs = pairs_at_once("bisect", ranks);
    CHECK(pairs.size() == static_cast<std::size_t>(ranks / 2));
    std::set<int> seen;
    int largest_first = 0, least_second = ranks;
    for (const auto& [first, second] : pairs) {
      CHECK(seen.insert(first).second);
      CHECK(seen.insert(second).second);
      largest_first = std::max(largest_first, first);
      least_second = std::min(least_second, second);
    }
    CHECK(largest_first < least_second);  // the sides do not mix
  }
}

TEST_CASE("cuts: there is one for each bit of the rank, and no two are the same", "[colbench]") {
  const std::vector<Cut> cuts = cuts_of(8);
  REQUIRE(cuts.size() == 3);
  CHECK(cuts[0].text == "ranks 0-3 against 4-7");
  CHECK(cuts[0].pairs == std::vector<RankPair>{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(cuts[1].groups == "bisect:1");
  CHECK(cuts[1].text == "even ranks against odd");
  CHECK(cuts[1].pairs == std::vector<RankPair>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(cuts[2].pairs == std::vector<RankPair>{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(cuts_of(2).size() == 1);
  for (int ranks = 2; ranks <= 17; ++ranks) {
    for (const Cut& cut : cuts_of(ranks)) {
      INFO(ranks << " ranks, " << cut.groups);
      CHECK_FALSE(cut.pairs.empty());
      std::set<int> seen;
      for (const auto& [first, second] : cut.pairs) {
        CHECK(first < second);
        CHECK(second < ranks);
        CHECK(seen.insert(first).second);  // nobody has two partners at once
        CHECK(seen.insert(second).second);
      }
    }
  }
}

TEST_CASE("cuts: the pairs of the search find any slow rank, with fewer pairs than there are", "[colbench]") {
  for (int ranks = 3; ranks <= 33; ++ranks) {
    const std::vector<RankPair> searched = search_pairs(ranks);
    if (ranks >= 8) CHECK(searched.size() < static_cast<std::size_t>(ranks * (ranks - 1) / 2));
    for (int slow = 0; slow < ranks; ++slow) {
      INFO(ranks << " ranks, " << slow << " slow");
      std::vector<PairTime> times = all_pairs(ranks, slow_ranks({slow}, 2));
      std::erase_if(times, [&](const PairTime& time) {
        return std::find(searched.begin(), searched.end(), RankPair(time.first, time.second)) == searched.end();
      });
      const Outliers found = find_outliers(ranks, times);
      CHECK(ranks_of(found) == std::set{slow});
      CHECK(found.pairs.empty());
    }
  }
}

namespace {

constexpr std::size_t kBytes = 1 << 20;

// A network in which every pair alone needs `alone`, and all of a cut at once `together` each.
std::vector<Cell> cut_cells(int ranks, const Slowness& alone, const std::function<double(const Cut&)>& together) {
  std::vector<Cell> cells;
  const CellSpec spec{.operation = Operation::bidirectional, .dtype = DType::uint8, .bytes = kBytes, .ranks = ranks};
  for (const Cut& cut : cuts_of(ranks)) {
    cells.push_back(cell_of(spec, 1e-3 * together(cut)));
    cells.back().spec.groups = cut.groups;
  }
  for (const auto& [a, b] : search_pairs(ranks)) {
    cells.push_back(cell_of(spec, 1e-3 * alone(a, b)));
    cells.back().spec.pair = std::pair(a, b);
  }
  return cells;
}

}  // namespace

TEST_CASE("bisect: the bandwidth across the cut counts all pairs, both ways", "[colbench]") {
  const auto cells = cut_cells(
      8, [](int, int) { return 1.0; }, [](const Cut&) { return 2.0; });
  const std::vector<CutResult> cuts = cut_results(cells, 8, kBytes);
  REQUIRE(cuts.size() == 3);
  for (const CutResult& cut : cuts) {
    CHECK(cut.together == Approx(4 * 2 * kBytes / 2e-3).epsilon(0.01));
    CHECK(cut.alone == Approx(4 * 2 * kBytes / 1e-3).epsilon(0.01));
    CHECK(cut.best_pair == Approx(2 * kBytes / 1e-3).epsilon(0.01));
  }
  const std::string text = bisect_text(cells, 8, kBytes, {});
  INFO(text);
  CHECK(has(text, "bisection of 8 ranks, 1M messages both ways: 4.1"));
  CHECK(has(text, "50 % of the sum"));
  CHECK(has(text, "no pair and no rank is slower"));
}

TEST_CASE("bisect: a slow rank is found and explains its cuts", "[colbench]") {
  const auto cells = cut_cells(8, slow_ranks({5}, 4), [](const Cut&) { return 4.0; });
  const std::string text = bisect_text(cells, 8, kBytes, {});
  INFO(text);
  CHECK(has(text, "rank 5 is slow with everybody"));
  CHECK_FALSE(has(text, "ranks 1 and 5"));
}

TEST_CASE("bisect: a slow cut whose pairs are good alone is said to share its limit", "[colbench]") {
  const auto cells = cut_cells(
      8, [](int, int) { return 1.0; }, [](const Cut& cut) { return cut.groups == "bisect" ? 3.0 : 1.0; });
  const std::string text = bisect_text(cells, 8, kBytes, {});
  INFO(text);
  CHECK(has(text, "no pair and no rank is slower"));
  CHECK(has(text, "the cut ranks 0-3 against 4-7 is slow"));
  CHECK(has(text, "they share what limits them"));
}

TEST_CASE("bisect: what was not measured is a dash", "[colbench]") {
  std::vector<Cell> cells = cut_cells(
      4, [](int, int) { return 1.0; }, [](const Cut&) { return 1.0; });
  cells[0].invalid = "wrong data";
  cells.pop_back();
  const std::vector<CutResult> cuts = cut_results(cells, 4, kBytes);
  CHECK(cuts[0].together == 0);
  CHECK(has(bisect_text(cells, 4, kBytes, {}), " -"));
}

TEST_CASE("pairs and bisect: a wrong command line is refused before anything starts", "[colbench]") {
  for (const auto command : {&run_pairs, &run_bisect}) {
    CHECK(has(complaint_of(command, {"-n", "1"}), "two ranks"));
    CHECK(has(complaint_of(command, {"--plot", "x.svg"}), "no curves"));
    CHECK(has(complaint_of(command, {"--json", "/no/such/directory/x.json"}), "/no/such/directory"));
    CHECK(complaint_of(command, {"--size", "32X"}) != "nothing");
    CHECK(complaint_of(command, {"allreduce"}) != "nothing");
    CHECK(has(complaint_of(command, {"--sise", "8"}), "--size"));
  }
}
