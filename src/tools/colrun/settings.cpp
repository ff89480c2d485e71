#include "colrun/settings.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "colrun/config_file.hpp"
#include "colrun/text_lines.hpp"

namespace col::colrun {
namespace {

constexpr std::string_view kConfig = "COLRUN_CONFIG";

// "COLRUN_MAX_RESTARTS" is "max-restarts".
std::string key_of(std::string_view variable) {
  std::string key;
  for (const char letter : variable.substr(kVariablePrefix.size())) {
    const bool capital = letter >= 'A' && letter <= 'Z';
    key += letter == '_' ? '-' : capital ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return key;
}

void add_variable(Values& values, std::string_view name, std::string_view text, const OptionRow& row) {
  Given given{Source::environment, std::string(name), std::string(text)};
  if (row.is_flag()) given.text = flag_text(given);
  if (row.takes != OptionRow::Takes::values) return values.add(row, std::move(given));
  // One variable has room for several only if they are on lines of their own.
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    given.text = text.substr(0, end);
    if (!given.text.empty()) values.add(row, given);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

Values read_variables(const Surroundings& surroundings, std::vector<std::string>& warnings) {
  Values values;
  for (const char* const* entry = surroundings.environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kVariablePrefix) || equals == std::string_view::npos || equals + 1 == text.size()) continue;
    const std::string_view name = text.substr(0, equals);
    if (name == kConfig) continue;
    const bool capitals =
        std::none_of(name.begin(), name.end(), [](char letter) { return letter >= 'a' && letter <= 'z'; });
    if (const OptionRow* row = capitals ? find_setting(key_of(name)) : nullptr)
      add_variable(values, name, text.substr(equals + 1), *row);
    else
      warnings.push_back(
          fmt::format("the variable {} is no option of colrun and has no effect{}", name, did_you_mean_variable(name)));
  }
  return values;
}

Values read_file(const Values& command_line, const Surroundings& surroundings) {
  const Given* given = command_line.find(Option::config);
  const auto variable = surroundings.variable(kConfig);
  if (given == nullptr && !variable) return {};
  const std::string path = given != nullptr ? given->text : std::string(*variable);
  try {
    return parse_config(read_text(path), path);
  } catch (const UsageError& error) {
    if (given != nullptr) throw;
    throw UsageError(fmt::format("{} (named by {})", error.what(), kConfig));
  }
}

using Options = std::initializer_list<Option>;

std::optional<Source> strongest(const Values& values, Options options) {
  std::optional<Source> source;
  for (const Option option : options) {
    if (const Given* given = values.find(option)) source = std::max(source, std::optional(given->source));
  }
  return source;
}

// Two ways to say the same: the one with the stronger source counts. Of the same source, both stay, to be refused.
void keep_stronger(Values& values, Options some, Options others) {
  const auto first = strongest(values, some);
  const auto second = strongest(values, others);
  if (!first || !second || *first == *second) return;
  for (const Option option : *first > *second ? others : some) values.erase(option);
}

void settle_alternatives(Values& values) {
  using enum Option;
  keep_stronger(values, {host}, {hostfile});
  keep_stronger(values, {rdzv_endpoint}, {master_addr, master_port});
  keep_stronger(values, {host, hostfile}, {rdzv_endpoint, master_addr, master_port, node_rank, nnodes});
  if (values.is_on(standalone))
    keep_stronger(values, {standalone},
                  {host, hostfile, rdzv_endpoint, master_addr, master_port, node_rank, nnodes, scheduler});
}

std::vector<std::string> as_arguments(const Values& values) {
  std::vector<std::string> arguments;
  for (const OptionRow& row : option_rows()) {
    for (const Given& given : values.all(row)) {
      if (given.source == Source::command_line) continue;
      if (!row.is_flag())
        arguments.push_back(fmt::format("--{}={}", row.key(), given.text));
      else if (given.text == "1")
        arguments.push_back(fmt::format("--{}", row.key()));
    }
  }
  return arguments;
}

}  // namespace

Settings collect_settings(const Values& command_line, const Surroundings& surroundings) {
  Settings settings;
  settings.values = read_file(command_line, surroundings);
  settings.values.override_by(read_variables(surroundings, settings.warnings));
  settings.values.override_by(command_line);
  settle_alternatives(settings.values);
  settings.command_line = as_arguments(settings.values);
  return settings;
}

}  // namespace col::colrun
