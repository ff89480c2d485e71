// Reads selection tables; docs/selection.md has the schema.
#include <array>
#include <utility>

#include <fmt/format.h>

#include <col/select.hpp>

#include "core/byte_size.hpp"
#include "core/text_file.hpp"
#include "group/select/built_in.hpp"
#include "group/select/collective_name.hpp"
#include "json/strict_json.hpp"

namespace col {
namespace {

using core::JsonPlace;

constexpr std::size_t kTableVersion = 1;
constexpr std::size_t kMostRanks = std::numeric_limits<int>::max();
constexpr std::size_t kMostBytes = std::numeric_limits<std::size_t>::max();

// A size: a number of bytes, or a text such as "64K".
std::size_t read_bytes(const JsonPlace& place) {
  if (!place.is_text()) return place.number(0, kMostBytes);
  const auto bytes = core::parse_bytes(place.text());
  if (!bytes) place.fail(fmt::format("should be a size such as \"64K\", and is {}", core::in_quotes(place.text())));
  return *bytes;
}

// [least, most], both inclusive; null stands for "no limit" at either end.
template <class T, class Read>
void read_range(const JsonPlace& place, T& least, T& most, Read read) {
  if (place.size("two: the least and the most") != 2) place.fail("should be a list of two: the least and the most");
  if (!place.at(0).is_null()) least = static_cast<T>(read(place.at(0)));
  if (!place.at(1).is_null()) most = static_cast<T>(read(place.at(1)));
  if (least > most) place.fail(fmt::format("its least, {}, is more than its most, {}", least, most));
}

SelectionRule read_rule(const JsonPlace& place) {
  constexpr std::array<std::string_view, 6> kMembers = {"collective", "algorithm", "ranks",
                                                        "bytes",      "backend",   "power_of_two"};
  place.expect_members(kMembers);
  SelectionRule rule;
  const std::string& name = place["collective"].text();
  const auto collective = group::find_collective(name);
  if (!collective)
    place["collective"].fail(
        fmt::format("unknown collective {}{}", core::in_quotes(name), group::collective_hint(name)));
  rule.collective = *collective;
  if (place.has("ranks")) {
    read_range(place["ranks"], rule.min_ranks, rule.max_ranks,
               [](const JsonPlace& end) { return end.number(1, kMostRanks); });
  }
  if (place.has("bytes")) read_range(place["bytes"], rule.min_bytes, rule.max_bytes, read_bytes);
  if (place.has("backend")) {
    rule.backend = place["backend"].text();
    if (rule.backend.empty()) place["backend"].fail("should be a backend such as \"shm\", and is empty");
  }
  if (place.has("power_of_two")) rule.power_of_two = place["power_of_two"].flag();
  try {
    rule.algorithm = AlgorithmSpec::parse(place["algorithm"].text());
  } catch (const Error& error) {
    place["algorithm"].fail(error.message());
  }
  return rule;
}

std::string read_evidence(const JsonPlace& root) {
  if (!root.has("evidence")) return "not recorded";
  constexpr std::array<std::string_view, 3> kMembers = {"machine", "date", "command"};
  const JsonPlace evidence = root["evidence"];
  evidence.expect_members(kMembers);
  std::string text;
  for (const std::string_view name : kMembers)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, evidence[name].text());
  return text;
}

}  // namespace

SelectionTable SelectionTable::parse(std::string_view text, std::string source) {
  const core::JsonDocument document = core::JsonDocument::parse(text, fmt::format("selection table ({})", source));
  const JsonPlace root = document.root();
  // Before all else: another version may have other members.
  const std::size_t version = root["version"].number(0, kMostRanks);
  if (version != kTableVersion)
    root["version"].fail(fmt::format("is {}, and this version of col reads {}", version, kTableVersion));
  constexpr std::array<std::string_view, 3> kMembers = {"version", "rules", "evidence"};
  root.expect_members(kMembers);
  SelectionTable table;
  table.source_ = std::move(source);
  table.evidence_ = read_evidence(root);
  const JsonPlace rules = root["rules"];
  const std::size_t count = rules.size("rules");
  if (count == 0) rules.fail("should have a rule at least");
  for (std::size_t i = 0; i < count; ++i) table.rules_.push_back(read_rule(rules.at(i)));
  return table;
}

SelectionTable SelectionTable::load(const std::string& path) {
  return parse(core::read_text_file(path, "selection table"), path);
}

const SelectionTable& SelectionTable::built_in() {
  static const SelectionTable table = [] {
    using Ranks = group::BuiltInRule::Ranks;
    SelectionTable made;
    made.source_ = "built in";
    made.evidence_ = group::kBuiltInEvidence;
    for (const group::BuiltInRule& rule : group::kBuiltInRules) {
      const bool any = rule.ranks == Ranks::any;
      made.rules_.push_back({.collective = rule.collective,
                             .min_ranks = rule.min_ranks,
                             .max_ranks = rule.max_ranks,
                             .min_bytes = rule.min_bytes,
                             .max_bytes = rule.max_bytes,
                             .backend = rule.backend,
                             .power_of_two = any ? std::nullopt : std::optional(rule.ranks == Ranks::powers_of_two),
                             .algorithm = AlgorithmSpec::parse(rule.algorithm)});
    }
    return made;
  }();
  return table;
}

}  // namespace col
