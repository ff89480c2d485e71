// What coljob does. Each returns the exit code.
#pragma once

#include "coljob/options.hpp"

namespace col::coljob {

// Throws NoJob, tools::UsageError, tools::WriteError.
int run(const Options& options);

}  // namespace col::coljob
