#include "colbench/plans/comparison.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/plans/plan_source.hpp"
#include "colbench/report/values.hpp"
#include "colbench/stats/two_samples.hpp"
#include "common/command_line.hpp"
#include "common/text.hpp"

namespace col::colbench {

std::string algorithm_of(const Cell& cell) {
  const bool asked = cell.spec.algorithm != "auto" && cell.spec.algorithm != "all" && !cell.spec.algorithm.empty();
  return asked || cell.algorithm.empty() ? cell.spec.algorithm : cell.algorithm;
}

std::vector<RankedAlgorithm> ranked_algorithms(std::span<const Cell* const> cells) {
  std::vector<RankedAlgorithm> ranked;
  for (const Cell* cell : cells) {
    if (!cell->invalid.empty()) continue;
    RankedAlgorithm algorithm{.cell = cell, .statistics = statistics_of(*cell)};
    if (algorithm.statistics.n > 0) ranked.push_back(algorithm);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const RankedAlgorithm& a, const RankedAlgorithm& b) {
    return a.statistics.median < b.statistics.median;
  });
  std::vector<RankedAlgorithm*> by_model;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    ranked[i].rank = static_cast<int>(i) + 1;
    if (i + 1 < ranked.size()) ranked[i].apart_from_next = ranked[i].statistics.high < ranked[i + 1].statistics.low;
    if (ranked[i].cell->model_seconds) by_model.push_back(&ranked[i]);
  }
  std::stable_sort(by_model.begin(), by_model.end(), [](const RankedAlgorithm* a, const RankedAlgorithm* b) {
    return *a->cell->model_seconds < *b->cell->model_seconds;
  });
  for (std::size_t i = 0; i < by_model.size(); ++i) by_model[i]->model_rank = static_cast<int>(i) + 1;
  return ranked;
}

std::vector<std::vector<const Cell*>> compared_cells(std::span<const Cell> cells) {
  const auto key = [](const Cell& cell) {
    CellSpec spec = cell.spec;
    spec.algorithm.clear();
    return spec;
  };
  std::vector<std::vector<const Cell*>> groups;
  for (const Cell& cell : cells) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& others) { return key(*others.front()) == key(cell); });
    if (group == groups.end())
      groups.push_back({&cell});
    else
      group->push_back(&cell);
  }
  return groups;
}

namespace {

CellSpec as_group(CellSpec spec) {
  spec.ranks = group_size_of(spec);
  return spec;
}

// Nothing for a backend's own algorithm.
std::optional<Verdict> verdict_of(const Cell& cell) {
  const CellSpec spec = as_group(cell.spec);
  try {
    const PlanSource source = PlanSource::find(collective_of(spec.operation).value(), algorithm_of(cell));
    const PlanProblem problem(problem_of(spec, source.spec()));
    if (source.refuse(problem)) return std::nullopt;
    return verify(problem, source.plans(problem));
  } catch (const tools::UsageError&) {
    return std::nullopt;
  }
}

std::string interval_text(const CellStatistics& statistics, bool utf8) {
  if (!statistics.has_interval()) return "-";
  return fmt::format("{}{:.1f}%", utf8 ? "±" : "+-", 100 * statistics.half_width());
}

std::string ratio_text(const Cell& cell, double median) {
  return cell.model_seconds && *cell.model_seconds > 0 ? fmt::format("{:.2f}", median / *cell.model_seconds) : "-";
}

tools::TextRow row_of(const RankedAlgorithm& algorithm, bool chosen, bool utf8) {
  const Cell& cell = *algorithm.cell;
  const auto verdict = verdict_of(cell);
  const auto plan = [&](std::size_t number) { return verdict ? tools::grouped(number) : std::string("-"); };
  const double busbw = bus_bandwidth(cell.spec, group_size_of(cell.spec), algorithm.statistics.median);
  const bool reduces = is_reduction(cell.spec.operation);
  return {{fmt::format("{}{}", algorithm.rank, chosen ? "*" : "")},
          {algorithm_of(cell), chosen ? tools::Tone::good : tools::Tone::plain},
          {time_text(algorithm.statistics.median)},
          {interval_text(algorithm.statistics, utf8)},
          {bandwidth_text(busbw)},
          {time_text(cell.model_seconds)},
          {algorithm.model_rank ? fmt::format("{}", *algorithm.model_rank) : "-"},
          {ratio_text(cell, algorithm.statistics.median)},
          {plan(verdict ? verdict->rounds : 0)},
          {plan(verdict ? verdict->messages : 0)},
          {plan(verdict ? verdict->most_elements_sent : 0)},
          {verdict && reduces ? std::string(to_string(verdict->order)) : "-"}};
}

std::string correlation_line(std::span<const RankedAlgorithm> ranked) {
  std::vector<double> measured, model;
  for (const RankedAlgorithm& algorithm : ranked) {
    if (!algorithm.cell->model_seconds) continue;
    measured.push_back(algorithm.statistics.median);
    model.push_back(*algorithm.cell->model_seconds);
  }
  const auto correlation = rank_correlation(measured, model);
  if (!correlation) return {};
  return fmt::format("model and measurement: rank correlation {:.2f} (Spearman) over {} algorithms", *correlation,
                     measured.size());
}

std::string ties_line(std::span<const RankedAlgorithm> ranked) {
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i + 1 < ranked.size(); ++i) {
    if (!ranked[i].apart_from_next)
      pairs.push_back(fmt::format("{} and {}", algorithm_of(*ranked[i].cell), algorithm_of(*ranked[i + 1].cell)));
  }
  if (pairs.empty()) return ranked.size() > 1 ? "all neighbours are told apart by their intervals" : "";
  return fmt::format("not told apart by their intervals: {}", fmt::join(pairs, "; "));
}

