// What a run amounts to, counted, and in words.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "colbench/cell/results.hpp"
#include "common/style.hpp"

namespace col::colbench {

struct Summary {
  std::size_t rows = 0;
  std::size_t measured = 0;  // rows that have samples
  std::size_t invalid = 0;
  std::size_t wrong = 0;                          // rows with wrong data
  std::size_t to_verify = 0;                      // measured rows whose operation moves data
  std::size_t verified = 0;                       // of those, the ones whose data were looked at and right
  std::map<std::string, std::size_t> stops = {};  // measured rows by Cell::stop
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

// ---- The facts of a run: what every report begins with --------------------------------------------------------------

// "colbench 0.1.0: 4 ranks on host (8 CPUs, NAME), 3 launches, common start, seed 0x1f", and of GPUs which ones, and
// which NCCL.
std::string run_text(const Results& results);
// "memory in GB/s, alone/together: 32K 88.1/150, 64M 11.2/13.0; hand-over 0.12 us": as many levels as `columns` allow,
// the smallest and the largest in any case. Empty when the machine was not measured.
std::string machine_text(const Machine& machine, std::size_t columns);
// "all rows: shm, float32, sum, 2 ranks, out of place, isolated": what rows share that has no column, and what the
// columns do not say of themselves. Empty when there is nothing to say.
std::string shared_text(const Results& results);

// ---- What a reader should take away ---------------------------------------------------------------------------------

struct Findings {
  std::string subject;                 // "allreduce, broadcast"
  std::string headline;                // "✔ 12 rows measured; every row is verified"
  tools::Tone tone;                    // good, bad, or attention when nothing is wrong but something is missing
  std::vector<std::string> sentences;  // furthest from the bound, nearest to it, invalid rows, rows not measured
};
Findings findings_of(const Results& results);

}  // namespace col::colbench
