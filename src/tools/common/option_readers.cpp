#include "common/option_readers.hpp"

#include <fmt/format.h>

namespace col::tools {

void refuse(Word& option, Word& text, std::string_view what_it_takes) {
  throw UsageError("{} takes {}, not '{}'", option, what_it_takes, text);
}

int read_number(Word& option, Word& text, int least, int most) {
  const auto number = parse_whole_number(std::string_view(text), least, most);
  if (!number) refuse(option, text, fmt::format("a whole number from {} to {}", least, most));
  return *number;
}

std::string alternatives(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace col::tools
