#include "colrun/read_value.hpp"

#include "colrun/option_values.hpp"
#include "common/numbers.hpp"
#include "launch/job/rank_pattern.hpp"

namespace col::colrun {

int read_number(const Given& given, int least, int most) {
  const auto number = tools::parse_whole_number(std::string_view(given.text), least, most);
  if (!number) refuse(given, fmt::format("a whole number from {} to {}", least, most));
  return *number;
}

launch::Milliseconds read_time(const Given& given, launch::Milliseconds least) {
  const auto time = parse_time(given.text);
  if (!time || *time < least)
    refuse(given, fmt::format("a time such as 90, 90s, 500ms, 5m or 1h{}", least.count() > 0 ? ", more than 0" : ""));
  return *time;
}

std::string read_pattern(const Given& given, const std::string& pattern) {
  if (const auto why = launch::why_no_pattern(pattern))
    throw UsageError(fmt::format("{} '{}': {}", given.said_as, given.text, *why));
  return pattern;
}

std::string alternatives(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace col::colrun
