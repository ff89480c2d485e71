#include "cases.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace col::test {

std::vector<Mode> modes_of(Collective collective) {
  if (!row_of(collective).has_data()) return {Mode{}};
  std::vector<Mode> modes = {{.in_place = false}, {.in_place = true}};
  if (row_of(collective).reduces()) {
    modes.push_back({.in_place = false, .widens = true});
    modes.push_back({.in_place = true, .widens = true});
    modes.push_back({.in_place = false, .widens = true, .wide_input = true});
  }
  return modes;
}

std::vector<std::size_t> counts_for(int size) {
  const auto p = static_cast<std::size_t>(size);
  std::vector<std::size_t> counts = {0, 1, p - 1, p, p + 1, 101};
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<std::size_t> blocks_for(Collective collective, int size, int shape, bool symmetric, std::mt19937& random) {
  const auto p = static_cast<std::size_t>(size);
  const std::size_t rows = row_of(collective).counts == BlockCounts::pairs ? p : 1;
  std::vector<std::size_t> counts(rows * p, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < p; ++i) {
      std::size_t& count = counts[row * p + i];
      switch (shape) {
        case 0:
          break;
        case 1:
          count = i == (row + p / 2) % p ? 13 : 0;
          break;
        case 2:
          count = (row + i) % p;
          break;
        default:
          count = random() % 3 == 0 ? 0 : random() % 9;
      }
      if (symmetric && i < row) count = counts[i * p + row];
    }
  }
  return counts;
}

PlanProblem::Spec spec_of(Collective collective, int size, int root, std::size_t what, const Mode& mode,
                          std::mt19937& random) {
  PlanProblem::Spec spec{.collective = collective,
                         .size = size,
                         .root = root,
                         .widens = mode.widens,
                         .wide_input = mode.wide_input,
                         .in_place = mode.in_place};
  if (row_of(collective).has_counts())
    spec.counts = blocks_for(collective, size, static_cast<int>(what), mode.in_place, random);
  else
    spec.count = what;
  return spec;
}

std::vector<int> random_nodes(int size, std::mt19937& random) {
  std::vector<int> nodes;
  const unsigned kind = random() % 4;
  const unsigned most = 1 + random() % 8;
  for (int rank = 0; kind != 0 && rank < size; ++rank) {
    const int last = nodes.empty() ? 0 : nodes.back();
    if (kind == 1)
      nodes.push_back(last + (random() % most == 0 ? 1 : 0));
    else
      nodes.push_back(static_cast<int>((kind == 2 ? static_cast<unsigned>(rank) : random()) % most));
  }
  return nodes;
}

bool needs_nodes(const Algorithm& algorithm) {
  return algorithm.name.starts_with("two_level");
}

const Algorithm& algorithm(Collective collective, std::string_view name) {
  const Algorithm* const found = find_algorithm(collective, name);
  if (found == nullptr) throw std::logic_error(fmt::format("no algorithm {} of {}", name, to_string(collective)));
  return *found;
}

std::vector<PlanParameters> parameters_of(const Algorithm& algorithm) {
  std::vector<PlanParameters> all = {{}};
  const bool takes_radix = algorithm.parameters.find("radix") != std::string_view::npos;
  const bool takes_segment = algorithm.parameters.find("segment") != std::string_view::npos;
  if (takes_radix) {
    for (const int radix : {2, 3, 4, 5, 9}) all.push_back({.radix = radix});
  }
  if (takes_segment) {
    for (const std::size_t segment : {1u, 2u, 5u, 1000u}) all.push_back({.radix = 0, .segment = segment});
  }
  if (takes_radix && takes_segment) all.push_back({.radix = 3, .segment = 2});
  return all;
}

std::string describe(const Algorithm& algorithm, const PlanProblem::Spec& spec) {
  std::string text = fmt::format("{} {}, {} ranks", to_string(algorithm.collective), algorithm.name, spec.size);
  if (row_of(spec.collective).rooted) text += fmt::format(", root {}", spec.root);
  if (row_of(spec.collective).has_counts())
    text += fmt::format(
        ", counts {}",
        fmt::join(spec.counts.begin(),
                  spec.counts.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(spec.counts.size(), 64)),
                  " "));
  else
    text += fmt::format(", count {}", spec.count);
  if (!spec.node_of_rank.empty()) text += fmt::format(", on nodes {}", fmt::join(spec.node_of_rank, " "));
  if (spec.in_place) text += ", in place";
  if (spec.widens) text += ", widens";
  if (spec.wide_input) text += ", wide input";
  if (spec.parameters.radix != 0) text += fmt::format(", radix {}", spec.parameters.radix);
  if (spec.parameters.segment != 0) text += fmt::format(", segment {}", spec.parameters.segment);
  return text;
}

std::uint32_t random_seed() {
  return std::random_device{}();
}

}  // namespace col::test
