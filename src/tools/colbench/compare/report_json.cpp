#include <cmath>

#include <nlohmann/json.hpp>

#include "colbench/compare/report.hpp"
#include "colbench/report/spec_fields.hpp"
#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

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
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace col::colbench
