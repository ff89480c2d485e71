// Splits the command line into options, and programs with their arguments.
#pragma once

#include <string>
#include <vector>

#include "colrun/values.hpp"

namespace col::colrun {

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
Arguments take_apart(const std::vector<std::string>& arguments);

}  // namespace col::colrun
