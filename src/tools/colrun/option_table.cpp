#include "colrun/option_table.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <col/select.hpp>

#include "colrun/option_groups.hpp"

namespace col::colrun {
namespace {

std::vector<OptionRow> other_rows() {
  using enum OptionRow::Takes;
  using enum OptionRow::Shown;
  return {
      {"--config", "FILE", value, all, "options from a file of 'option = value' lines", nullptr, Option::config},
      {"-h,--help", "", nothing, everyday, "print the options of every day", nullptr, Option::help},
      {"--help-all", "", nothing, everyday, "print all options", nullptr, Option::help_all},
      {"--version", "", nothing, everyday, "print the version", nullptr, Option::version},
      {"--agent", "", nothing, nowhere, "started by another colrun, over ssh", nullptr, Option::agent},
  };
}

std::string_view without_dashes(std::string_view name) {
  return name.substr(name.starts_with("--") ? 2 : 1);
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known) {
  return tools::did_you_mean(wrong, {known.begin(), known.end()});
}

// What `write` makes of the long names, without their dashes, of all settings.
template <class Write>
std::vector<std::string> each_key(Write write) {
  std::vector<std::string> keys;
  for (const OptionRow& row : option_rows()) {
    if (!row.is_setting()) continue;
    for (const std::string_view name : row.all_names()) {
      if (name.starts_with("--")) keys.push_back(write(name.substr(2)));
    }
  }
  return keys;
}

}  // namespace

std::string_view OptionRow::key() const noexcept {
  const std::string_view rest = names.substr(std::min(names.find("--"), names.size() - 2) + 2);
  return rest.substr(0, rest.find(','));
}

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = [] {
    const std::pair<std::string_view, std::vector<OptionRow>> groups[] = {
        {"Ranks and nodes", node_rows()},
        {"Processors and devices", binding_rows()},
        {"Output and input", output_rows()},
        {"Beginning and end", lifecycle_rows()},
        {"Environment", environment_rows()},
        {"Inspection", inspection_rows()},
        {"Drills", drill_rows()},
        {OptionRow::kOther, other_rows()},
    };
    std::vector<OptionRow> all;
    for (const auto& [group, part] : groups) {
      for (const OptionRow& row : part) all.emplace_back(row).group = group;
    }
    return all;
  }();
  return rows;
}

const OptionRow& row_of(Option option) {
  return *std::ranges::find(option_rows(), option, &OptionRow::option);
}

const OptionRow* find_option(std::string_view name) {
  const auto& rows = option_rows();
  const auto found =
      std::ranges::find_if(rows, [&](const OptionRow& row) { return std::ranges::count(row.all_names(), name) > 0; });
  return found == rows.end() ? nullptr : &*found;
}

const OptionRow* find_setting(std::string_view key) {
  const auto same = [](char written, char known) { return written == known || (written == '_' && known == '-'); };
  const auto is_key = [&](std::string_view name) { return std::ranges::equal(key, without_dashes(name), same); };
  const auto& rows = option_rows();
  const auto found = std::ranges::find_if(
      rows, [&](const OptionRow& row) { return row.is_setting() && std::ranges::any_of(row.all_names(), is_key); });
  return found == rows.end() ? nullptr : &*found;
}

std::string did_you_mean_option(std::string_view name) {
  if (name.size() <= 2) return {};  // one letter is near to every other one
  std::vector<std::string> known;
  for (const OptionRow& row : option_rows()) {
    if (row.shown == OptionRow::Shown::nowhere) continue;
    for (const std::string_view each : row.all_names()) {
      if (each.size() > 2) known.emplace_back(each);
    }
  }
  return did_you_mean(name, known);
}

std::string did_you_mean_key(std::string_view key) {
  return did_you_mean(key, each_key([](std::string_view known) { return std::string(known); }));
}

std::string did_you_mean_variable(std::string_view variable) {
  // Without the common prefix: it would make any two names similar.
  const auto in_capitals = [](std::string_view key) { return variable_of(key).substr(kVariablePrefix.size()); };
  std::vector<std::string> known = each_key(in_capitals);
  known.push_back(in_capitals("config"));
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view nearest = nearest_name(variable.substr(kVariablePrefix.size()), names);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}{}'?", kVariablePrefix, nearest);
}

std::string variable_of(std::string_view key) {
  std::string name(kVariablePrefix);
  for (const char letter : key) {
    const bool small = letter >= 'a' && letter <= 'z';
    name += letter == '-' ? '_' : small ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return name;
}

}  // namespace col::colrun
