// A line on a terminal that is overwritten again and again.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/clock/clock.hpp"

namespace col::tools {

// "7 s", "2 min 05 s".
std::string clock_text(std::chrono::seconds elapsed);

// `activity` and an ellipsis, shortened to fit into `room` columns. Empty if the rest would say nothing.
std::string activity_text(std::string_view activity, std::size_t room, bool utf8);

// Not thread safe. Never blocks: if the terminal accepts nothing, or is gone, the line is not drawn.
class StatusLine {
 public:
  // Draws on `fd`, which belongs to the caller and has `width` columns. Draws nothing if it is -1.
  StatusLine(int fd, int width) : fd_(fd), width_(width) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool usable() const { return fd_ >= 0 && width_ >= 2; }
  // How many columns a text may have. The last column is left out, because some terminals go to the next line after it.
  std::size_t width() const { return static_cast<std::size_t>(width_) - 1; }
  // Replaces the present text, which may be that of another process. `text` is clean, and not wider than width().
  void draw(const std::string& text);
  // Leaves the cursor at the start of an empty line.
  void clear();
  // The same for a line of whatever process; nothing if `fd` is -1.
  static void clear_any(int fd);

 private:
  bool write(const std::string& text);

  int fd_;
  int width_;
  bool shown_ = false;
};

// Such a line that tells how far something has come. Drawn at most ten times a second.
class PacedLine {
 public:
  using Clock = core::Clock;

  // As StatusLine. Before this moment by `ago`, it has begun.
  PacedLine(int fd, int width, Clock::time_point (*now)(), Clock::duration ago = {})
      : line_(fd, width), now_(now), started_(now() - ago) {}

  // Draws what `text` makes of the time since the begin, in so many columns, if it is time to.
  void draw(const std::function<std::string(std::chrono::seconds elapsed, std::size_t width)>& text);
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  Clock::time_point (*now_)();
  Clock::time_point started_;
  Clock::time_point drawn_ = {};
};

}  // namespace col::tools
