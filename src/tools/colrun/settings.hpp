// The values of options: their sources (the command line, the environment, a file), and how these combine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/command_line.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

using tools::Given;
using tools::HelpExtent;
using tools::OptionRow;
using tools::Rows;
using tools::Setting;
using tools::Source;
using tools::UsageError;
using tools::Values;

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

// By "np" or "n"; null if no setting has that name. Underscores count as dashes.
const OptionRow* find_setting(const Rows& rows, std::string_view key);

// "max-restarts" is COLRUN_MAX_RESTARTS.
inline constexpr std::string_view kVariablePrefix = "COLRUN_";
std::string variable_of(std::string_view key);

// One part of "colrun [options] a : [options] b".
struct Part {
  Values values;                     // of the first part: also the options of the job
  std::vector<std::string> options;  // the words that say them
  std::vector<std::string> command;  // as the program gets it
};

struct Arguments {
  std::vector<Part> parts;           // at least one; if there is only one, its command may be empty
  std::vector<std::string> written;  // all arguments except --config, unchanged
};

// Options end at the first argument that is not an option, or at "--". A ":" by itself among the arguments of a program
// ends them and begins the next part. "\:" is the argument ":" ("\\:" is "\:", and so on). Throws UsageError.
Arguments take_apart(const std::vector<std::string>& arguments, const Rows& rows);

// The values of `settings`, and of `words`, which are options alone. Throws UsageError.
Values read_options(const Rows& rows, const std::vector<std::string>& words, const std::vector<Setting>& settings);

// Options from a file of lines "option = value". The names are the long ones, without dashes. The value of a flag is
// 1, 0, yes or no. A value may be in quotes. `path` is for messages. Throws UsageError that names the line.
std::vector<Setting> parse_config(const Rows& rows, std::string_view text, const std::string& path);

struct Settings {
  Values values;                           // of all sources
  std::vector<std::string> warnings = {};  // a line each
  std::vector<std::string> command_line =
      {};  // options that express what environment and file say, if it has an effect
};

// Reads the variables COLRUN_* and the file of --config or COLRUN_CONFIG. The command line wins over the environment,
// and the environment wins over the file. Throws UsageError.
Settings collect_settings(const Part& command_line, const Surroundings& surroundings);

// Finds options that are right by themselves, but cannot be used together. `spec` is what was read from `values`. For
// the first conflict, throws UsageError that says what to write instead.
void check_conflicts(const Values& values, const Surroundings& surroundings, const launch::JobSpec& spec);

}  // namespace col::colrun
