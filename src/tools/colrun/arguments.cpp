// Splits the command line into options, and programs with their arguments.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "colrun/settings.hpp"

namespace col::colrun {
namespace {

using tools::Pair;

// ---- Names that other launchers use for options of colrun -----------------------------------------------------------

// Options of mpirun and mpiexec that mean the same under another name.
constexpr std::array kSame = {
    Pair{"-np", "--np"},
    Pair{"-host", "--host"},
    Pair{"-hosts", "--host"},
    Pair{"--hosts", "--host"},
    Pair{"-hostfile", "--hostfile"},
    Pair{"-machinefile", "--hostfile"},
    Pair{"--machinefile", "--hostfile"},
    Pair{"--tag-output", "--label"},
    Pair{"-prepend-rank", "--label"},
    Pair{"--timestamp-output", "--timestamp"},
};

// What to do instead of options that colrun does not have.
constexpr std::array kInstead = {
    Pair{"--oversubscribe", "colrun allows more ranks than processors; leave it out"},
    Pair{"--allow-run-as-root", "colrun does not mind; leave it out"},
    Pair{"--output-filename", "write --output file=PATTERN, such as file=run/%R.%s"},
    Pair{"--log-dir", "write --output file=PATTERN, such as file=run/%R.%s"},
    Pair{"--redirects", "write --output file=PATTERN, such as file=run/%R.%s"},
    Pair{"--rdzv-conf", "write --rdzv-timeout TIME"},
    Pair{"--genv", "write -x NAME=VALUE"},
    Pair{"-genv", "write -x NAME=VALUE"},
    Pair{"--export", "ranks inherit the environment; write -x NAME=VALUE for what differs"},
    Pair{"--no-python", "colrun runs any program; leave it out"},
    Pair{"-m", "write the program out: python3 -m MODULE"},
    Pair{"--module", "write the program out: python3 -m MODULE"},
    Pair{"-N", "write -n N, which counts the ranks of each node, or --nnodes N for nodes"},
    Pair{"-ppn", "write -n N, which counts the ranks of each node"},
    Pair{"-t", "write --timeout TIME, --tee or --timestamp"},
};

constexpr tools::Grammar kGrammar{.before_program = true, .also = kSame, .instead = kInstead};

// ---- The command line -----------------------------------------------------------------------------------------------

// "\:" with any number of backslashes.
bool is_escaped_colon(const std::string& argument) {
  return argument.size() > 1 && argument.back() == ':' && argument.find_first_not_of('\\') == argument.size() - 1;
}

void check_place(const Values& values) {
  for (const OptionRow& row : values.rows()) {
    if (values.all(row).empty() || row.is_named("--np") || row.is_named("--env")) continue;
    throw UsageError("{} is for the whole job: write it before the first program (after a ':' there may be -n and -x)",
                     values.all(row).front().said_as);
  }
}

// A file's options are written out where the command line is to be repeated.
void add_without_config(std::vector<std::string>& written, std::span<const std::string> options) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i] == "--config")
      ++i;
    else if (!options[i].starts_with("--config="))
      written.push_back(options[i]);
  }
}

}  // namespace

Values read_options(const Rows& rows, const std::vector<std::string>& words, const std::vector<Setting>& settings) {
  return tools::parse_words(rows, words, kGrammar, settings).values;
}

Arguments take_apart(const std::vector<std::string>& arguments, const Rows& rows) {
  Arguments result;
  std::span<const std::string> left(arguments);
  const auto written = [&](std::span<const std::string> words) {
    result.written.insert(result.written.end(), words.begin(), words.end());
  };
  for (bool first = true, more = true; more; first = false) {
    auto [values, words] = tools::parse_words(rows, {left.begin(), left.end()}, kGrammar);
    if (!first) check_place(values);
    const auto options = left.first(left.size() - words.size());
    add_without_config(result.written, options);
    left = left.last(words.size());

    const auto colon = static_cast<std::size_t>(std::ranges::find(left, ":") - left.begin());
    more = colon < left.size();
    auto program = left.first(colon);
    written(left.first(more ? colon + 1 : colon));
    left = left.subspan(more ? colon + 1 : colon);
    if (!program.empty() && program.front() == "--") program = program.subspan(1);
    if (program.empty() && !(first && !more))
      throw UsageError("no program {} ':'; an argument that is a colon is written '\\:'", first ? "before" : "after");
    result.parts.push_back({std::move(values), {options.begin(), options.end()}, {}});
    for (const std::string& word : program)
      result.parts.back().command.push_back(is_escaped_colon(word) ? word.substr(1) : word);
  }
  return result;
}

}  // namespace col::colrun
