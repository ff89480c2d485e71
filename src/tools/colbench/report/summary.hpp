// What a run amounts to, counted, and in words.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

struct Summary {
  std::size_t rows = 0;
  std::size_t measured = 0;  // rows that have samples
  std::size_t good = 0;      // of those, the ones that are not invalid
  std::size_t invalid = 0;
  std::size_t wrong = 0;      // rows with wrong data
  std::size_t to_verify = 0;  // measured rows whose operation moves data
  std::size_t verified = 0;   // of those, the ones whose data were looked at and right
  std::size_t by_interval = 0, by_time = 0, by_count = 0, by_launches = 0, by_ending = 0;  // why sampling stopped
};
Summary summary_of(const Results& results);

bool is_verified(const Cell& cell);
// The bound over the median; nothing without samples, without a bound, or when the cell is invalid.
std::optional<double> bound_fraction(const Cell& cell, const CellStatistics& statistics);
// The model's time over the median; nothing likewise.
std::optional<double> model_fraction(const Cell& cell, const CellStatistics& statistics);

// "every row is verified", "3 of 160 rows verified", "no row is verified".
std::string verification_text(const Summary& summary);
// "157 rows stopped by interval, 3 by time"; empty when nothing was measured.
std::string stop_text(const Summary& summary);

// A reason why cells count for nothing, and the cells (by index) that have it. In the order of the first of them.
struct Reason {
  std::string text;  // clean, one line
  bool measured = false;
  std::vector<std::size_t> cells;
};
std::vector<Reason> reasons_of(const Results& results);

}  // namespace col::colbench
