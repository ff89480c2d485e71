#include "colbench/compare/compare.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "colbench/compare/differences.hpp"
#include "colbench/machine/probe.hpp"
#include "colbench/stats/holm.hpp"
#include "colbench/stats/quantile.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

struct Launches {
  std::vector<int> numbers;
  std::vector<double> medians;
};

Launches launches_of(const Cell& cell) {
  Launches launches;
  for (const LaunchSamples& launch : cell.launches) {
    if (launch.seconds.empty()) continue;
    launches.numbers.push_back(launch.launch);
    launches.medians.push_back(median(launch.seconds));
  }
  return launches;
}

// The medians of `launches` whose numbers are in `numbers` too.
std::vector<double> common_medians(const Launches& launches, const std::vector<int>& numbers) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < launches.numbers.size(); ++i) {
    if (std::find(numbers.begin(), numbers.end(), launches.numbers[i]) != numbers.end()) {
      medians.push_back(launches.medians[i]);
    }
  }
  return medians;
}

// Why a cell cannot be compared; empty when it can.
std::string why_unusable(const Cell& cell, std::string_view side) {
  if (!cell.invalid.empty()) return fmt::format("invalid in {}: {}", side, cell.invalid);
  if (cell.check.wrong > 0) return fmt::format("wrong data in {}: {}", side, cell.check.first);
  const std::vector<double> medians = launches_of(cell).medians;
  if (medians.empty()) {
    return fmt::format("not measured in {}{}{}", side, cell.note.empty() ? "" : ": ", cell.note);
  }
  const bool positive = std::all_of(medians.begin(), medians.end(), [](double seconds) { return seconds > 0; });
  return positive ? "" : fmt::format("a launch of {} took no time at all", side);
}

std::string ran(const Cell& cell) {
  if (is_message(cell.spec.operation) || cell.algorithm.empty()) return cell.backend;
  return fmt::format("{} over {}", cell.algorithm, cell.backend);
}

ComparedCell compared(const Cell& a, const Cell& b, const Rule& rule) {
  Launches of_a = launches_of(a), of_b = launches_of(b);
  if (rule.interleaved) {
    const std::vector<double> medians = common_medians(of_a, of_b.numbers);
    of_b.medians = common_medians(of_b, of_a.numbers);
    of_a.medians = medians;
  }
  ComparedCell cell{.spec = a.spec,
                    .launches_a = of_a.medians.size(),
                    .launches_b = of_b.medians.size(),
                    .ran_a = ran(a),
                    .ran_b = ran(b)};
  if (!of_a.medians.empty()) cell.effect = effect_of(of_a.medians, of_b.medians, rule);
  return cell;
}

void decide(std::vector<ComparedCell>& cells, const Rule& rule) {
  std::vector<double> p;
  for (const ComparedCell& cell : cells) p.push_back(cell.effect.p);
  const std::vector<double> adjusted = holm(p);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    ComparedCell& cell = cells[i];
    cell.p = adjusted[i];
    cell.verdict = verdict_of(cell.effect, cell.p, rule);
    if (cell.verdict != Verdict::undecided) continue;
    const bool can_be_sure = cell.effect.smallest_p * static_cast<double>(cells.size()) <= rule.alpha;
    if (!std::isfinite(cell.effect.interval.high) || (cell.p > rule.alpha && !can_be_sure)) {
      cell.why = fmt::format("too few launches: at least {} a side", fewest_launches(cells.size(), rule));
    } else if (cell.p <= rule.alpha) {
      cell.why = fmt::format("a difference, but not surely one of {:.3g}%", 100 * rule.min_effect);
    }
  }
}

// Every finding about rows that a reader of the verdicts must know.
std::vector<std::string> remarks(const std::vector<ComparedCell>& cells) {
  std::vector<std::string> lines;
  std::size_t dependent = 0;
  for (const ComparedCell& cell : cells) {
    if (cell.effect.dependence > 1) ++dependent;
    if (cell.ran_a == cell.ran_b) continue;
    lines.push_back(fmt::format("{}: A ran {}, B ran {}", text_of(cell.spec), cell.ran_a, cell.ran_b));
  }
  if (dependent > 0) {
    lines.push_back(
        fmt::format("in {} launches resemble the ones before them: the machine's speed drifted; p allows "
                    "for it, in part",
                    tools::counted(dependent, "row")));
  }
  return lines;
}

}  // namespace

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(cells.begin(), cells.end(), [&](const ComparedCell& cell) { return cell.verdict == verdict; }));
}

Comparison compare(const Results& a, const Results& b, const Rule& rule) {
  Comparison comparison{.rule = rule};
  std::vector<bool> matched(b.cells.size());
  for (const Cell& cell : a.cells) {
    std::size_t other = 0;
    while (other < b.cells.size() && (matched[other] || !(b.cells[other].spec == cell.spec))) ++other;
    if (other == b.cells.size()) {
      comparison.left_out.push_back({cell.spec, LeftOutCell::Reason::only_in_a, "only in A"});
      continue;
    }
    matched[other] = true;
    std::string why = why_unusable(cell, "A");
    if (why.empty()) why = why_unusable(b.cells[other], "B");
    if (why.empty()) {
      comparison.cells.push_back(compared(cell, b.cells[other], rule));
    } else {
      comparison.left_out.push_back({cell.spec, LeftOutCell::Reason::unusable, why});
    }
  }
  for (std::size_t i = 0; i < b.cells.size(); ++i) {
    if (!matched[i]) comparison.left_out.push_back({b.cells[i].spec, LeftOutCell::Reason::only_in_b, "only in B"});
  }
  comparison.warnings = differences(a, b);
  // What made fixed work slower may have done so to any row.
  if (const double state = state_difference(a, b).value_or(0); state > rule.min_effect) {
    comparison.rule.min_effect = state;
    comparison.warnings.push_back(
        fmt::format("fixed work beside the ranks took {:.1f}% more time in one of the runs: the machine was in another "
                    "state, and smaller differences are none",
                    100 * state));
  }
  decide(comparison.cells, comparison.rule);
  for (std::string& line : remarks(comparison.cells)) comparison.warnings.push_back(std::move(line));
  return comparison;
}

bool is_regression(const ComparedCell& cell, double over) {
  return cell.verdict == Verdict::slower && cell.effect.ratio > 1 + over;
}

}  // namespace col::colbench
