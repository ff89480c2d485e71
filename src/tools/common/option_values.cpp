#include "common/option_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include "common/numbers.hpp"

namespace col::tools {
namespace {

template <class Use>
void each_part(std::string_view text, Use use) {
  std::size_t comma = 0;
  while ((comma = text.find(',')) != std::string_view::npos) {
    use(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  use(text);
}

std::optional<std::pair<int, int>> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = tools::parse_whole_number(text.substr(0, dash), 1, kMaxRanks);
  if (dash == std::string_view::npos) return first ? std::optional(std::pair(*first, *first)) : std::nullopt;
  const auto last = tools::parse_whole_number(text.substr(dash + 1), 1, kMaxRanks);
  if (!first || !last || *first > *last) return std::nullopt;
  return std::pair(*first, *last);
}

struct Unit {
  std::string_view name;
  Duration length;
};
// Those that end like another come first.
constexpr std::array kUnits = {Unit{"us", std::chrono::microseconds(1)}, Unit{"ms", std::chrono::milliseconds(1)},
                               Unit{"s", std::chrono::seconds(1)}, Unit{"m", std::chrono::minutes(1)},
                               Unit{"h", std::chrono::hours(1)}};
constexpr Duration kLongest = std::chrono::hours(720);

}  // namespace

std::optional<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> names;
  bool complete = true;
  each_part(text, [&](std::string_view name) {
    complete = complete && !name.empty();
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  });
  return complete ? std::optional(std::move(names)) : std::nullopt;
}

std::optional<std::vector<int>> parse_ranks(std::string_view text) {
  std::set<int> ranks;
  bool good = true;
  each_part(text, [&](std::string_view part) {
    const auto range = parse_range(part);
    good = good && range.has_value();
    if (!range) return;
    for (int number = range->first; number <= range->second; ++number) ranks.insert(number);
  });
  return good ? std::optional(std::vector<int>(ranks.begin(), ranks.end())) : std::nullopt;
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return text.ends_with(u.name); });
  if (unit == kUnits.end()) return std::nullopt;
  const std::int64_t most = kLongest / unit->length;
  const auto number = tools::parse_whole_number<std::int64_t>(text.substr(0, text.size() - unit->name.size()), 1, most);
  return number ? std::optional(*number * unit->length) : std::nullopt;
}

std::optional<std::uint64_t> parse_seed(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed, hexadecimal ? 16 : 10);
  return error == std::errc() && stop == end ? std::optional(seed) : std::nullopt;
}

}  // namespace col::tools
