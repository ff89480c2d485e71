#include "colbench/commands/candidates.hpp"

#include <algorithm>

#include "colbench/commands/choice.hpp"
#include "colbench/results.hpp"

namespace col::colbench {

std::vector<std::string> tuned_variants(const SelectionTable& table, const CellSpec& cell) {
  std::vector<std::string> variants;
  const auto collective = collective_of(cell.operation);
  if (!collective) return variants;
  for (const SelectionRule& rule : table.rules()) {
    const bool has_parameters = rule.algorithm.radix != 0 || rule.algorithm.segment_bytes != 0;
    SelectionQuery query{
        .collective = *collective, .ranks = group_size_of(cell), .bytes = rule.min_bytes, .backend = rule.backend};
    const bool fits = rule.backend.empty() || rule.backend == backend_of(cell.backend);
    if (!has_parameters || !fits || !rule.matches(query)) continue;
    const std::string text = rule.algorithm.text();
    if (std::find(variants.begin(), variants.end(), text) == variants.end()) variants.push_back(text);
  }
  return variants;
}

std::vector<CellSpec> with_tuned_variants(const std::vector<CellSpec>& cells) {
  std::vector<CellSpec> all;
  for (const CellSpec& cell : cells) {
    all.push_back(cell);
    if (cell.algorithm != "all") continue;
    for (const std::string& variant : tuned_variants(SelectionTable::built_in(), cell)) {
      all.push_back(cell);
      all.back().algorithm = variant;
    }
  }
  return all;
}

}  // namespace col::colbench
