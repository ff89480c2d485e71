// The line that shows, while colcheck runs, how far it has come.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "colcheck/engine/case.hpp"
#include "colcheck/report/results.hpp"
#include "common/status_line.hpp"

namespace col::colcheck {

struct Advance {
  std::size_t done = 0;
  std::size_t total = 0;  // 0: not known
  std::size_t failed = 0;
  std::string activity = {};  // activity_of() the case that is running
  std::chrono::seconds elapsed{0};
};

// "np 5 over gloo: exact allreduce", "np 5 over gloo (mixed): exact allreduce".
std::string activity_of(const Case& c);

// "colcheck: 1,204/2,412  np 5 over gloo: exact allreduce …  0 failed  7 s" in at most `width` columns. The activity is
// shortened first.
std::string progress_line(const Advance& advance, std::size_t width, bool utf8);

// Draws the line, and draws it again in place. Not thread safe. Never blocks: if the terminal accepts nothing, or is
// gone, the line is not drawn.
class Progress {
 public:
  using Clock = tools::PacedLine::Clock;

  // Draws on `fd`, which belongs to the caller and has `width` columns. Draws nothing if it is -1.
  Progress(int fd, int width, bool utf8 = true, Clock::time_point (*now)() = &Clock::now)
      : line_(fd, width, now), utf8_(utf8) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // The number of all cases.
  void plan(std::size_t total) { advance_.total = total; }
  // Results may come later, and many at once. Until they do, cases that have begun are counted.
  void begin(const Case& c);
  void end(const CaseResult& result);
  // Leaves the cursor at the start of an empty line, so that other text can be printed. The line comes again.
  void clear() { line_.clear(); }

 private:
  void draw();

  tools::PacedLine line_;
  bool utf8_;
  std::size_t begun_ = 0, ended_ = 0;
  Advance advance_;
};

}  // namespace col::colcheck