std::string heading(const Cell& cell) {
  CellSpec spec = cell.spec;
  if (!cell.backend.empty()) spec.backend = cell.backend;
  spec.algorithm = "all algorithms";
  return fmt::format("{}, {} ranks{}", text_of(spec), spec.ranks,
                     spec.groups.empty() ? "" : fmt::format(" in groups of {}", group_size_of(spec)));
}

}  // namespace

tools::Table algorithm_ranking(std::span<const Cell* const> cells, const ChoiceOf& choice_of, bool utf8) {
  const std::vector<RankedAlgorithm> ranked = ranked_algorithms(cells);
  const Cell& example = ranked.empty() ? *cells.front() : *ranked.front().cell;
  std::string chosen, choice_line;
  if (const auto choice = choice_of(example)) {
    chosen = choice->algorithm.text();
    const bool there = std::any_of(ranked.begin(), ranked.end(),
                                   [&](const RankedAlgorithm& a) { return algorithm_of(*a.cell) == chosen; });
    choice_line = fmt::format("{}the library would choose {}", there ? "* " : "not measured, but ",
                              tools::one_line(choice->text()));
  }
  // The plan's own numbers go first: colbench draw and explain have them too.
  tools::Table table{.title = heading(example),
                     .columns = {{"#", true},
                                 {"algorithm"},
                                 {"median", true},
                                 {utf8 ? "±" : "+-", true},
                                 {"busbw", true, 1},
                                 {"model", true, 2},
                                 {"rank", true, 3},
                                 {"x model", true},
                                 {"rounds", true, 4},
                                 {"messages", true, 7},
                                 {"sent", true, 6},
                                 {"order", false, 5}}};
  for (const RankedAlgorithm& algorithm : ranked)
    table.rows.push_back(row_of(algorithm, algorithm_of(*algorithm.cell) == chosen, utf8));
  for (const Cell* cell : cells) {
    const std::string& why = !cell->invalid.empty() ? cell->invalid : cell->note;
    if (std::any_of(ranked.begin(), ranked.end(), [&](auto& a) { return a.cell == cell; })) continue;
    table.notes.push_back(
        {fmt::format("{} {}: {}", algorithm_of(*cell), cell->invalid.empty() ? "was not measured" : "is invalid",
                     why.empty() ? "the run ended before" : why)});
  }
  for (std::string& note : std::array{choice_line, correlation_line(ranked), ties_line(ranked)}) {
    if (!note.empty()) table.notes.push_back({std::move(note)});
  }
  return table;
}

}  // namespace col::colbench
