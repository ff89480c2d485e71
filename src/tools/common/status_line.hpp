// A line on a terminal that is written over.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace col::tools {

// "7 s", "2 min 05 s".
std::string clock_text(std::chrono::seconds elapsed);

// `activity` and an ellipsis, shortened so that it fits into `room` columns; empty when what is left would tell
// nothing.
std::string activity_text(std::string_view activity, std::size_t room, bool utf8);

// Not thread safe. Never blocks: when the terminal takes nothing, or has gone, the line is not drawn.
class StatusLine {
 public:
  // On `fd`, which stays the caller's and has `width` columns. Draws nothing when there is no such thing: -1.
  StatusLine(int fd, int width) : fd_(fd), width_(width) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool usable() const { return fd_ >= 0 && width_ >= 2; }
  // Columns that a text may have: not the last one, since some terminals go to the next line after it.
  std::size_t width() const { return static_cast<std::size_t>(width_) - 1; }
  // Replaces what is there. `text` is clean, and no wider than width().
  void draw(const std::string& text);
  // Leaves the cursor at the start of an empty line.
  void clear();

 private:
  bool write(const std::string& text);

  int fd_;
  int width_;
  std::size_t shown_ = 0;  // columns that are on the terminal
};

}  // namespace col::tools
