#include "colbench/report/facets.hpp"

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::colbench {
namespace {

// What ran, or else what was asked for.
const std::string& ran_or_asked(const std::string& ran, const std::string& asked) {
  return ran.empty() ? asked : ran;
}

std::string root_text(const CellSpec& spec) {
  return spec.root == kRotatingRoot ? "rotate" : std::to_string(spec.root);
}

// Whether the facet says anything about such a cell.
bool applies(const CellSpec& spec, Facet facet) {
  switch (facet) {
    case Facet::algorithm:
      return !is_message(spec.operation);
    case Facet::dtype:
    case Facet::size:
      return spec.operation != Operation::barrier;
    case Facet::op:
      return is_reduction(spec.operation);
    case Facet::root:
      return is_rooted(spec.operation);
    case Facet::place:
      return has_in_place(spec.operation);
    case Facet::cadence:
      return !is_message(spec.operation);
    case Facet::groups:
      return !spec.groups.empty();
    case Facet::pair:
      return spec.pair.has_value();
    case Facet::order:
      return has_order(spec.operation);
    default:
      return true;
  }
}

}  // namespace

bool was_chosen(const Cell& cell) {
  return cell.spec.algorithm == "auto" && !cell.algorithm.empty() && cell.algorithm != "auto";
}

std::string device_text(const Cell& cell) {
  return (cell.fake ? "fake " : "") + std::string(to_string(cell.spec.device));
}

std::string value_of(const Cell& cell, Facet facet) {
  const CellSpec& spec = cell.spec;
  if (!applies(spec, facet)) return "-";
  switch (facet) {
    case Facet::operation:
      return std::string(to_string(spec.operation));
    case Facet::algorithm:
      return tools::one_line(ran_or_asked(cell.algorithm, spec.algorithm)) + (was_chosen(cell) ? "*" : "");
    case Facet::backend:
      return tools::one_line(ran_or_asked(cell.backend, spec.backend));
    case Facet::device:
      return device_text(cell);
    case Facet::dtype:
      return std::string(col::to_string(spec.dtype));
    case Facet::op:
      return std::string(col::to_string(spec.op));
    case Facet::ranks:
      return std::to_string(spec.ranks);
    case Facet::root:
      return root_text(spec);
    case Facet::size:
      return size_text(spec.bytes);
    case Facet::place:
      return spec.in_place ? "in" : "out";
    case Facet::cadence:
      return spec.cadence == Cadence::isolated ? "isol" : std::string(to_string(spec.cadence));
    case Facet::cache:
      return std::string(to_string(spec.cache));
    case Facet::groups:
      return tools::one_line(spec.groups);
    case Facet::pair:
      return fmt::format("{},{}", spec.pair->first, spec.pair->second);
    case Facet::order:
      return std::string(col::to_string(spec.order));
  }
  return "-";
}

std::string words_of(const Cell& cell, Facet facet) {
  const CellSpec& spec = cell.spec;
  if (!applies(spec, facet)) return "";
  switch (facet) {
    case Facet::algorithm:
      return tools::one_line(ran_or_asked(cell.algorithm, spec.algorithm)) +
             (was_chosen(cell) ? " (chosen by the library)" : "");
    case Facet::ranks:
      return tools::counted(static_cast<std::size_t>(spec.ranks), "rank");
    case Facet::root:
      return spec.root == kRotatingRoot ? "rotating root" : "root " + root_text(spec);
    case Facet::place:
      return spec.in_place ? "in place" : "out of place";
    case Facet::cadence:
      return std::string(to_string(spec.cadence));
    case Facet::cache:
      return spec.cache == CacheState::rotate ? "rotating buffers" : fmt::format("{} caches", to_string(spec.cache));
    case Facet::groups:
      return "groups " + value_of(cell, facet);
    case Facet::pair:
      return fmt::format("ranks {} and {}", spec.pair->first, spec.pair->second);
    case Facet::order:
      return spec.order == col::Order::any ? "" : "order " + value_of(cell, facet);
    default:
      return value_of(cell, facet);
  }
}

bool varies(std::span<const Cell> cells, Facet facet) {
  std::string first;
  for (const Cell& cell : cells) {
    // "Without groups" is a value too: one group of all ranks.
    const bool counts = facet == Facet::groups || facet == Facet::pair || applies(cell.spec, facet);
    if (!counts) continue;
    const std::string value = value_of(cell, facet);
    if (first.empty()) first = value;
    if (value != first) return true;
  }
  return false;
}

std::vector<std::string> shared_words(std::span<const Cell> cells) {
  std::vector<std::string> list;
  for (const Facet facet : kFacets) {
    const bool names_rows = facet == Facet::operation || facet == Facet::algorithm || facet == Facet::size;
    if (names_rows || varies(cells, facet)) continue;
    for (const Cell& cell : cells) {
      const std::string words = words_of(cell, facet);
      if (words.empty()) continue;
      const bool granted = words == "hot caches" || words == "cpu";
      if (!granted) list.push_back(words);
      break;
    }
  }
  return list;
}

}  // namespace col::colbench
