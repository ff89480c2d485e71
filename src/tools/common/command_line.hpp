// The options of a tool: one row each, which the parser, its messages and --help all read.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace col::tools {

// The command line cannot be used. what() is one line: what is wrong, and what to write instead.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  template <class Arg, class... Args>
  explicit UsageError(fmt::format_string<Arg, Args...> message, Arg&& arg, Args&&... args)
      : std::runtime_error(fmt::format(message, std::forward<Arg>(arg), std::forward<Args>(args)...)) {}
};

// How many options --help shows: those of every day, or all.
enum class HelpExtent { everyday, all };

struct OptionRow {
  std::string_view group;  // its heading in --help; empty: neither --help nor a message shows it
  std::string_view names;  // "-n,--ranks,--np"
  std::string_view value;  // "N"; empty for a flag
  std::string text;        // for --help
  // Takes the value: called with the name that the user wrote, for messages.
  std::function<void(const std::string& name, const std::string& value)> set = {};
  HelpExtent shown = HelpExtent::everyday;  // the least that shows it
  bool repeats = false;                     // may be given several times, and all values count

  bool is_flag() const noexcept { return value.empty(); }
  std::vector<std::string_view> all_names() const;
  // The first long name without its dashes: "ranks".
  std::string_view key() const noexcept;
  bool is_named(std::string_view name) const;
};

// By any of its names; null if there is no option of that name.
const OptionRow* find_option(const std::vector<OptionRow>& rows, std::string_view name);

// For OptionRow::set: `place` becomes what `read(name, value)` returns.
template <class Place, class Read>
auto into(Place& place, Read read) {
  return [&place, read](const std::string& name, const std::string& value) { place = read(name, value); };
}
inline std::string as_written(const std::string&, const std::string& value) {
  return value;
}
// For a flag.
template <class Place>
auto becomes(Place& place, Place result) {
  return [&place, result](const std::string&, const std::string&) { place = result; };
}

// The groups of --help, a line for each row; texts begin at column `width`, and go on there beyond `columns`; 0: never.
std::string options_text(const std::vector<OptionRow>& rows, std::size_t width, HelpExtent extent = HelpExtent::all,
                         std::size_t columns = 0);
// "; did you mean '--np'?", or nothing if no name is near.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& known);
// "-n was given twice; give it once"; "--np was given twice (first by -n); give it once".
std::string given_twice(std::string_view first, std::string_view again);
// "unknown option '--nup'; did you mean '--np'?"
std::string unknown_option(std::string_view name, const std::vector<OptionRow>& rows);

// The command line of a tool whose options and words may stand in any order.
class OptionTable {
 public:
  // `tool` is "colbench noise"; `head` and `footer` stand above and below the options in --help-all. --help, which fits
  // 24 lines of 80 columns, has all of that if there is room, and else the options of every day and `brief`.
  OptionTable(std::string tool, std::string head, std::string footer, std::string brief = {});

  void add(OptionRow row);
  // Adds -h, --help, --help-all and --version, and parses. Returns the text to print instead of all else, if there is
  // one. An option takes the argument behind it for its value, unless that is an option too; an argument that is no
  // option is a word, as long as there are at most `most_words`. Throws UsageError, for an unknown option with the
  // nearest name.
  std::optional<std::string> parse(const std::vector<std::string>& arguments, std::size_t most_words = 0);
  // Calls `set` of what was given, in the order of the rows.
  void apply() const;

  struct Given {
    std::string name;   // as the user wrote it
    std::string value;  // empty for a flag
  };
  bool is_given(std::string_view name) const { return find(name) != nullptr; }
  // By any of its names; null if it was not given.
  const Given* find(std::string_view name) const;
  void forget(std::string_view name) { given_[index(*find_option(rows_, name))].clear(); }
  // The first of `names` that was given, as the user wrote it; empty when none was.
  std::string_view first_given(const std::vector<std::string_view>& names, std::string_view but = {}) const;
  // All that --help shows.
  std::vector<std::string_view> names() const;
  const std::vector<std::string>& words() const { return words_; }

 private:
  void take(const std::vector<std::string>& arguments, std::size_t most_words);
  std::string help(HelpExtent extent) const;
  std::size_t index(const OptionRow& row) const { return static_cast<std::size_t>(&row - rows_.data()); }

  std::string tool_, head_, footer_, brief_;
  std::vector<OptionRow> rows_;
  std::vector<std::vector<Given>> given_;  // of each row
  std::vector<std::string> words_;
};

// What a tool says of a UsageError, without a newline: "colrun: …; see colrun --help".
std::string usage_line(std::string_view tool, std::string_view what);

// What `--version` of a tool prints: "colrun 0.1.0".
std::string version_line(std::string_view tool);

// The path of the running program. Throws std::system_error.
std::string own_path();

}  // namespace col::tools
