#include "colbench/compare/compare.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "colbench/report/spec_fields.hpp"
#include "colbench/report/values.hpp"
#include "common/report.hpp"
#include "common/text.hpp"
#include "json/json_text.hpp"

namespace col::colbench {
namespace {

// Whether two of them differ in what `value` gives.
template <class Value>
bool varies(const std::vector<CellSpec>& specs, Value value) {
  return std::any_of(specs.begin(), specs.end(),
                     [&](const CellSpec& spec) { return value(spec) != value(specs.front()); });
}

tools::Tone tone_of(Change verdict) {
  return verdict == Change::faster   ? tools::Tone::good
         : verdict == Change::slower ? tools::Tone::bad
                                     : tools::Tone::faint;
}

// "undecided, 3 rows: reason" for each reason, most frequent first.
void add_reasons(tools::Part& part, const std::vector<ComparedCell>& cells) {
  std::map<std::string, std::size_t> counts;
  for (const ComparedCell& cell : cells) {
    if (!cell.why.empty()) ++counts[cell.why];
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  for (const auto& [reason, count] : sorted)
    part.notes.push_back({fmt::format("undecided, {}: {}", tools::counted(count, "row"), reason)});
}

using Json = nlohmann::ordered_json;

Json cell_of(const ComparedCell& cell) {
  const Effect& effect = cell.effect;
  const bool has_interval = std::isfinite(effect.interval.high);
  return {{"spec", core::json_of(cell.spec)},
          {"a", {{"launches", cell.launches_a}, {"median", effect.median_a}, {"ran", cell.ran_a}}},
          {"b", {{"launches", cell.launches_b}, {"median", effect.median_b}, {"ran", cell.ran_b}}},
          {"ratio", effect.ratio},
          {"ratio_low", has_interval ? Json(effect.interval.low) : Json()},
          {"ratio_high", has_interval ? Json(effect.interval.high) : Json()},
          {"p", effect.p},
          {"p_holm", cell.p},
          {"dependence", effect.dependence},
          {"verdict", to_string(cell.verdict)},
          {"why", cell.why.empty() ? Json() : Json(cell.why)}};
}

}  // namespace

std::vector<std::string> row_names(const std::vector<CellSpec>& specs) {
  std::vector<std::string> names;
  if (specs.empty()) return names;
  const bool ranks = varies(specs, [](const CellSpec& spec) { return spec.ranks; });
  const bool roots = varies(specs, [](const CellSpec& spec) { return spec.root; });
  const bool devices = varies(specs, [](const CellSpec& spec) { return spec.device; });
  const bool caches = varies(specs, [](const CellSpec& spec) { return spec.cache; });
  for (const CellSpec& spec : specs) {
    std::string name = text_of(spec);
    if (ranks) name += fmt::format(", {} ranks", spec.ranks);
    if (roots && is_rooted(spec.operation)) {
      name += spec.root == kRotatingRoot ? ", root rotates" : fmt::format(", root {}", spec.root);
    }
    if (devices) name += ", " + std::string(to_string(spec.device));
    if (caches) name += fmt::format(", {}", to_string(spec.cache));
    names.push_back(tools::one_line(name));
  }
  return names;
}

std::string p_text(double p) {
  return p < 0.001 ? "<0.001" : fmt::format("{:.3f}", p);
}

std::string interval_text(const Interval& interval) {
  return std::isfinite(interval.high) ? fmt::format("{:.3f} to {:.3f}", interval.low, interval.high) : "-";
}

std::string comparison_summary(const Comparison& comparison) {
  std::string text = fmt::format("{} compared: {} faster, {} slower, {} undecided",
                                 tools::counted(comparison.cells.size(), "row"), comparison.count(Change::faster),
                                 comparison.count(Change::slower), comparison.count(Change::undecided));
  if (!comparison.left_out.empty()) text += fmt::format("; {} left out", comparison.left_out.size());
  return text;
}

std::string comparison_table(const Comparison& comparison, tools::Style style) {
  std::vector<CellSpec> specs;
  for (const ComparedCell& cell : comparison.cells) specs.push_back(cell.spec);
  const std::vector<std::string> names = row_names(specs);

  tools::Table table{
      .columns = {{"row"}, {"A", true, 1}, {"B", true, 2}, {"B/A", true}, {"95%", true}, {"p", true, 3}, {"verdict"}}};
  for (std::size_t i = 0; i < comparison.cells.size(); ++i) {
    const ComparedCell& cell = comparison.cells[i];
    table.rows.push_back({{names[i]},
                          {time_text(cell.effect.median_a)},
                          {time_text(cell.effect.median_b)},
                          {fmt::format("{:.3f}", cell.effect.ratio)},
                          {interval_text(cell.effect.interval)},
                          {p_text(cell.p)},
                          {std::string(to_string(cell.verdict)), tone_of(cell.verdict)}});
  }
  tools::Part part{.tables = {std::move(table)}};
  add_reasons(part, comparison.cells);
  specs.clear();
  for (const LeftOutCell& cell : comparison.left_out) specs.push_back(cell.spec);
  const std::vector<std::string> left_out = row_names(specs);
  for (std::size_t i = 0; i < left_out.size(); ++i)
    part.notes.push_back({fmt::format("{}: {}", left_out[i], comparison.left_out[i].why)});
  for (const std::string& warning : comparison.warnings) part.notes.push_back({warning});
  part.notes.push_back({fmt::format("{}; a verdict needs {:.3g}% and p <= {:.3g}", comparison_summary(comparison),
                                    100 * comparison.rule.min_effect, comparison.rule.alpha)});
  return report_text(part, style);
}

std::string comparison_json(const Comparison& comparison, const std::string& a, const std::string& b) {
  Json cells = Json::array(), left_out = Json::array();
  for (const ComparedCell& cell : comparison.cells) cells.push_back(cell_of(cell));
  for (const LeftOutCell& cell : comparison.left_out) {
    left_out.push_back({{"spec", core::json_of(cell.spec)}, {"why", tools::clean(cell.why)}});
  }
  const Json json = {{"schema", "colbench-compare"},
                     {"schema_version", 1},
                     {"a", a},
                     {"b", b},
                     {"rule",
                      {{"alpha", comparison.rule.alpha},
                       {"min_effect", comparison.rule.min_effect},
                       {"interleaved", comparison.rule.interleaved},
                       {"resamples", comparison.rule.resamples},
                       {"seed", seed_text(comparison.rule.seed)}}},
                     {"cells", std::move(cells)},
                     {"left_out", std::move(left_out)},
                     {"warnings", comparison.warnings},
                     {"summary", comparison_summary(comparison)}};
  return core::json_text(json, 2) + "\n";
}

}  // namespace col::colbench
