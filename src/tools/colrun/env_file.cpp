#include "colrun/env_file.hpp"

#include <fmt/format.h>

#include "colrun/option_values.hpp"
#include "colrun/text_lines.hpp"
#include "colrun/values.hpp"

namespace col::colrun {

std::vector<std::string> parse_env_file(std::string_view text, const std::string& path) {
  constexpr std::string_view kExport = "export ";
  std::vector<std::string> variables;
  each_line(text, [&](int number, std::string_view line) {
    if (line.starts_with(kExport)) line = trimmed(line.substr(kExport.size()));
    const std::size_t equals = line.find('=');
    const std::string_view name = line.substr(0, equals);
    if (equals == std::string_view::npos || !is_variable_name(name))
      throw UsageError(fmt::format("{}:{}: '{}' is no variable; write NAME=value", path, number, line));
    const auto value = unquoted(trimmed(line.substr(equals + 1)));
    if (!value)
      throw UsageError(fmt::format("{}:{}: the quotes of {} do not match; write one pair around all of the value", path,
                                   number, name));
    variables.push_back(fmt::format("{}={}", name, *value));
  });
  return variables;
}

}  // namespace col::colrun
