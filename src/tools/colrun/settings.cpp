#include "colrun/settings.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <col/select.hpp>

#include "colrun/text_files.hpp"
#include "common/option_readers.hpp"
#include "common/option_values.hpp"
#include "common/text.hpp"

namespace col::colrun {
namespace {

constexpr std::string_view kConfig = "COLRUN_CONFIG";

std::string_view without_dashes(std::string_view name) {
  return name.substr(name.starts_with("--") ? 2 : 1);
}

// The long names, without their dashes, of all settings.
std::vector<std::string_view> all_keys(const Rows& rows) {
  std::vector<std::string_view> keys;
  for (const OptionRow& row : rows) {
    if (!row.is_setting()) continue;
    for (const std::string_view name : row.all_names()) {
      if (name.starts_with("--")) keys.push_back(without_dashes(name));
    }
  }
  return keys;
}

// "1" or "0" for the value of a flag in a file or variable. Throws UsageError.
std::string flag_text(const Given& given) {
  if (given.text == "1" || given.text == "yes") return "1";
  if (given.text == "0" || given.text == "no") return "0";
  tools::refuse(given.said_as, given.text, "1, 0, yes or no");
}

Setting setting_of(const Rows& rows, std::string_view line, const std::string& place) {
  const std::size_t equals = line.find('=');
  const std::string key(tools::trimmed(line.substr(0, equals)));
  const OptionRow* row = find_setting(rows, key);
  if (row == nullptr && find_option(rows, "--" + key) != nullptr)
    throw UsageError("{}: {} is for the command line only", place, key);
  if (row == nullptr)
    throw UsageError("{}: unknown option '{}'{}", place, key, tools::did_you_mean(key, all_keys(rows)));
  if (equals == std::string_view::npos)
    throw UsageError("{}: {} has no value; write '{} = {}'", place, key, key, row->is_flag() ? "yes" : row->value);
  const auto text = unquoted(tools::trimmed(line.substr(equals + 1)));
  if (!text) throw UsageError("{}: the quotes of {} do not match; write one pair around all of it", place, key);
  if (text->empty()) throw UsageError("{}: {} has no value; give it one, or remove the line", place, key);
  Given given{Source::config_file, fmt::format("{}: {}", place, key), *text};
  if (row->is_flag()) given.text = flag_text(given);
  return {row, std::move(given)};
}

// "COLRUN_MAX_RESTARTS" is "max-restarts".
std::string key_of(std::string_view variable) {
  std::string key;
  for (const char letter : variable.substr(kVariablePrefix.size())) {
    const bool capital = letter >= 'A' && letter <= 'Z';
    key += letter == '_' ? '-' : capital ? static_cast<char>(letter - 'A' + 'a') : letter;
  }
  return key;
}

// "; did you mean 'COLRUN_NP'?", or nothing if no name is near.
std::string did_you_mean_variable(std::string_view variable, const Rows& rows) {
  std::vector<std::string_view> keys = all_keys(rows);
  keys.emplace_back("config");
  const std::string key = key_of(variable);
  const std::string_view nearest = nearest_name(key, keys);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", variable_of(nearest));
}

void add_variable(std::vector<Setting>& settings, std::string_view name, std::string_view text, const OptionRow& row) {
  Given given{Source::environment, std::string(name), std::string(text)};
  if (row.is_flag()) given.text = flag_text(given);
  // One variable has room for several only if they are on lines of their own.
  for (const std::string_view line :
       row.repeats ? tools::split(text, '\n') : std::vector{std::string_view(given.text)}) {
    if (!line.empty()) settings.push_back({&row, {given.source, given.said_as, std::string(line)}});
  }
}

void add_variables(const Rows& rows, const Surroundings& surroundings, std::vector<Setting>& settings,
                   std::vector<std::string>& warnings) {
  for (const char* const* entry = surroundings.environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kVariablePrefix) || equals == std::string_view::npos || equals + 1 == text.size()) continue;
    const std::string_view name = text.substr(0, equals);
    if (name == kConfig) continue;
    const bool capitals = std::ranges::none_of(name, [](char letter) { return letter >= 'a' && letter <= 'z'; });
    if (const OptionRow* row = capitals ? find_setting(rows, key_of(name)) : nullptr)
      add_variable(settings, name, text.substr(equals + 1), *row);
    else
      warnings.push_back(fmt::format("the variable {} is no option of colrun and has no effect{}", name,
                                     did_you_mean_variable(name, rows)));
  }
}

