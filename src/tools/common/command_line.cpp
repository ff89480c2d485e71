#include "common/command_line.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <col/select.hpp>

#include "common/screen.hpp"
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

const OptionRow* find_option(const Rows& rows, std::string_view name) {
  const auto found = std::ranges::find_if(rows, [&](const OptionRow& row) { return row.is_named(name); });
  return found == rows.end() ? nullptr : &*found;
}

namespace {

// The groups of --help, a line for each row; texts begin at column `width`, and go on there beyond `columns`.
std::string options_text(const Rows& rows, std::size_t width, HelpExtent extent, std::size_t columns) {
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
      const std::string about = wrapped(row.text, columns, width, width);
      text += gap.empty() ? fmt::format("{:<{}}{}\n", lead, width, about) : lead + gap + about + "\n";
    }
  }
  return text;
}

}  // namespace

std::string help_text(const Rows& rows, const HelpTexts& texts, HelpExtent extent) {
  // Longer lines are hard to read, also where there is room.
  constexpr std::size_t kLines = 24, kColumns = 80, kLeast = 20;
  const std::size_t width = texts.text_column;
  const std::size_t columns = std::clamp(stdout_columns().value_or(kColumns), width + kLeast, kColumns);
  const auto text = [&](HelpExtent shown, const std::string& below) {
    return fmt::format("{}\n{}\n{}\n", reflowed(texts.head, columns), options_text(rows, width, shown, columns),
                       reflowed(below, columns));
  };
  std::string all = text(HelpExtent::all, texts.footer);
  if (extent == HelpExtent::all || std::ranges::count(all, '\n') <= static_cast<std::ptrdiff_t>(kLines)) return all;
  return text(HelpExtent::everyday, fmt::format("{}{}{} --help-all: all options, and more about each.", texts.brief,
                                                texts.brief.empty() ? "" : "\n", texts.tool));
}

std::string listed_options(const Rows& rows, const std::vector<std::string_view>& words) {
  const auto choices = [](const OptionRow& row) {
    constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{"FILE", "<file>"},
                                                                        {"DIR", "<directory>"},
                                                                        {"PROGRAM", "<command>"},
                                                                        {"COMMAND", "<command>"},
                                                                        {"HOST", "<host>"}};
    if (!row.set.choices.empty()) return fmt::format("{}", fmt::join(row.set.choices, " "));
    const auto* kind = std::ranges::find(kKinds, row.value, &Pair::first);
    return kind == std::end(kKinds) ? std::string() : std::string(kind->second);
  };
  std::string text = fmt::format(";;{};\n", fmt::join(words, " "));
  for (const OptionRow& row : rows) {
    if (!row.group.empty())
      text += fmt::format("{};{};{};{}{}\n", row.names, row.value, choices(row), row.repeats ? "*" : "", row.text);
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

void Values::add(const OptionRow& row, Given given) {
  std::vector<Given>& here = values_[index(row)];
  // Somebody may repeat on the command line what a file says as well; a fault is not to be injected twice.
  if (row.repeats)
    std::erase_if(here, [&](const Given& known) { return known.text == given.text; });
  else if (row.is_flag() || (!here.empty() && here.front().source < given.source))
    here.clear();
  else if (!here.empty())
    throw UsageError(given_twice(here.front().said_as, given.said_as));
  here.push_back(std::move(given));
}

void Values::apply() const {
  for (const OptionRow& row : *rows_) {
    for (const Given& given : all(row)) {
      if (row.set && !(row.is_flag() && given.text != "1")) row.set(given.said_as, given.text);
    }
  }
}

const Given* Values::first_of(const std::vector<std::string_view>& names) const {
  const auto found = std::ranges::find_if(names, [&](std::string_view name) { return has(name); });
  return found == names.end() ? nullptr : find(*found);
}

std::size_t Values::index(std::string_view name) const {
  const OptionRow* row = find_option(*rows_, name);
  if (row == nullptr) throw std::logic_error(fmt::format("there is no option {}", name));
  return index(*row);
}

std::optional<std::string> OptionTable::parse(const std::vector<std::string>& arguments, std::size_t most_words) {
  const auto add_text = [this](std::string_view names, std::string text) {
    add({.group = kOther, .names = names, .value = "", .text = std::move(text), .shown = HelpExtent::all});
  };
  add_text("-h,--help", "print the options of every day and end");
  add_text("--help-all", "print this text and end");
  add_text("--version", "print the version and end");
  if (!arguments.empty() && arguments.back() == kListOptions)
    return listed_options(rows_, most_words == 0 ? std::vector<std::string_view>() : offered_);
  parsed_ = parse_words(rows_, arguments, {.tool = texts_.tool});
  if (words().size() > most_words)
    throw UsageError("unexpected argument '{}'{}", words()[most_words],
                     most_words == 0 ? fmt::format("; {} takes options only", texts_.tool) : "");
  if (values().has("--help-all")) return help_text(rows_, texts_, HelpExtent::all);
  if (values().has("--help")) return help_text(rows_, texts_, HelpExtent::everyday);
  if (values().has("--version")) return version_line(texts_.tool.substr(0, texts_.tool.find(' '))) + "\n";
  return std::nullopt;
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
