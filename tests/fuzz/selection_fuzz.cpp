// Texts as selection tables and as overrides: each is read or is an invalid_argument, in memory in proportion to its
// size. Algorithms that were read survive being written.
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <col/select.hpp>

#include "target.hpp"

namespace col {
namespace {

// Runs `read`; whether it came to an end without an error.
template <class Read>
bool reads(std::size_t size, Read read) {
  const fuzz::AllocationLimit limit(fuzz::bytes_for_text(size));
  try {
    read();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument)
      fuzz::fail(fmt::format("not an invalid_argument: {}", error.what()));
    return false;
  }
}

void check_spec(const AlgorithmSpec& spec) {
  if (AlgorithmSpec::parse(spec.text()) != spec) fuzz::fail(fmt::format("'{}' becomes another algorithm", spec.text()));
}

void check_table(const SelectionTable& table) {
  for (const SelectionRule& rule : table.rules()) {
    check_spec(rule.algorithm);
    if (rule.text().empty()) fuzz::fail("a rule without a text");
    const SelectionQuery query{.collective = rule.collective,
                               .ranks = rule.min_ranks,
                               .nodes = rule.min_nodes,
                               .ranks_per_node = rule.min_ranks_per_node,
                               .bytes = rule.min_bytes,
                               .backend = rule.backend};
    // Whether this rule matches its own lower bounds depends on power_of_two alone.
    const bool power = rule.min_ranks > 0 && (rule.min_ranks & (rule.min_ranks - 1)) == 0;
    if (rule.matches(query) != (!rule.power_of_two || *rule.power_of_two == power))
      fuzz::fail(fmt::format("matches its lower bounds, or not: {}", rule.text()));
    std::string refused;
    const auto never = [](const AlgorithmSpec&) { return std::optional<std::string>("never"); };
    if (choose(table, query, never, &refused) || refused.empty()) fuzz::fail("a choice of what was refused");
  }
}

}  // namespace
}  // namespace col

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::optional<col::SelectionTable> table;
  if (col::reads(size, [&] { table = col::SelectionTable::parse(text, "fuzz"); })) col::check_table(*table);
  std::vector<col::AlgorithmOverride> overrides;
  if (col::reads(size, [&] { overrides = col::parse_overrides(text); })) {
    for (const col::AlgorithmOverride& entry : overrides) col::check_spec(entry.algorithm);
  }
  return 0;
}
