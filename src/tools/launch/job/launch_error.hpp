// Why a job could not be started; used inside the engine. run() turns it into a JobResult.
#pragma once

#include "common/guarded.hpp"

namespace col::launch {

class LaunchError : public tools::ToolError {
 public:
  using ToolError::ToolError;
};

}  // namespace col::launch
