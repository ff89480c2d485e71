#include "common/option_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <set>

#include "common/numbers.hpp"

namespace col::tools {
namespace {

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

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end; (end = text.find(separator)) != std::string_view::npos; text.remove_prefix(end + 1))
    parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

std::optional<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> names;
  for (const std::string_view name : split(text, ',')) {
    if (name.empty()) return std::nullopt;
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  }
  return names;
}

std::optional<std::vector<int>> parse_numbers(std::string_view text, int least, int most) {
  std::set<int> numbers;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_whole_number(part.substr(0, dash), least, most);
    const auto last = dash == std::string_view::npos ? first : parse_whole_number(part.substr(dash + 1), least, most);
    if (!first || !last || *first > *last) return std::nullopt;
    for (int number = *first; number <= *last; ++number) numbers.insert(number);
  }
  return std::vector<int>(numbers.begin(), numbers.end());
}

std::optional<Duration> parse_duration(std::string_view text) {
  const auto unit = std::ranges::find_if(kUnits, [&](const Unit& u) { return text.ends_with(u.name); });
  if (unit == kUnits.end()) return std::nullopt;
  const std::int64_t most = kLongest / unit->length;
  const auto number = parse_whole_number<std::int64_t>(text.substr(0, text.size() - unit->name.size()), 1, most);
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
