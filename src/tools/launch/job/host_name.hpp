#pragma once

#include <string>

namespace col::launch {

// The name of this machine; "unknown" if it has none.
std::string host_name();

}  // namespace col::launch
