#include "colrun/arguments.hpp"

#include <optional>

#include <fmt/format.h>

#include "colrun/spellings.hpp"

namespace col::colrun {
namespace {

[[noreturn]] void refuse_unknown(const std::string& name) {
  if (const auto instead = instead_of(name)) throw UsageError(fmt::format("unknown option '{}': {}", name, *instead));
  throw UsageError(fmt::format("unknown option '{}'{}", name, did_you_mean_option(name)));
}

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-';
}

// "\:" with any number of backslashes.
bool is_escaped_colon(const std::string& argument) {
  return argument.size() > 1 && argument.back() == ':' && argument.find_first_not_of('\\') == argument.size() - 1;
}

class Scanner {
 public:
  explicit Scanner(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Arguments run() {
    Arguments result;
    do {
      Part part;
      first_ = result.parts.empty();
      take_options(part.values);
      part.command = take_command();
      const bool only = first_ && at_end();
      if (part.command.empty() && !only) {
        throw UsageError(fmt::format("no program {} ':'; an argument that is a colon is written '\\:'",
                                     first_ ? "before" : "after"));
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
    if (take_negation(name, equals != std::string::npos, values)) return;
    const OptionRow* row = find_option(name);
    if (row == nullptr) refuse_unknown(written);
    check_place(*row, written);
    if (!row->is_flag()) {
      const bool joined = equals != std::string::npos;
      take_value(*row, written, joined ? std::optional(argument.substr(equals + 1)) : std::nullopt, values);
      return;
    }
    if (equals != std::string::npos) throw UsageError(fmt::format("{} takes no value", written));
    keep();
    values.add(*row, {Source::command_line, written, "1"});
  }

  // "--no-tee": what a variable or a file has switched on is off.
  bool take_negation(const std::string& name, bool has_value, Values& values) {
    if (!name.starts_with("--no-")) return false;
    const OptionRow* row = find_option("--" + name.substr(5));
    if (row == nullptr || !row->is_flag() || !row->is_setting()) return false;
    if (has_value) throw UsageError(fmt::format("{} takes no value", name));
    check_place(*row, name);
    keep();
    values.add(*row, {Source::command_line, name, "0"});
    return true;
  }

  // Short ones may stand together: -ln 4. The value may be joined: -n4, -n=4.
  void take_short(const std::string& argument, Values& values) {
    for (std::size_t letter = 1; letter < argument.size(); ++letter) {
      const std::string name{'-', argument[letter]};
      const OptionRow* row = find_option(name);
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
      if (rest.starts_with('=')) throw UsageError(fmt::format("{} takes no value", name));
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
    if (!joined || joined->empty()) throw UsageError(fmt::format("{} needs a value: {} {}", name, name, row.value));
    values.add(row, {Source::command_line, name, std::move(*joined)});
  }

  void check_place(const OptionRow& row, const std::string& name) const {
    const bool everywhere = row.option == Option::ranks_per_node || row.option == Option::env;
    if (first_ || everywhere) return;
    throw UsageError(
        fmt::format("{} is for the whole job: write it before the first program (after a ':' there may be "
                    "-n and -x)",
                    name));
  }

  const std::vector<std::string>& arguments_;
  std::vector<std::string> written_;
  std::size_t position_ = 0;
  bool first_ = true;
};

}  // namespace

Arguments take_apart(const std::vector<std::string>& arguments) {
  return Scanner(arguments).run();
}

}  // namespace col::colrun
