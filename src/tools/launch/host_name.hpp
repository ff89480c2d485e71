#pragma once

#include <string>

namespace col::launch {

// What this machine calls itself; "unknown" when it has no name.
std::string host_name();

}  // namespace col::launch
