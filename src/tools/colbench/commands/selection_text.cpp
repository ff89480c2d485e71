#include "colbench/commands/selection_text.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr std::string_view kMeasured = ". Measured: ";
constexpr std::string_view kDate = "; date: ";  // as SelectionTable::evidence() has it

bool same_but_for_ranks(const SelectionRule& a, const SelectionRule& b) {
  return a.collective == b.collective && a.min_bytes == b.min_bytes && a.max_bytes == b.max_bytes &&
         a.backend == b.backend && a.power_of_two == b.power_of_two && a.algorithm == b.algorithm;
}

// The rules from `first` on that are for the same collective, backend and ranks.
std::size_t end_of_list(const std::vector<TunedRule>& rules, std::size_t first) {
  std::size_t end = first;
  while (end < rules.size() && rules[end].rule.collective == rules[first].rule.collective &&
         rules[end].rule.backend == rules[first].rule.backend &&
         rules[end].rule.min_ranks == rules[first].rule.min_ranks)
    ++end;
  return end;
}

}  // namespace

std::vector<TunedRule> merged_rules(std::vector<TunedRule> rules) {
  std::vector<TunedRule> merged;
  std::size_t before = 0;  // where the last list in `merged` begins
  for (std::size_t first = 0; first < rules.size();) {
    const std::size_t end = end_of_list(rules, first);
    const std::size_t length = merged.size() - before;
    bool same = !merged.empty() && length == end - first;
    for (std::size_t i = 0; same && i < length; ++i) {
      const SelectionRule& a = merged[before + i].rule;
      const SelectionRule& b = rules[first + i].rule;
      same = same_but_for_ranks(a, b) && a.max_ranks + 1 == b.min_ranks;
    }
    if (!same) before = merged.size();
    for (std::size_t i = 0; first < end; ++first, ++i) {
      if (!same) {
        merged.push_back(std::move(rules[first]));
        continue;
      }
      const int ranks = rules[first].rule.max_ranks;
      merged[before + i].advantage += fmt::format("; on {} ranks {}", ranks, rules[first].advantage);
      merged[before + i].rule.max_ranks = ranks;
    }
  }
  return merged;
}

std::string selection_text(std::span<const TunedRule> tuned, const SelectionEvidence& evidence) {
  std::vector<SelectionRule> rules;
  std::vector<std::string> advantages;
  for (const TunedRule& one : tuned) {
    rules.push_back(one.rule);
    advantages.push_back(fmt::format("rule {}: {}", rules.size(), one.advantage));
  }
  const std::string machine = fmt::format("{}{}{}", evidence.machine, kMeasured, fmt::join(advantages, "; "));
  return selection_to_json(rules, {.machine = tools::one_line(machine),
                                   .date = tools::one_line(evidence.date),
                                   .command = tools::one_line(evidence.command)});
}

std::string evidence_of_rule(const std::string& evidence, std::size_t rule) {
  const std::size_t measured = evidence.find(kMeasured);
  const std::size_t date = evidence.find(kDate, measured);
  if (measured == std::string::npos || date == std::string::npos) return evidence;
  const std::size_t list = measured + kMeasured.size();
  const std::size_t begin = evidence.find(fmt::format("rule {}: ", rule), list);
  if (begin >= date) return evidence;
  const std::size_t end = std::min(evidence.find(fmt::format("; rule {}: ", rule + 1), begin), date);
  return evidence.substr(0, list) + evidence.substr(begin, end - begin) + evidence.substr(date);
}

}  // namespace col::colbench
