#include "colbench/compare/compare.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "colbench/machine/latency.hpp"
#include "colbench/stats/sample.hpp"
#include "colbench/stats/two_samples.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

struct Sides {
  std::vector<double> a, b;
};

// Each value over the median of both sides' values around it. That level is the same for both values of a pair and does
// not depend on which of them is A's: exchanging them stays possible.
Sides without_shared_noise(std::span<const double> a, std::span<const double> b) {
  constexpr std::size_t kPairs = 3;
  Sides rest;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t width = std::min(kPairs, a.size());
    const std::size_t first = std::min(i > 0 ? i - 1 : 0, a.size() - width);
    std::vector<double> around(a.begin() + static_cast<std::ptrdiff_t>(first),
                               a.begin() + static_cast<std::ptrdiff_t>(first + width));
    around.insert(around.end(), b.begin() + static_cast<std::ptrdiff_t>(first),
                  b.begin() + static_cast<std::ptrdiff_t>(first + width));
    const double level = median_in_place(around);
    rest.a.push_back(a[i] / level);
    rest.b.push_back(b[i] / level);
  }
  return rest;
}

std::string shown(const std::string& value) {
  return value.empty() ? "unknown" : value;
}

std::string value_in(const RunFacts& run, const std::string& name) {
  const auto found = std::find_if(run.environment.begin(), run.environment.end(),
                                  [&](const auto& variable) { return variable.first == name; });
  return found == run.environment.end() ? "not set" : fmt::format("'{}'", found->second);
}

// How the data of a run's cells were checked: "sample", or "off, sample".
std::string checks_of(const Results& results) {
  std::set<std::string> modes;
  for (const Cell& cell : results.cells) {
    if (!cell.launches.empty()) modes.insert(cell.check.mode);
  }
  std::string text;
  for (const std::string& mode : modes) text += (text.empty() ? "" : ", ") + mode;
  return text;
}

// Why a cell cannot be compared; empty when it can.
std::string why_unusable(const Cell& cell, std::string_view side) {
  if (!cell.invalid.empty()) return fmt::format("invalid in {}: {}", side, cell.invalid);
  if (cell.check.wrong > 0) return fmt::format("wrong data in {}: {}", side, cell.check.first);
  const std::vector<double> medians = launch_medians(cell);
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
  const auto [of_a, of_b] = rule.interleaved ? paired_medians(a, b) : std::pair(launch_medians(a), launch_medians(b));
  ComparedCell cell{
      .spec = a.spec, .launches_a = of_a.size(), .launches_b = of_b.size(), .ran_a = ran(a), .ran_b = ran(b)};
  if (!of_a.empty()) cell.effect = effect_of(of_a, of_b, rule);
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
    if (cell.verdict != Change::undecided) continue;
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

Results half_of(const Results& results, int parity) {
  Results half = results;
  half.run.launches = (results.run.launches + 1 - parity) / 2;
  for (Cell& cell : half.cells) {
    std::erase_if(cell.launches, [&](const LaunchSamples& launch) { return launch.launch % 2 != parity; });
    for (LaunchSamples& launch : cell.launches) launch.launch /= 2;
  }
  return half;
}

}  // namespace

std::string_view to_string(Change verdict) {
  return verdict == Change::faster ? "faster" : verdict == Change::slower ? "slower" : "undecided";
}

Effect effect_of(std::span<const double> a, std::span<const double> b, const Rule& rule) {
  Sides sides{{a.begin(), a.end()}, {b.begin(), b.end()}};
  Effect effect;
  effect.median_a = median(sides.a);
  effect.median_b = median(sides.b);
  if (rule.interleaved) {
    sides = without_shared_noise(a, b);
    effect.p = exchange_p(sides.a, sides.b);
    effect.smallest_p = smallest_exchange_p(a.size());
  } else {
    effect.dependence = dependence_factor(std::array{sides.a, sides.b});
    effect.p = rank_sum_p(a, b, effect.dependence);
    effect.smallest_p = smallest_rank_sum_p(a.size(), b.size());
  }
  effect.ratio = median(sides.b) / median(sides.a);
  effect.interval = rule.interleaved
                        ? ratio_interval(sides.a, sides.b, {.resamples = rule.resamples, .seed = rule.seed})
                        : rank_sum_ratios(a, b, kLaunchesPerObservation);
  return effect;
}

