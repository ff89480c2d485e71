// The options of a tool: one row each, which the parser, its messages and --help all read.
#pragma once

#include <functional>
#include <optional>
#include <span>
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

// The group of the options that are for the command line only. All others may be variables and lines of files.
inline constexpr std::string_view kOther = "Other";

// Takes the value of an option: called with the name that the user wrote, for messages.
struct Take : std::function<void(const std::string& name, const std::string& value)> {
  using function::function;
  // For completions: words, or <file>, <directory>, <command>, <host>, <variable>, <job>.
  std::vector<std::string_view> choices = {};
};

struct OptionRow {
  std::string_view group;  // its heading in --help; empty: neither --help nor a message shows it
  std::string_view names;  // "-n,--ranks,--np"
  std::string_view value;  // "N"; empty for a flag
  std::string text;        // for --help
  Take set = {};
  HelpExtent shown = HelpExtent::everyday;  // the least that shows it
  bool repeats = false;                     // may be given several times, and all values count

  bool is_flag() const noexcept { return value.empty(); }
  bool is_setting() const noexcept { return !group.empty() && group != kOther; }
  std::vector<std::string_view> all_names() const;
  // The first long name without its dashes: "ranks".
  std::string_view key() const noexcept;
  bool is_named(std::string_view name) const;
};
using Rows = std::vector<OptionRow>;

// By any of its names; null if there is no option of that name.
const OptionRow* find_option(const Rows& rows, std::string_view name);

// ---- What was given
// --------------------------------------------------------------------------------------------------

// A later source wins over an earlier one.
enum class Source { config_file, environment, command_line };

struct Given {
  Source source = Source::command_line;
  std::string said_as;  // for messages: "-n", "COLRUN_NP", "job.conf:3: np"
  std::string text;     // of a flag: "1" or "0"
};

// The texts given for each row, before they are read. Options go by any of their names, which must be one of a row.
class Values {
 public:
  // `rows` must outlive it.
  explicit Values(const Rows& rows) : rows_(&rows), values_(rows.size()) {}

  // Sources come in ascending order. Values of a row that repeats add up, each text once; else the last source counts.
  // Throws UsageError if an option that takes one value already has one from this source.
  void add(const OptionRow& row, Given given);
  void erase(std::string_view name) { values_[index(name)].clear(); }
  // Calls `set` of all that was given and is not off, in the order of the rows.
  void apply() const;

  const Rows& rows() const { return *rows_; }
  const std::vector<Given>& all(std::string_view name) const { return values_[index(name)]; }
  const std::vector<Given>& all(const OptionRow& row) const { return values_[index(row)]; }
  bool has(std::string_view name) const { return !all(name).empty(); }
  // Null if no source has set it.
  const Given* find(std::string_view name) const { return has(name) ? &all(name).back() : nullptr; }
  // The first of them that a source has set; null if there is none.
  const Given* first_of(const std::vector<std::string_view>& names) const;
  // True if a flag is on.
  bool is_on(std::string_view name) const { return has(name) && all(name).back().text == "1"; }

 private:
  std::size_t index(const OptionRow& row) const { return static_cast<std::size_t>(&row - rows_->data()); }
  std::size_t index(std::string_view name) const;

  const Rows* rows_;
  std::vector<std::vector<Given>> values_;
};

// ---- Parsing
// ---------------------------------------------------------------------------------------------------------

using Pair = std::pair<std::string_view, std::string_view>;

struct Grammar {
  std::string_view tool = {};  // for what it once had: gone.hpp
  // The first word that is no option, or "--", ends the options. Flags may be repeated, and --no-FLAG switches one off.
  // Names may have underscores for dashes.
  bool before_program = false;
  std::span<const Pair> also = {};     // further names, and the option that each means: {"-np", "--np"}
  std::span<const Pair> instead = {};  // names that are none, and what to do in place of them
};

// From elsewhere than the command line. For a flag, "1" or "0".
struct Setting {
  const OptionRow* row;
  Given given;
};

struct Parsed {
  Values values;
  std::vector<std::string> words;  // that belong to no option; before a program: from "--" or the program on
};

// By CLI11: `settings`, and then the command line. An option takes the word behind it for its value, unless that is an
// option too; "-n4", "-n=4", "--np=4" and "-ln 4" are the same as "-l -n 4". Throws UsageError, for an unknown option
// with the nearest name. `rows` must outlive the result.
Parsed parse_words(const Rows& rows, const std::vector<std::string>& arguments, const Grammar& grammar = {},
                   const std::vector<Setting>& settings = {});

// The text of --help around the options. Lines of a paragraph are joined, and wrapped for the terminal; one that begins
// with a space or "Usage:" stays alone.
struct HelpTexts {
  std::string tool;  // "colbench noise"
  std::string head, footer;
  std::string brief = {};        // in place of the footer, where only the options of every day are shown
  std::size_t text_column = 26;  // where the texts of options begin
};

// --help fits 24 lines of 80 columns: it has all, if there is room for that, and else the options of every day. No line
// is wider than the terminal, as far as words allow.
std::string help_text(const Rows& rows, const HelpTexts& texts, HelpExtent extent);

// The command line of a tool whose options and words may stand in any order.
class OptionTable {
 public:
  explicit OptionTable(HelpTexts texts) : texts_(std::move(texts)) {}

  void add(OptionRow row) { rows_.push_back(std::move(row)); }
  // For completions: what may stand where no option does, as Take::choices.
  void offer(std::vector<std::string_view> words) { offered_ = std::move(words); }
  // Adds -h, --help, --help-all and --version, and parses. Returns the text to print instead of all else, if there is
  // one; behind kListOptions, that is listed_options(). At most `most_words` may be no options. Throws UsageError.
  std::optional<std::string> parse(const std::vector<std::string>& arguments, std::size_t most_words = 0);

  Values& values() { return parsed_->values; }
  const Values& values() const { return parsed_->values; }
  const std::vector<std::string>& words() const { return parsed_->words; }

 private:
  HelpTexts texts_;
  Rows rows_;
  std::vector<std::string_view> offered_;
  std::optional<Parsed> parsed_;
};

// ---- Texts
// -----------------------------------------------------------------------------------------------------------

// For completions, which ask by kListOptions: a line "names;value;choices;text" for each option, text with a "*" before
// it if the option repeats; and one without names for other words.
inline constexpr std::string_view kListOptions = "--list-options";
std::string listed_options(const Rows& rows, const std::vector<std::string_view>& words);
// "; did you mean '--np'?", or nothing if no name is near.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& known);
// "-n was given twice; give it once"; "--np was given twice (first by -n); give it once".
std::string given_twice(std::string_view first, std::string_view again);

// What a tool says of a UsageError, without a newline: "colrun: …; see colrun --help".
std::string usage_line(std::string_view tool, std::string_view what);

// What `--version` of a tool prints: "colrun 0.1.0".
std::string version_line(std::string_view tool);

// The path of the running program. Throws std::system_error.
std::string own_path();

}  // namespace col::tools
