#include "common/command_line.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <col/select.hpp>

#include "common/version.hpp"

namespace col::tools {

std::vector<std::string_view> OptionRow::all_names() const {
  std::vector<std::string_view> list;
  for (std::string_view rest = names;;) {
    const std::size_t comma = rest.find(',');
    list.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) return list;
    rest.remove_prefix(comma + 1);
  }
}

bool OptionRow::is_named(std::string_view name) const {
  return std::ranges::count(all_names(), name) > 0;
}

std::string options_text(const std::vector<OptionRow>& rows, std::size_t width) {
  std::vector<std::string_view> groups;
  for (const OptionRow& row : rows) {
    if (!row.group.empty() && std::ranges::count(groups, row.group) == 0) groups.push_back(row.group);
  }
  std::string text;
  for (const std::string_view group : groups) {
    text += fmt::format("\n{}:\n", group);
    for (const OptionRow& row : rows) {
      if (row.group != group) continue;
      const std::string lead = fmt::format("  {}{}{}", row.names, row.is_flag() ? "" : " ", row.value);
      const std::string gap = lead.size() < width ? "" : "\n" + std::string(width, ' ');
      text += fmt::format("{:<{}}{}{}\n", lead, width, gap, row.text);
    }
  }
  return text;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& known) {
  const std::string_view nearest = nearest_name(wrong, known);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

OptionTable::OptionTable(std::string tool, std::string head, std::string footer)
    : tool_(std::move(tool)), head_(std::move(head)), footer_(std::move(footer)) {}

std::optional<std::string> OptionTable::parse(const std::vector<std::string>& arguments, std::size_t most_words) {
  add({"Other", "-h,--help", "", "print this text and end"});
  add({"Other", "--version", "", "print the version and end"});
  take(arguments, most_words);
  if (is_given("--help")) return help();
  if (is_given("--version")) return version_line(tool_.substr(0, tool_.find(' '))) + "\n";
  for (const auto& [row, given] : entries_) {
    if (row.group.empty() || given.size() < 2) continue;
    const std::string_view name = row.names.substr(std::min(row.names.find("--"), row.names.size()));
    throw UsageError(fmt::format("{} was given twice; give it once", name.substr(0, name.find(','))));
  }
  return std::nullopt;
}

void OptionTable::take(const std::vector<std::string>& arguments, std::size_t most_words) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-' || argument == "--") {
      if (words_.size() == most_words) {
        throw UsageError(fmt::format("unexpected argument '{}'{}", argument,
                                     most_words == 0 ? fmt::format("; {} takes options only", tool_) : ""));
      }
      words_.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    Entry* entry = find(name);
    // One letter is near to every other one.
    if (entry == nullptr)
      throw UsageError(fmt::format("unknown option '{}'{}", name, name.size() > 2 ? did_you_mean(name, names()) : ""));
    std::string& value = entry->given.emplace_back();
    if (entry->row.is_flag()) {
      if (equals != std::string::npos) throw UsageError(fmt::format("{} takes no value", name));
      continue;
    }
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (i + 1 < arguments.size() && find(arguments[i + 1]) == nullptr)
      value = arguments[++i];
    if (value.empty()) throw UsageError(fmt::format("{} needs a value", name));
  }
}

std::string OptionTable::help() const {
  constexpr std::size_t kWidth = 26;
  std::vector<OptionRow> rows;
  for (const Entry& entry : entries_) rows.push_back(entry.row);
  return fmt::format("{}\n{}\n{}\n", head_, options_text(rows, kWidth), footer_);
}

void OptionTable::apply() const {
  for (const auto& [row, given] : entries_) {
    if (!given.empty() && row.set) row.set(std::string(row.first_name()), given.back());
  }
}

const std::string* OptionTable::value(std::string_view name) const {
  for (const auto& [row, given] : entries_) {
    if (row.is_named(name)) return given.empty() ? nullptr : &given.back();
  }
  return nullptr;
}

std::string_view OptionTable::first_given(const std::vector<std::string_view>& names, std::string_view but) const {
  const auto found = std::ranges::find_if(names, [&](std::string_view name) { return name != but && is_given(name); });
  return found == names.end() ? std::string_view() : *found;
}

std::vector<std::string_view> OptionTable::names() const {
  std::vector<std::string_view> list;
  for (const Entry& entry : entries_) {
    if (entry.row.group.empty()) continue;
    const auto names = entry.row.all_names();
    list.insert(list.end(), names.begin(), names.end());
  }
  return list;
}

OptionTable::Entry* OptionTable::find(std::string_view name) {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.row.is_named(name); });
  return found == entries_.end() ? nullptr : &*found;
}

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length < 0) throw std::system_error(errno, std::generic_category(), "cannot find the path of the program itself");
  return {path.data(), static_cast<std::size_t>(length)};
}

}  // namespace col::tools
