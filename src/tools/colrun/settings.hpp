// Options from the environment and a file, and how they combine with those of the command line.
#pragma once

#include <string>
#include <vector>

#include "colrun/surroundings.hpp"
#include "colrun/values.hpp"

namespace col::colrun {

struct Settings {
  Values values;                          // of all sources
  std::vector<std::string> warnings;      // a line each
  std::vector<std::string> command_line;  // options that express what environment and file say, if it has an effect
};

// Reads the variables COLRUN_* and the file of --config or COLRUN_CONFIG. The command line wins over the environment,
// and the environment wins over the file. Throws UsageError.
Settings collect_settings(const Values& command_line, const Surroundings& surroundings);

}  // namespace col::colrun
