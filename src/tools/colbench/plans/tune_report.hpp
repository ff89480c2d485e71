// The results of tuning: as a selection table in the format of configs/selection.json, and in words.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <col/select.hpp>

#include "colbench/plans/tuning.hpp"

namespace col::colbench {

// ---- Selection tables as text ---------------------------------------------------------------------------------------

struct TunedRule {
  SelectionRule rule;
  std::string advantage;  // "1.31 times as fast as ring, the next"
};

// Neighbouring numbers of ranks (3 and 4) with equal rules share these rules. `rules` is ordered by collective and
// backend, then by ranks, then by size.
std::vector<TunedRule> merged_rules(std::vector<TunedRule> rules);

// The text for SelectionTable::parse(). The format has no place for facts about a single rule. They are in the
// evidence, with the number of the rule.
std::string selection_text(std::span<const TunedRule> tuned, const SelectionEvidence& evidence);

// The evidence of such a table (SelectionTable::evidence()), without facts about rules other than number `rule` (from
// 1). The evidence of other tables is unchanged.
std::string evidence_of_rule(const std::string& evidence, std::size_t rule);

// ---- Reports --------------------------------------------------------------------------------------------------------

// A rule for each range. The first one has no lower end, and the last one no upper end: for sizes beyond the measured
// ones, the nearest result is the best that is known. A rule's upper end is the last size at which its algorithm was as
// good as the next one's.
std::vector<TunedRule> rules_of(const TunedSeries& series);

// "allreduce, 4 ranks, shm: up to 12K bde (1.31 times as fast as ring, the next); above rabenseifner (…)".
std::string series_text(const TunedSeries& series);

// The algorithm that another table would take at a size; nothing if it has none.
using OtherChoice = std::function<std::optional<std::string>(const CellSpec& cell)>;
// What would change compared with that table. Sizes with the same change are joined. Empty if nothing would change.
std::vector<std::string> changes_of(const TunedSeries& series, const OtherChoice& other);

}  // namespace col::colbench
