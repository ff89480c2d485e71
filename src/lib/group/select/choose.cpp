// Rules, what overrides them, and the choice among them.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <col/select.hpp>

#include "core/byte_size.hpp"
#include "core/nearest_name.hpp"
#include "group/select/choose.hpp"
#include "group/select/collective_name.hpp"
#include "json/strict_json.hpp"

namespace col {
namespace {

// "2 to 8 ranks", "up to 64K", "from 64K": what a range says; empty when it says nothing.
template <class T, class Format>
std::string range_text(T least, T most, T lowest, Format format) {
  const bool open = most == std::numeric_limits<T>::max();
  if (least == most) return format(least);
  if (least <= lowest && open) return {};
  if (open) return fmt::format("from {}", format(least));
  if (least <= lowest) return fmt::format("up to {}", format(most));
  return fmt::format("{} to {}", format(least), format(most));
}

std::string query_text(const SelectionQuery& query) {
  return fmt::format("{} of {} on {} ranks{}{}{}", to_string(query.collective), core::format_bytes(query.bytes),
                     query.ranks, query.nodes > 1 ? fmt::format(" on {} nodes", query.nodes) : "",
                     query.backend.empty() ? "" : ", backend ", query.backend);
}

// Whose rules serve the query. A table without rules for groups over hosts serves them by those for the wire between
// them; one without rules for UCX, by those for Gloo.
SelectionQuery as_served(const SelectionTable& table, SelectionQuery query) {
  const auto is_served = [&](std::string_view backend) {
    return std::ranges::any_of(table.rules(), [&](const SelectionRule& rule) {
      return rule.collective == query.collective && rule.backend == backend;
    });
  };
  if (query.backend == "hosts_ucx" && !is_served("hosts_ucx")) query.backend = "hosts";
  if (query.backend == "hosts" && !is_served("hosts")) query.backend = "gloo";
  return query;
}

}  // namespace

bool SelectionRule::matches(const SelectionQuery& query) const noexcept {
  if (query.collective != collective) return false;
  if (query.ranks < min_ranks || query.ranks > max_ranks) return false;
  if (query.nodes < min_nodes || query.nodes > max_nodes) return false;
  if (query.ranks_per_node < min_ranks_per_node || query.ranks_per_node > max_ranks_per_node) return false;
  if (query.bytes < min_bytes || query.bytes > max_bytes) return false;
  if (!backend.empty() && query.backend != backend) return false;
  return !power_of_two || *power_of_two == (query.ranks > 0 && std::has_single_bit(static_cast<unsigned>(query.ranks)));
}

std::string SelectionRule::text() const {
  std::string text(to_string(collective));
  const auto number = [](int n) { return fmt::format("{}", n); };
  const std::string ranks = range_text(min_ranks, max_ranks, 1, number);
  if (!ranks.empty()) text += fmt::format(", {} ranks", ranks);
  const std::string nodes = range_text(min_nodes, max_nodes, 1, number);
  if (!nodes.empty()) text += fmt::format(", {} nodes", nodes);
  const std::string per_node = range_text(min_ranks_per_node, max_ranks_per_node, 1, number);
  if (!per_node.empty()) text += fmt::format(", {} ranks a node", per_node);
  const std::string bytes = range_text(min_bytes, max_bytes, std::size_t{0}, core::format_bytes);
  if (!bytes.empty()) text += fmt::format(", {}", bytes);
  if (!backend.empty()) text += fmt::format(", backend {}", backend);
  if (power_of_two) text += *power_of_two ? ", a power of two" : ", not a power of two";
  return fmt::format("{}: {}", text, algorithm.text());
}

std::vector<AlgorithmOverride> parse_overrides(std::string_view text) {
  std::vector<AlgorithmOverride> overrides;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    const auto refuse = [&](std::string_view why) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("COL_ALGORITHM: entry {}: {}; the form is COLLECTIVE:ALGORITHM[,COLLECTIVE:ALGORITHM...], "
                      "such as allreduce:ring,broadcast:knomial:radix=8 (paths have no commas)",
                      core::in_quotes(entry), why));
    };
    const std::size_t colon = entry.find(':');
    if (colon == std::string_view::npos) refuse("has no colon");
    const std::string_view name = entry.substr(0, colon);
    const auto collective = group::find_collective(name);
    if (!collective)
      refuse(fmt::format("unknown collective {}{}", core::in_quotes(name), group::collective_hint(name)));
    for (const AlgorithmOverride& before : overrides) {
      if (before.collective == *collective) refuse(fmt::format("{} has one already", name));
    }
    try {
      overrides.push_back({*collective, AlgorithmSpec::parse(entry.substr(colon + 1))});
    } catch (const Error& error) {
      refuse(error.message());
    }
  }
  return overrides;
}

std::optional<Choice> choose(const SelectionTable& table, const SelectionQuery& query,
                             const std::function<std::optional<std::string>(const AlgorithmSpec&)>& why_not,
                             std::string* refused) {
  return group::choose(table, query, why_not, refused, group::Reasons::told);
}

std::optional<Choice> group::choose(const SelectionTable& table, const SelectionQuery& query,
                                    const std::function<std::optional<std::string>(const AlgorithmSpec&)>& why_not,
                                    std::string* refused, Reasons reasons) {
  std::string passed_over;
  const SelectionQuery served = as_served(table, query);
  for (std::size_t i = 0; i < table.rules().size(); ++i) {
    const SelectionRule& rule = table.rules()[i];
    if (!rule.matches(served)) continue;
    const auto objection = why_not(rule.algorithm);
    if (!objection) {
      if (reasons == Reasons::untold) return Choice{rule.algorithm, {}};
      std::string reason = fmt::format("rule {} of {}: {}", i + 1, table.source(), rule.text());
      if (!passed_over.empty()) reason += fmt::format(" ({})", passed_over);
      return Choice{rule.algorithm, std::move(reason)};
    }
    passed_over +=
        fmt::format("{}rule {}: {}: {}", passed_over.empty() ? "" : "; ", i + 1, rule.algorithm.text(), *objection);
  }
  if (refused != nullptr) {
    *refused = passed_over.empty()
                   ? fmt::format("no rule of {} is for {}", table.source(), query_text(query))
                   : fmt::format("no rule of {} serves {}: {}", table.source(), query_text(query), passed_over);
  }
  return std::nullopt;
}

std::string_view nearest_name(std::string_view misspelt, std::span<const std::string_view> candidates) {
  return core::nearest_name(misspelt, candidates);
}

}  // namespace col
