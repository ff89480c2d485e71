// What the command lines of the tools have in common.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace col::tools {

// The command line cannot be used. what() is one line: what is wrong, and what to write instead.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An option with a value, and a flag, in a group of --help. If an option is given twice, the last one counts.
CLI::Option* add_option(CLI::App& app, const char* group, const std::string& name, std::string& value, const char* type,
                        const std::string& description);
CLI::Option* add_flag(CLI::App& app, const char* group, const std::string& name, const std::string& description);
// -h, --help and --version, in `group`. `usage` is the first line of --help, `footer` its end.
void add_help(CLI::App& app, const char* group, const std::string& usage, const std::string& footer);
// What `app` prints for --help.
std::string help_of(const CLI::App& app);
// "--np" and all other options that --help shows.
std::vector<std::string> option_names(const CLI::App& app);

// Joins options and values: "--np", "1-9" becomes "--np=1-9", so that no value can be mistaken for an option. Arguments
// that are not options stay in place, as long as there are fewer than `most_words` of them. Throws UsageError; for an
// unknown option it has the nearest name.
std::vector<std::string> join_values(const CLI::App& app, const std::vector<std::string>& arguments,
                                     std::size_t most_words = 0);

// The path of the running program. Throws std::system_error.
std::string own_path();

}  // namespace col::tools
