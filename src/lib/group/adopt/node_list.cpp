#include "group/adopt/node_list.hpp"

#include <algorithm>
#include <cstddef>

namespace col::group::adopt {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

// For "01-03,7", the text between the brackets: "01", with its zeros. Empty if it is not a list of numbers.
std::string_view first_number(std::string_view ranges) {
  const std::string_view first = ranges.substr(0, ranges.find_first_of("-,"));
  for (bool more = true; more;) {
    const auto comma = ranges.find(',');
    const std::string_view range = ranges.substr(0, comma);
    const auto dash = range.find('-');
    if (!is_number(range.substr(0, dash))) return {};
    if (dash != std::string_view::npos && !is_number(range.substr(dash + 1))) return {};
    more = comma != std::string_view::npos;
    if (more) ranges.remove_prefix(comma + 1);
  }
  return first;
}

}  // namespace

std::optional<std::string> first_of_node_list(std::string_view list) {
  std::string host;
  while (!list.empty() && list.front() != ',') {
    if (list.front() != '[') {
      const auto plain = std::min(list.find_first_of("[,"), list.size());
      host += list.substr(0, plain);
      list.remove_prefix(plain);
      continue;
    }
    const auto close = list.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view number = first_number(list.substr(1, close - 1));
    if (number.empty()) return std::nullopt;
    host += number;
    list.remove_prefix(close + 1);
  }
  if (host.empty() || host.find_first_of("] \t\n") != std::string::npos) return std::nullopt;
  return host;
}

}  // namespace col::group::adopt
