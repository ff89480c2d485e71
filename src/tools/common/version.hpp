// What `--version` of a tool prints.
#pragma once

#include <string>
#include <string_view>

namespace col::tools {

// "colrun 0.1.0". COL_TOOLS_VERSION comes from the build file.
inline std::string version_line(std::string_view tool) {
  return std::string(tool) + " " + COL_TOOLS_VERSION;
}

}  // namespace col::tools
