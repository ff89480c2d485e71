// The values of options: their sources (the command line, the environment, a file), and how these combine.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/command_line.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

using tools::HelpExtent;
using tools::OptionRow;
using tools::UsageError;
using Rows = std::vector<OptionRow>;

// The surroundings in which colrun runs.
struct Surroundings {
  std::string self = "colrun";               // argv[0]
  const char* const* environment = nullptr;  // null-terminated, as ::environ; null: none
  // How many processors this process may use. Only called if it matters, for example for -n auto and -n gpu.
  std::function<int()> processors = [] { return 1; };
  std::function<int()> gpus = [] { return 0; };

  // Nothing if the variable is not set.
  std::optional<std::string_view> find(std::string_view name) const;
  // The same, but an empty value counts as unset.
  std::optional<std::string_view> variable(std::string_view name) const;
};

// The group of the options that are for the command line only. All others are also variables and lines of files.
inline constexpr std::string_view kNoSettings = "Other";
bool is_setting(const OptionRow& row);
// By "np" or "n"; null if no setting has that name. Underscores count as dashes.
const OptionRow* find_setting(const Rows& rows, std::string_view key);

// "max-restarts" is COLRUN_MAX_RESTARTS.
inline constexpr std::string_view kVariablePrefix = "COLRUN_";
std::string variable_of(std::string_view key);

// A later source wins over an earlier one.
enum class Source { config_file, environment, command_line };

struct Given {
  Source source = Source::command_line;
  std::string said_as;  // for errors: "-n", "COLRUN_NP", "job.conf:3: np"
  std::string text;     // for a flag: "1" or "0"
};

// What was given for each row, before it is interpreted. Options go by any of their names, which must be one of a row.
class Values {
 public:
  // `rows` must outlive it.
  explicit Values(const Rows& rows) : rows_(&rows), values_(rows.size()) {}

  // For a flag, the last value counts. Throws UsageError if an option that takes one value already has one from this
  // source.
  void add(const OptionRow& row, Given given);
  // Takes over the values of `stronger`. They replace the values here; for options with several values, they are added.
  void override_by(const Values& stronger);
  void erase(std::string_view name) { values_[index(name)].clear(); }

  const Rows& rows() const { return *rows_; }
  const std::vector<Given>& all(std::string_view name) const { return values_[index(name)]; }
  const std::vector<Given>& all(const OptionRow& row) const { return values_[index(row)]; }
  bool has(std::string_view name) const { return !all(name).empty(); }
  // Null if no source has set it.
  const Given* find(std::string_view name) const { return has(name) ? &all(name).back() : nullptr; }
  // The first of them that a source has set; null if there is none.
  const Given* first_of(std::initializer_list<std::string_view> names) const;
  // Whether a flag is on.
  bool is_on(std::string_view name) const { return has(name) && all(name).back().text == "1"; }

 private:
  std::size_t index(const OptionRow& row) const { return static_cast<std::size_t>(&row - rows_->data()); }
  std::size_t index(std::string_view name) const;

  const Rows* rows_;
  std::vector<std::vector<Given>> values_;
};

// One part of "colrun [options] a : [options] b".
struct Part {
  Values values;                     // of the first part: also the options of the job
  std::vector<std::string> command;  // as the program gets it
};

struct Arguments {
  std::vector<Part> parts;           // at least one; if there is only one, its command may be empty
  std::vector<std::string> written;  // all arguments except --config, unchanged
};

// Options end at the first argument that is not an option, or at "--". A ":" by itself among the arguments of a program
// ends them and begins the next part. "\:" is the argument ":" ("\\:" is "\:", and so on). Throws UsageError.
Arguments take_apart(const std::vector<std::string>& arguments, const Rows& rows);

// Options from a file of lines "option = value". The names are the long ones, without dashes. The value of a flag is
// 1, 0, yes or no. A value may be in quotes. `path` is for messages. Throws UsageError that names the line.
Values parse_config(const Rows& rows, std::string_view text, const std::string& path);

struct Settings {
  Values values;                           // of all sources
  std::vector<std::string> warnings = {};  // a line each
  std::vector<std::string> command_line =
      {};  // options that express what environment and file say, if it has an effect
};

// Reads the variables COLRUN_* and the file of --config or COLRUN_CONFIG. The command line wins over the environment,
// and the environment wins over the file. Throws UsageError.
Settings collect_settings(const Values& command_line, const Surroundings& surroundings);

// Finds options that are right by themselves, but cannot be used together. `spec` is what was read from `values`. For
// the first conflict, throws UsageError that says what to write instead.
void check_conflicts(const Values& values, const Surroundings& surroundings, const launch::JobSpec& spec);

}  // namespace col::colrun
