// The text of configs/selection.json; embed.py makes the source that holds it.
#pragma once

#include <string_view>

namespace col::group {

extern const std::string_view kBuiltInTable;

}  // namespace col::group
