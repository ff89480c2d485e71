// Splits the command line into options, and programs with their arguments.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "colrun/settings.hpp"

namespace col::colrun {
namespace {

// ---- Names that other launchers use for options of colrun -----------------------------------------------------------

using Pair = std::pair<std::string_view, std::string_view>;

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

template <std::size_t kSize>
std::optional<std::string_view> look_up(const std::array<Pair, kSize>& table, std::string_view name) {
  const auto found = std::ranges::find_if(table, [&](const Pair& pair) { return pair.first == name; });
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

// torchrun takes underscores too.
std::string with_dashes(std::string_view name) {
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  return dashed;
}

// `argument` in colrun's spelling: "-np" is "--np", "--nproc_per_node=4" is "--nproc-per-node=4". Other arguments are
// unchanged.
std::string own_spelling(const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  const std::string rest = argument.substr(name.size());
  if (const auto same = look_up(kSame, name)) return std::string(*same) + rest;
  return name.starts_with("--") ? with_dashes(name) + rest : argument;
}

// ---- The command line -----------------------------------------------------------------------------------------------

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-';
}

// "\:" with any number of backslashes.
bool is_escaped_colon(const std::string& argument) {
  return argument.size() > 1 && argument.back() == ':' && argument.find_first_not_of('\\') == argument.size() - 1;
}

class Scanner {
 public:
  Scanner(const std::vector<std::string>& arguments, const Rows& rows) : arguments_(arguments), rows_(rows) {}

  Arguments run() {
    Arguments result;
    do {
      Part part{Values(rows_), {}};
      first_ = result.parts.empty();
      take_options(part.values);
      part.command = take_command();
      const bool only = first_ && at_end();
      if (part.command.empty() && !only) {
        throw UsageError("no program {} ':'; an argument that is a colon is written '\\:'",
                         first_ ? "before" : "after");
      }
      result.parts.push_back(std::move(part));
    } while (take_colon());
    result.written = std::move(written_);
    return result;
  }

 private:
  bool at_end() const { return position_ == arguments_.size(); }
  const std::string& here() const { return arguments_[position_]; }
  void keep() { written_.push_back(arguments_[position_++]); }

  bool take_colon() {
    if (at_end()) return false;
    keep();
    return true;
  }

  void take_options(Values& values) {
    while (!at_end() && is_option(here())) {
      if (here() == "--") {
        keep();
        return;
      }
      const std::size_t begin = written_.size();
      const std::string argument = own_spelling(here());
      if (argument.starts_with("--"))
        take_long(argument, values);
      else
        take_short(argument, values);
      // A file's options are written out where the command line is to be repeated.
      if (argument.starts_with("--config")) written_.resize(begin);
    }
  }

  std::vector<std::string> take_command() {
    std::vector<std::string> command;
    while (!at_end() && here() != ":") {
      command.push_back(is_escaped_colon(here()) ? here().substr(1) : here());
      keep();
    }
    return command;
  }

  void take_long(const std::string& argument, Values& values) {
    const std::size_t equals = argument.find('=');
    const std::string written = here().substr(0, here().find('='));
    const std::string name = argument.substr(0, equals);
    if (take_negation(name, written, equals != std::string::npos, values)) return;
    const OptionRow* row = find_option(rows_, name);
    if (row == nullptr) refuse_unknown(written);
    check_place(*row, written);
    if (!row->is_flag()) {
      const bool joined = equals != std::string::npos;
      take_value(*row, written, joined ? std::optional(argument.substr(equals + 1)) : std::nullopt, values);
      return;
    }
    if (equals != std::string::npos) throw UsageError("{} takes no value", written);
    keep();
    values.add(*row, {Source::command_line, written, "1"});
  }

  // "--no-tee": what a variable or a file has switched on is off.
  bool take_negation(const std::string& name, const std::string& written, bool has_value, Values& values) {
    if (!name.starts_with("--no-")) return false;
    const OptionRow* row = find_option(rows_, "--" + name.substr(5));
    if (row == nullptr || !row->is_flag() || !is_setting(*row)) return false;
    if (has_value) throw UsageError("{} takes no value", written);
    check_place(*row, written);
    keep();
    values.add(*row, {Source::command_line, written, "0"});
    return true;
  }

  // Short ones may stand together: -ln 4. The value may be joined: -n4, -n=4.
  void take_short(const std::string& argument, Values& values) {
    for (std::size_t letter = 1; letter < argument.size(); ++letter) {
      const std::string name{'-', argument[letter]};
      const OptionRow* row = find_option(rows_, name);
      if (row == nullptr)
        refuse_unknown(letter == 1 && argument.size() > 2 ? argument.substr(0, argument.find('=')) : name);
      check_place(*row, name);
      std::string rest = argument.substr(letter + 1);
      if (!row->is_flag()) {
        const bool joined = !rest.empty();
        if (rest.starts_with('=')) rest.erase(0, 1);
        take_value(*row, name, joined ? std::optional(rest) : std::nullopt, values);
        return;
      }
      if (rest.starts_with('=')) throw UsageError("{} takes no value", name);
      values.add(*row, {Source::command_line, name, "1"});
    }
    keep();
  }

  void take_value(const OptionRow& row, const std::string& name, std::optional<std::string> joined, Values& values) {
    keep();
    if (!joined && !at_end()) {
      joined = here();
      keep();
    }
    if (!joined || joined->empty()) throw UsageError("{} needs a value: {} {}", name, name, row.value);
    values.add(row, {Source::command_line, name, std::move(*joined)});
  }

  void check_place(const OptionRow& row, const std::string& name) const {
    const bool everywhere = row.is_named("--np") || row.is_named("--env");
    if (first_ || everywhere) return;
    throw UsageError(
        fmt::format("{} is for the whole job: write it before the first program (after a ':' there may be "
                    "-n and -x)",
                    name));
  }

  [[noreturn]] void refuse_unknown(const std::string& name) const {
    if (const auto instead = look_up(kInstead, name)) throw UsageError("unknown option '{}': {}", name, *instead);
    throw UsageError(tools::unknown_option(name, rows_));
  }

  const std::vector<std::string>& arguments_;
  const Rows& rows_;
  std::vector<std::string> written_;
  std::size_t position_ = 0;
  bool first_ = true;
};

}  // namespace

Arguments take_apart(const std::vector<std::string>& arguments, const Rows& rows) {
  return Scanner(arguments, rows).run();
}

}  // namespace col::colrun
