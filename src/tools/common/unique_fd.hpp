// An owned file descriptor: that of the library.
#pragma once

#include "core/unique_fd.hpp"

namespace col::tools {

using core::UniqueFd;

}  // namespace col::tools
