// The line that tells, while colbench measures, how far it has come.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "colbench/cell/cell.hpp"
#include "common/status_line.hpp"

namespace col::colbench {

struct Advance {
  std::size_t done = 0, total = 0;  // cells of this launch
  int launch = 0, launches = 1;     // from 0
  std::string activity = {};        // activity_of() the cell that is measured, or words: "starting 4 ranks"
  std::chrono::seconds elapsed{0};
};

// "allreduce 32M ring".
std::string activity_of(const CellSpec& spec);

// "colbench: 12/160 cells, launch 2/3, allreduce 32M ring …  41 s" in at most `width` columns: the activity is
// shortened first. Pure.
std::string progress_line(const Advance& advance, std::size_t width, bool utf8);

// Draws the line, and draws it again in place. Not thread safe. Never blocks: if the terminal accepts nothing, or is
// gone, the line is not drawn.
class Progress {
 public:
  using Clock = tools::PacedLine::Clock;

  // On `fd`, which stays the caller's and has `width` columns. Draws nothing when there is no such thing: -1. `ago`:
  // before this moment the run has begun.
  Progress(int fd, int width, bool utf8 = true, Clock::time_point (*now)() = &Clock::now, Clock::duration ago = {})
      : line_(fd, width, now, ago), utf8_(utf8) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `advance.elapsed` is filled in here. May be called at any rate.
  void show(Advance advance);

 private:
  tools::PacedLine line_;
  bool utf8_;
};

}  // namespace col::colbench