Change verdict_of(const Effect& effect, double p, const Rule& rule) {
  if (p > rule.alpha) return Change::undecided;
  if (effect.ratio >= 1 + rule.min_effect && effect.interval.low > 1) return Change::slower;
  if (effect.ratio <= 1 / (1 + rule.min_effect) && effect.interval.high < 1) return Change::faster;
  return Change::undecided;
}

std::size_t fewest_launches(std::size_t tests, const Rule& rule) {
  std::size_t launches = 1;
  const auto is_enough = [&] {
    const double smallest = rule.interleaved ? smallest_exchange_p(launches) : smallest_rank_sum_p(launches, launches);
    if (smallest * static_cast<double>(std::max<std::size_t>(tests, 1)) > rule.alpha) return false;
    const std::vector<double> any(launches, 1.0);
    return rule.interleaved || std::isfinite(rank_sum_ratios(any, any, kLaunchesPerObservation).high);
  };
  while (!is_enough()) ++launches;
  return launches;
}

std::vector<std::string> differences(const Results& a, const Results& b) {
  std::vector<std::string> lines;
  const auto differ = [&](std::string_view what, const std::string& of_a, const std::string& of_b) {
    if (of_a != of_b) lines.push_back(fmt::format("different {}: A {}, B {}", what, shown(of_a), shown(of_b)));
  };
  const RunFacts &run_a = a.run, &run_b = b.run;
  differ("host", run_a.host, run_b.host);
  differ("CPU", run_a.cpu, run_b.cpu);
  differ("number of usable CPUs", std::to_string(run_a.cpus), std::to_string(run_b.cpus));
  differ("kernel", run_a.kernel, run_b.kernel);
  differ("GPUs", run_a.gpus, run_b.gpus);
  differ("NCCL", run_a.nccl, run_b.nccl);
  differ("frequency governor", run_a.governor, run_b.governor);
  differ("number of ranks", std::to_string(run_a.ranks), std::to_string(run_b.ranks));
  differ("start of samples", run_a.sync, run_b.sync);
  differ("number of launches", std::to_string(run_a.launches), std::to_string(run_b.launches));
  differ("target interval", fmt::format("{:.3g}%", 100 * run_a.target_interval),
         fmt::format("{:.3g}%", 100 * run_b.target_interval));
  differ("check of data", checks_of(a), checks_of(b));

  std::set<std::string> names;
  for (const auto& variable : run_a.environment) names.insert(variable.first);
  for (const auto& variable : run_b.environment) names.insert(variable.first);
  for (const std::string& name : names) differ(name, value_in(run_a, name), value_in(run_b, name));

  if (!a.ended_early.empty()) lines.push_back("A ended early: " + a.ended_early);
  if (!b.ended_early.empty()) lines.push_back("B ended early: " + b.ended_early);
  return lines;
}

std::size_t Comparison::count(Change verdict) const {
  return static_cast<std::size_t>(
      std::count_if(cells.begin(), cells.end(), [&](const ComparedCell& cell) { return cell.verdict == verdict; }));
}

std::pair<std::vector<double>, std::vector<double>> paired_medians(const Cell& a, const Cell& b) {
  std::pair<std::vector<double>, std::vector<double>> pairs;
  for (const LaunchSamples& launch : a.launches) {
    const auto other = std::find_if(b.launches.begin(), b.launches.end(),
                                    [&](const LaunchSamples& candidate) { return candidate.launch == launch.launch; });
    if (other == b.launches.end() || launch.seconds.empty() || other->seconds.empty()) continue;
    pairs.first.push_back(median(launch.seconds));
    pairs.second.push_back(median(other->seconds));
  }
  return pairs;
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
  return cell.verdict == Change::slower && cell.effect.ratio > 1 + over;
}

std::pair<Results, Results> split_alternating(const Results& results) {
  return {half_of(results, 0), half_of(results, 1)};
}

}  // namespace col::colbench
