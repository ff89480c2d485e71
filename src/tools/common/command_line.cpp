#include "common/command_line.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <col/select.hpp>

#include "common/text.hpp"

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

std::string_view OptionRow::key() const noexcept {
  const std::string_view rest = names.substr(std::min(names.find("--"), names.size() - 2) + 2);
  return rest.substr(0, rest.find(','));
}

bool OptionRow::is_named(std::string_view name) const {
  for (std::string_view rest = names;;) {
    const std::size_t comma = rest.find(',');
    if (rest.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

const OptionRow* find_option(const std::vector<OptionRow>& rows, std::string_view name) {
  const auto found = std::ranges::find_if(rows, [&](const OptionRow& row) { return row.is_named(name); });
  return found == rows.end() ? nullptr : &*found;
}

std::string options_text(const std::vector<OptionRow>& rows, std::size_t width, HelpExtent extent,
                         std::size_t columns) {
  const auto is_shown = [&](const OptionRow& row) { return !row.group.empty() && row.shown <= extent; };
  std::vector<std::string_view> groups;
  for (const OptionRow& row : rows) {
    if (is_shown(row) && std::ranges::count(groups, row.group) == 0) groups.push_back(row.group);
  }
  std::string text;
  for (const std::string_view group : groups) {
    text += fmt::format("\n{}:\n", group);
    for (const OptionRow& row : rows) {
      if (row.group != group || !is_shown(row)) continue;
      const std::string lead = fmt::format("  {}{}{}", row.names, row.is_flag() ? "" : " ", row.value);
      const std::string gap = lead.size() + 1 < width ? "" : "\n" + std::string(width, ' ');
      const std::string about = columns == 0 ? row.text : wrapped(row.text, columns, width, width);
      text += gap.empty() ? fmt::format("{:<{}}{}\n", lead, width, about) : lead + gap + about + "\n";
    }
  }
  return text;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& known) {
  const std::string_view nearest = nearest_name(wrong, known);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

std::string given_twice(std::string_view first, std::string_view again) {
  return fmt::format("{} was given twice{}; give it once", again,
                     first == again ? std::string() : fmt::format(" (first by {})", first));
}

std::string unknown_option(std::string_view name, const std::vector<OptionRow>& rows) {
  std::vector<std::string_view> known;
  // A name of one letter is near to every other one.
  const auto add_long = [&](std::string_view each) {
    if (each.size() > 2) known.push_back(each);
  };
  for (const OptionRow& row : rows) {
    if (!row.group.empty()) std::ranges::for_each(row.all_names(), add_long);
  }
  return fmt::format("unknown option '{}'{}", name, name.size() > 2 ? did_you_mean(name, known) : "");
}

OptionTable::OptionTable(std::string tool, std::string head, std::string footer, std::string brief)
    : tool_(std::move(tool)), head_(std::move(head)), footer_(std::move(footer)), brief_(std::move(brief)) {}

void OptionTable::add(OptionRow row) {
  rows_.push_back(std::move(row));
  given_.emplace_back();
}

std::optional<std::string> OptionTable::parse(const std::vector<std::string>& arguments, std::size_t most_words) {
  const auto add_text = [this](std::string_view names, std::string text) {
    add({.group = "Other", .names = names, .value = "", .text = std::move(text), .shown = HelpExtent::all});
  };
  add_text("-h,--help", "print the options of every day and end");
  add_text("--help-all", "print this text and end");
  add_text("--version", "print the version and end");
  take(arguments, most_words);
  if (is_given("--help-all")) return help(HelpExtent::all);
  if (is_given("--help")) return help(HelpExtent::everyday);
  if (is_given("--version")) return version_line(tool_.substr(0, tool_.find(' '))) + "\n";
  for (const OptionRow& row : rows_) {
    const std::vector<Given>& given = given_[index(row)];
    if (row.group.empty() || row.repeats || given.size() < 2) continue;
    throw UsageError(given_twice(given[0].name, given[1].name));
  }
  return std::nullopt;
}

void OptionTable::take(const std::vector<std::string>& arguments, std::size_t most_words) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-' || argument == "--") {
      if (words_.size() == most_words) {
        throw UsageError("unexpected argument '{}'{}", argument,
                         most_words == 0 ? fmt::format("; {} takes options only", tool_) : "");
      }
      words_.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const OptionRow* row = find_option(rows_, name);
    if (row == nullptr) throw UsageError(unknown_option(name, rows_));
    std::string& value = given_[index(*row)].emplace_back(Given{name, {}}).value;
    if (row->is_flag()) {
      if (equals != std::string::npos) throw UsageError("{} takes no value", name);
      continue;
    }
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (i + 1 < arguments.size() && find_option(rows_, arguments[i + 1]) == nullptr)
      value = arguments[++i];
    if (value.empty()) throw UsageError("{} needs a value", name);
  }
}

std::string OptionTable::help(HelpExtent extent) const {
  constexpr std::size_t kWidth = 26, kColumns = 80, kLines = 24;
  const auto text = [&](HelpExtent shown, const std::string& below) {
    return fmt::format("{}\n{}\n{}\n", head_, options_text(rows_, kWidth, shown, kColumns), reflowed(below, kColumns));
  };
  std::string all = text(HelpExtent::all, footer_);
  if (extent == HelpExtent::all || std::ranges::count(all, '\n') <= static_cast<std::ptrdiff_t>(kLines)) return all;
  return text(HelpExtent::everyday, fmt::format("{}{}{} --help-all: all options, and more about each.", brief_,
                                                brief_.empty() ? "" : "\n", tool_));
}

void OptionTable::apply() const {
  for (const OptionRow& row : rows_) {
    if (!row.set) continue;
    for (const Given& given : given_[index(row)]) row.set(given.name, given.value);
  }
}

const OptionTable::Given* OptionTable::find(std::string_view name) const {
  const OptionRow* row = find_option(rows_, name);
  const bool given = row != nullptr && !given_[index(*row)].empty();
  return given ? &given_[index(*row)].back() : nullptr;
}

std::string_view OptionTable::first_given(const std::vector<std::string_view>& names, std::string_view but) const {
  const auto found = std::ranges::find_if(names, [&](std::string_view name) { return name != but && is_given(name); });
  return found == names.end() ? std::string_view() : find(*found)->name;
}

std::vector<std::string_view> OptionTable::names() const {
  std::vector<std::string_view> list;
  for (const OptionRow& row : rows_) {
    if (row.group.empty()) continue;
    const auto names = row.all_names();
    list.insert(list.end(), names.begin(), names.end());
  }
  return list;
}

std::string usage_line(std::string_view tool, std::string_view what) {
  return fmt::format("{}: {}{} see {} --help", tool, what, what.ends_with('?') ? "" : ";", tool);
}

std::string version_line(std::string_view tool) {
  return fmt::format("{} {}", tool, COL_TOOLS_VERSION);  // from the build file
}

std::string own_path() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length < 0)
    throw std::system_error(errno, std::generic_category(),
                            "cannot find the path of the program itself in /proc, which must be mounted");
  return {path.data(), static_cast<std::size_t>(length)};
}

}  // namespace col::tools
