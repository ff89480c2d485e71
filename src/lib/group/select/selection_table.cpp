// Reads and writes selection tables; docs/selection.md has the schema.
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/select.hpp>

#include "core/byte_size.hpp"
#include "core/joined.hpp"
#include "core/text_file.hpp"
#include "group/select/built_in.hpp"
#include "group/select/collective_name.hpp"
#include "json/json_fields.hpp"

namespace col {
namespace {

using core::JsonBuilder;
using core::JsonPlace;

constexpr int kTableVersion = 1;
constexpr int kMostRanks = std::numeric_limits<int>::max();
constexpr std::size_t kMostBytes = std::numeric_limits<std::size_t>::max();

struct RuleCollective {
  void write(JsonBuilder& out, Collective collective) const { out.add(to_string(collective)); }
  void read(const JsonPlace& place, Collective& collective) const {
    const std::string& name = place.text();
    const auto found = group::find_collective(name);
    if (!found) place.fail(fmt::format("unknown collective {}{}", core::in_quotes(name), group::collective_hint(name)));
    collective = *found;
  }
};

struct RuleAlgorithm {
  void write(JsonBuilder& out, const AlgorithmSpec& algorithm) const { out.add(algorithm.text()); }
  void read(const JsonPlace& place, AlgorithmSpec& algorithm) const {
    try {
      algorithm = AlgorithmSpec::parse(place.text());
    } catch (const Error& error) {
      place.fail(error.message());
    }
  }
};

struct RuleBackend {
  void read(const JsonPlace& place, std::string& backend) const {
    backend = place.text();
    if (backend.empty()) place.fail("should be a backend such as \"shm\", and is empty");
  }
};

// A size: a number of bytes, or a text such as "64K".
struct SizeText {
  void write(JsonBuilder& out, std::size_t bytes) const {
    if (bytes == 0)
      out.add(std::uint64_t{0});
    else
      out.add(core::format_bytes(bytes));
  }
  void read(const JsonPlace& place, std::size_t& bytes) const {
    if (!place.is_text()) return core::read_json(place, bytes);
    const auto parsed = core::parse_bytes(place.text());
    if (!parsed) place.fail(fmt::format("should be a size such as \"64K\", and is {}", core::in_quotes(place.text())));
    bytes = *parsed;
  }
};

template <class T>
struct Limits {
  T& least;
  T& most;
};

// [least, most], both inclusive; null stands for "no limit" at either end.
template <class T, class As>
struct LimitPair {
  void write(JsonBuilder& out, const Limits<T>& limits) const {
    out.begin_list();
    core::write_json(out, limits.least, as);
    core::write_json(out, limits.most, core::NullFor<T, As>{unlimited, as});
    out.end();
  }
  void read(const JsonPlace& place, const Limits<T>& limits) const {
    if (place.size("two: the least and the most") != 2) place.fail("should be a list of two: the least and the most");
    if (!place.at(0).is_null()) core::read_json(place.at(0), limits.least, as);
    if (!place.at(1).is_null()) core::read_json(place.at(1), limits.most, as);
    if (limits.least > limits.most)
      place.fail(fmt::format("its least, {}, is more than its most, {}", limits.least, limits.most));
  }
  T unlimited;
  As as;
};

}  // namespace

template <class Visit>
void fields(SelectionRule& rule, Visit& visit) {
  auto& [collective, min_ranks, max_ranks, min_nodes, max_nodes, min_ranks_per_node, max_ranks_per_node, min_bytes,
         max_bytes, backend, power_of_two, algorithm] = rule;
  const auto limit = [&visit](std::string_view name, int& least, int& most) {
    visit.if_set(name, Limits<int>{least, most}, least > 1 || most != kMostRanks,
                 LimitPair<int, core::Within>{kMostRanks, core::within(1)});
  };
  visit("collective", collective, RuleCollective{});
  limit("ranks", min_ranks, max_ranks);
  limit("nodes", min_nodes, max_nodes);
  limit("ranks_per_node", min_ranks_per_node, max_ranks_per_node);
  visit.if_set("power_of_two", power_of_two, power_of_two.has_value());
  visit.if_set("bytes", Limits<std::size_t>{min_bytes, max_bytes}, min_bytes > 0 || max_bytes != kMostBytes,
               LimitPair<std::size_t, SizeText>{kMostBytes, {}});
  visit.if_set("backend", backend, !backend.empty(), RuleBackend{});
  visit("algorithm", algorithm, RuleAlgorithm{});
}

template <class Visit>
void fields(SelectionEvidence& evidence, Visit& visit) {
  auto& [machine, date, command] = evidence;
  visit("machine", machine);
  visit("date", date);
  visit("command", command);
}

namespace {

struct RuleList {
  void read(const JsonPlace& place, std::vector<SelectionRule>& rules) const {
    if (place.size("rules") == 0) place.fail("should have a rule at least");
    core::read_json(place, rules);
  }
};

struct TableContent {
  int version = kTableVersion;
  std::optional<SelectionEvidence> evidence = {};
  std::vector<SelectionRule> rules = {};
};

template <class Visit>
void fields(TableContent& table, Visit& visit) {
  auto& [version, evidence, rules] = table;
  visit("version", version);
  visit.optional("evidence", evidence);
  visit("rules", rules, RuleList{});
}

}  // namespace

std::string selection_to_json(std::span<const SelectionRule> rules, const SelectionEvidence& evidence) {
  std::vector<std::string> lines;
  for (const SelectionRule& rule : rules) {
    JsonBuilder out;
    core::write_json(out, rule);
    lines.push_back(out.spaced_line());
  }
  return fmt::format(
      "{{\n  \"version\": {},\n  \"evidence\": {{\n    \"machine\": {},\n    \"date\": {},\n    \"command\": {}\n  "
      "}},\n"
      "  \"rules\": [\n    {}\n  ]\n}}\n",
      kTableVersion, core::json_line(evidence.machine), core::json_line(evidence.date),
      core::json_line(evidence.command), core::joined(lines, ",\n    "));
}

SelectionTable SelectionTable::parse(std::string_view text, std::string source) {
  const core::JsonDocument document = core::JsonDocument::parse(text, fmt::format("selection table ({})", source));
  const JsonPlace root = document.root();
  // Before all else: another version may have other members.
  const int version = root["version"].whole<int>(0);
  if (version != kTableVersion)
    root["version"].fail(fmt::format("is {}, and this version of col reads {}", version, kTableVersion));
  TableContent content;
  core::read_json(root, content);
  SelectionTable table;
  table.source_ = std::move(source);
  table.evidence_ = content.evidence ? fmt::format("machine: {}; date: {}; command: {}", content.evidence->machine,
                                                   content.evidence->date, content.evidence->command)
                                     : "not recorded";
  table.rules_ = std::move(content.rules);
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
                             .min_nodes = rule.min_nodes,
                             .max_nodes = rule.max_nodes,
                             .min_ranks_per_node = rule.min_ranks_per_node,
                             .max_ranks_per_node = rule.max_ranks_per_node,
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
