// Selection tables as text, in the format of configs/selection.json.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <col/select.hpp>

namespace col::colbench {

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

}  // namespace col::colbench