std::vector<Setting> read_file(const Values& command_line, const Surroundings& surroundings) {
  const Given* given = command_line.find("--config");
  const auto variable = surroundings.variable(kConfig);
  if (given == nullptr && !variable) return {};
  const std::string path = given != nullptr ? given->text : std::string(*variable);
  try {
    return parse_config(command_line.rows(), read_text(path), path);
  } catch (const UsageError& error) {
    if (given != nullptr) throw;
    throw UsageError("{} (named by {})", error.what(), kConfig);
  }
}

using Names = std::initializer_list<std::string_view>;

std::optional<Source> strongest(const Values& values, Names names) {
  std::optional<Source> source;
  for (const std::string_view name : names) {
    if (const Given* given = values.find(name)) source = std::max(source, std::optional(given->source));
  }
  return source;
}

// Two ways to say the same: the one with the stronger source counts. Of the same source, both stay, to be refused.
void keep_stronger(Values& values, Names some, Names others) {
  const auto first = strongest(values, some);
  const auto second = strongest(values, others);
  if (!first || !second || *first == *second) return;
  for (const std::string_view name : *first > *second ? others : some) values.erase(name);
}

void settle_alternatives(Values& values) {
  const Given* scheduler = values.find("--scheduler");
  const std::string_view name = scheduler == nullptr ? "" : std::string_view(scheduler->text);
  if (name == "pbs" || name == "lsf")  // these list the hosts; the others' word may stand beside other options
    keep_stronger(
        values, {"--scheduler"},
        {"--host", "--hostfile", "--rdzv-endpoint", "--master-addr", "--master-port", "--node-rank", "--nnodes"});
  keep_stronger(values, {"--host"}, {"--hostfile"});
  keep_stronger(values, {"--rdzv-endpoint"}, {"--master-addr", "--master-port"});
  keep_stronger(values, {"--host", "--hostfile"},
                {"--rdzv-endpoint", "--master-addr", "--master-port", "--node-rank", "--nnodes"});
  if (values.is_on("--standalone"))
    keep_stronger(values, {"--standalone"},
                  {"--host", "--hostfile", "--rdzv-endpoint", "--master-addr", "--master-port", "--node-rank",
                   "--nnodes", "--scheduler"});
}

std::vector<std::string> as_arguments(const Values& values) {
  std::vector<std::string> arguments;
  for (const OptionRow& row : values.rows()) {
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

std::optional<std::string_view> Surroundings::find(std::string_view name) const {
  for (const char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=')
      return text.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::optional<std::string_view> Surroundings::variable(std::string_view name) const {
  const auto value = find(name);
  return value && !value->empty() ? value : std::nullopt;
}

const OptionRow* find_setting(const Rows& rows, std::string_view key) {
  const auto same = [](char written, char known) { return written == known || (written == '_' && known == '-'); };
  const auto is_key = [&](std::string_view name) { return std::ranges::equal(key, without_dashes(name), same); };
  const auto found = std::ranges::find_if(
      rows, [&](const OptionRow& row) { return row.is_setting() && std::ranges::any_of(row.all_names(), is_key); });
  return found == rows.end() ? nullptr : &*found;
}

std::string variable_of(std::string_view key) {
  std::string name(kVariablePrefix);
  for (const char letter : key) {
    const bool small = letter >= 'a' && letter <= 'z';
    name += letter == '-' ? '_' : small ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return name;
}

std::vector<Setting> parse_config(const Rows& rows, std::string_view text, const std::string& path) {
  std::vector<Setting> settings;
  each_line(text, [&](int number, std::string_view line) {
    settings.push_back(setting_of(rows, line, fmt::format("{}:{}", path, number)));
  });
  return settings;
}

Settings collect_settings(const Part& command_line, const Surroundings& surroundings) {
  const Rows& rows = command_line.values.rows();
  std::vector<std::string> warnings;
  std::vector<Setting> said = read_file(command_line.values, surroundings);
  add_variables(rows, surroundings, said, warnings);
  // Mostly there are none, and the line has been read.
  Settings settings{said.empty() ? command_line.values : read_options(rows, command_line.options, said),
                    std::move(warnings)};
  settle_alternatives(settings.values);
  settings.command_line = as_arguments(settings.values);
  return settings;
}

}  // namespace col::colrun
