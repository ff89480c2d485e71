// Commands and options that the tools once had. Each is refused by its name, with what to do instead.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace col::tools {

struct Gone {
  std::string_view tool, name, instead;
};
inline constexpr std::array kGone = {
    Gone{"colbench", "bisect",
         "`colbench bidirectional --groups bisect` measures half against half, and `colbench pairs` names slow ranks"},
    Gone{"colbench", "suite", "`colbench allreduce --algo auto,ps_central,ps_sharded` compares parameter servers"},
    Gone{"colcheck", "--python", "`meson test -C build 'python cases'`, in col's sources, checks the Python package"},
    Gone{"colcheck", "--interpreter", "it was about --python, which is gone, too; leave it out"},
};

// "bisect is gone; …"; empty if the tool, or its command ("colbench noise"), never had such a thing.
inline std::string gone_text(std::string_view tool, std::string_view name) {
  for (const Gone& gone : kGone) {
    if (gone.name == name && tool.substr(0, tool.find(' ')) == gone.tool)
      return fmt::format("{} is gone; {}", name, gone.instead);
  }
  return {};
}

}  // namespace col::tools
