// Durations as people write them: "500ms", "30s", "5m", "2h".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <col/types.hpp>

#include "core/export/module_export.hpp"

namespace col::core {

// A decimal number ("30", "0.5") with one of the units ms, s, m, h; without a unit, seconds. Nothing if it is
// malformed, below 1 ns or above a year.
COL_MODULE_EXPORT std::optional<Duration> parse_duration(std::string_view text) noexcept;

// For messages: the shortest of "250ns", "12us", "500ms", "1.5s", "90s", "5m", "2h" that is exact to three decimals.
std::string format_duration(Duration duration);

}  // namespace col::core
