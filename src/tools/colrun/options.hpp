// The command line of colrun.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace col::colrun {

struct Options {
  int ranks = 1;
  bool label = false;
  std::vector<std::string> command;
};

// The command line cannot be used; what() is one line: what is wrong and what to write instead.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What there is to do: run a job, or print a text (--help, --version) and end.
using Request = std::variant<Options, std::string>;

// Options end at the first argument that is none, or at "--"; the rest is the program's. Throws UsageError.
Request parse_command_line(const std::vector<std::string>& arguments, int default_ranks);

}  // namespace col::colrun
