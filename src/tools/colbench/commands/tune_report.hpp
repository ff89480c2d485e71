// The results of tuning: as rules, and in words.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colbench/commands/selection_text.hpp"
#include "colbench/commands/tuner.hpp"

namespace col::colbench {

// A rule for each range. The first one has no lower end, and the last one no upper end: for sizes beyond the measured
// ones, the nearest result is the best that is known. A rule's upper end is the last size at which its algorithm was as
// good as the next one's.
std::vector<TunedRule> rules_of(const TunedSeries& series);

// "allreduce, 4 ranks, shm: up to 12K bde (1.31 times as fast as ring, the next); above rabenseifner (…)".
std::string series_text(const TunedSeries& series);

// The algorithm that another table would take at a size; nothing if it has none.
using OtherChoice = std::function<std::optional<std::string>(const CellSpec& cell)>;
// What would change compared with that table. Sizes with the same change are joined. Empty if nothing would change.
std::vector<std::string> changes_of(const TunedSeries& series, const OtherChoice& other);

}  // namespace col::colbench
