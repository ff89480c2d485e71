// The texts of --help and --help-all.
#pragma once

#include <string>

namespace col::colrun {

enum class HelpExtent { everyday, all };

// `default_ranks` is the number of ranks that -n auto gives here.
std::string help_text(HelpExtent extent, int default_ranks);

}  // namespace col::colrun
