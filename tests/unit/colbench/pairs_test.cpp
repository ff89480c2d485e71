#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/p2p/heat_map.hpp"
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

std::set<std::pair<int, int>> pairs_of(const Outliers& outliers) {
  std::set<std::pair<int, int>> pairs;
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
  CHECK(pairs_of(found) == std::set<std::pair<int, int>>{{2, 5}});
  CHECK(has(outlier_text(found, "x"), "ranks 2 and 5 are slow with each other"));
  const auto both = [&](int a, int b) { return a == 0 ? 4.0 : slow_pair(a, b); };
  const Outliers mixed = find_outliers(8, all_pairs(8, both));
  CHECK(ranks_of(mixed) == std::set{0});
  CHECK(pairs_of(mixed) == std::set<std::pair<int, int>>{{2, 5}});
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
  const std::string text = heat_map_text(map, {.utf8 = true, .columns = 120});
  INFO(text);
  const std::vector<std::string> lines = lines_of(text);
  REQUIRE(lines.size() == 3 + 12 + 1);
  CHECK(lines[0] == "latency of 8-byte messages, in us");
  std::size_t dark = 0;
  for (std::size_t row = 0; row < 12; ++row) {
    const std::string& line = lines[3 + row];
    CHECK(tools::columns_of(line) <= tools::columns_of(lines[2]));
    const std::size_t here = occurrences(line, "█");
    CHECK(here == (row == 3 ? 11 : 1));
    dark += here;
  }
  CHECK(dark == 22);
  CHECK_FALSE(has(text, "\x1b["));
  CHECK(has(heat_map_text(map, {.utf8 = true, .colour = true, .columns = 120}), "\x1b[31m"));
  const std::string ascii = heat_map_text(map, {.columns = 120});
  CHECK(std::all_of(ascii.begin(), ascii.end(), [](char letter) { return static_cast<unsigned char>(letter) < 128; }));
}

TEST_CASE("heat map: where there is no room for numbers the shades remain", "[colbench]") {
  const HeatMap map{.ranks = 40, .bytes = 8, .pairs = all_pairs(40, slow_ranks({3}, 3))};
  const std::string text = heat_map_text(map, {.utf8 = true, .columns = 80});
  INFO(text);
  CHECK(has(text, "shades only"));
  for (const std::string& line : lines_of(text)) CHECK(tools::columns_of(line) <= 100);
  CHECK(lines_of(text).size() == 1 + 40 + 1);
}

TEST_CASE("heat map: on a page, slow pairs are marked, and not by colour alone", "[colbench]") {
  const HeatMap map{.ranks = 4, .bytes = 8, .pairs = all_pairs(4, slow_ranks({3}, 3))};
  const tools::Table table = heat_map_table(map, {.utf8 = true});
  CHECK((table.rows.size() == 4 && table.columns.size() == 5));
  std::size_t bad = 0;
  for (const tools::TextRow& row : table.rows) {
    for (const tools::TextCell& cell : row) {
      CHECK((cell.tone == tools::Tone::bad) == has(cell.text, "█"));
      bad += cell.tone == tools::Tone::bad ? 1 : 0;
    }
  }
  CHECK(bad == 6);
  const std::string page = tools::html_page({.tool = "colbench", .parts = {{.title = "Maps", .tables = {table}}}});
  CHECK(occurrences(page, "<td class=\"bad number\">█") == 6);
  CHECK(occurrences(page, "<th scope=\"row\"") == 4);
}

TEST_CASE("pairs: a wrong command line is refused before anything starts", "[colbench]") {
  CHECK(has(complaint_of(&run_pairs, {"-n", "1"}), "two ranks"));
  CHECK(has(complaint_of(&run_pairs, {"--plot", "x.svg"}), "no curves"));
  CHECK(has(complaint_of(&run_pairs, {"--json", "/no/such/directory/x.json"}), "/no/such/directory"));
  CHECK(complaint_of(&run_pairs, {"--size", "32X"}) != "nothing");
  CHECK(complaint_of(&run_pairs, {"allreduce"}) != "nothing");
  CHECK(has(complaint_of(&run_pairs, {"--sise", "8"}), "--size"));
}
