// The command line of coljob.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <col/types.hpp>

namespace col::coljob {

struct Options {
  enum class Command { ps, why, top, stacks, dump };
  Command command = Command::ps;
  std::string job;  // what names it; empty: the only one
  std::vector<std::string> directories = {};
  Duration patience = {};  // a wait that has lasted for longer is a hang
  std::string output = {};
  bool json = false;
};

// A text to print instead, or what to do. Throws tools::UsageError.
std::variant<std::string, Options> parse_options(const std::vector<std::string>& arguments);

// Throws NoJob, tools::UsageError, tools::WriteError.
int run(const Options& options);

}  // namespace col::coljob
