#include "colrun/options.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/numbers.hpp"
#include "common/version.hpp"
#include "launch/job_spec.hpp"

namespace col::colrun {
namespace {

class Help : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: colrun [options] [--] program [arguments]\n";
  }
};

constexpr const char* kExamples =
    "Examples:\n"
    "  colrun -n 4 ./my_trainer --epochs 3\n"
    "  colrun -n 2 --label sh -c 'echo rank $COL_RANK of $COL_WORLD_SIZE'\n"
    "\n"
    "Exit code: 0 when all ranks return 0, else that of the first rank that failed on its own (128 + signal when a\n"
    "signal killed it); 2 usage, 125 colrun failed, 126 not executable, 127 not found; 141 the output's reader is "
    "gone.";

// Whether `name` ("-n", "--np") takes the next argument as its value.
bool takes_value(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0;
}

// How many arguments from `first` on belong to one option; 0 when `first` starts the program.
std::size_t option_length(const CLI::App& app, const std::string& first) {
  if (first.size() < 2 || first[0] != '-') return 0;
  if (first[1] == '-') return first.find('=') == std::string::npos && takes_value(app, first) ? 2 : 1;
  // Short ones may stand together: -ln 4. The value may be joined: -n4.
  for (std::size_t letter = 1; letter < first.size(); ++letter) {
    if (takes_value(app, {'-', first[letter]})) return letter + 1 == first.size() ? 2 : 1;
  }
  return 1;
}

// Other launchers' spellings of -n: mpirun's -np is no short option by the usual rules, torchrun takes underscores too.
std::string normalise(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  if (name == "-np") return "-" + argument;
  return name == "--nproc_per_node" ? "--nproc-per-node" + argument.substr(name.size()) : argument;
}

// What the parser would say about "--name=value" in words of its own.
void check_joined_value(const CLI::App& app, const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return;
  const std::string name = argument.substr(0, equals);
  if (app.get_option_no_throw(name) == nullptr) return;
  if (!takes_value(app, name)) throw UsageError(fmt::format("{} takes no value", name));
  if (equals + 1 == argument.size()) throw UsageError(fmt::format("{} needs a value", name));
}

// Divides the command line: what is returned is for CLI11, the rest goes to `command` and is not ours to judge.
std::vector<std::string> take_own(const CLI::App& app, const std::vector<std::string>& arguments,
                                  std::vector<std::string>& command) {
  std::vector<std::string> own;
  std::size_t position = 0;
  while (position < arguments.size()) {
    const std::string argument = normalise(arguments[position]);
    if (argument == "--") {
      ++position;
      break;
    }
    const std::size_t length = option_length(app, argument);
    if (length == 0) break;
    if (position + length > arguments.size()) throw UsageError(fmt::format("{} needs a value", arguments[position]));
    check_joined_value(app, argument);
    own.push_back(argument);
    if (length == 2) own.push_back(arguments[position + 1]);
    position += length;
  }
  command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(position), arguments.end());
  return own;
}

// CLI11 leaves one or two empty lines between groups, depending on its version.
std::string help_of(const CLI::App& app) {
  std::string text = app.help();
  for (std::size_t gap; (gap = text.find("\n\n\n")) != std::string::npos;) text.erase(gap, 1);
  return text;
}

int parse_ranks(const std::string& text) {
  const auto ranks = tools::parse_whole_number(std::string_view(text), 1, launch::kMaxRanks);
  if (!ranks) {
    throw UsageError(fmt::format("-n takes a whole number from 1 to {}, not '{}'", launch::kMaxRanks, text));
  }
  return *ranks;
}

}  // namespace

Request parse_command_line(const std::vector<std::string>& arguments, int default_ranks) {
  CLI::App app{"Runs a program as several ranks on this machine.", "colrun"};
  app.formatter(std::make_shared<Help>());
  app.get_formatter()->column_width(36);
  app.footer(kExamples);
  std::string ranks;
  Options options;
  app.add_option("-n,--np,--nproc-per-node", ranks,
                 fmt::format("how many ranks; default: usable CPUs (here {})", default_ranks))
      ->type_name("N")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group("Ranks");
  bool standalone = false;
  app.add_flag("--standalone", standalone, "accepted for torchrun's sake: every job is one")
      ->disable_flag_override()
      ->group("Ranks");
  app.add_flag("-l,--label", options.label, "begin every line of output with its rank: [3] line")
      ->disable_flag_override()
      ->group("Output");
  app.set_help_flag("-h,--help", "print this text and end")->group("Other");
  app.set_version_flag("--version", tools::version_line("colrun"), "print the version and end")->group("Other");

  std::vector<std::string> own = take_own(app, arguments, options.command);
  try {
    std::reverse(own.begin(), own.end());  // what CLI11 expects of a vector
    app.parse(own);
  } catch (const CLI::CallForHelp&) {
    return help_of(app);
  } catch (const CLI::CallForVersion& version) {
    return std::string(version.what()) + "\n";
  } catch (const CLI::ExtrasError&) {
    const auto unknown = app.remaining();
    throw UsageError(fmt::format("unknown option '{}'", unknown.empty() ? "" : unknown.front()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  if (app.count("--np") > 1) throw UsageError("-n was given twice; give it once");
  options.ranks = ranks.empty() && app.count("--np") == 0 ? default_ranks : parse_ranks(ranks);
  if (options.command.empty() || options.command.front().empty()) {
    throw UsageError("no program to run: colrun [options] program [arguments]");
  }
  return options;
}

}  // namespace col::colrun
