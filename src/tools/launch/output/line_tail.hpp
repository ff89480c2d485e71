// The last lines of a stream, in bounded memory.
#pragma once

#include <sys/types.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// Of a line that a carriage return begins anew (a progress bar) only what comes after it is kept: what a terminal shows
// last.
class LineTail {
 public:
  static constexpr std::size_t kLines = 20;
  static constexpr std::size_t kLineBytes = 4 * 1024;  // the rest of a longer line is cut off

  // Keeps at most about `max_bytes`, dropping old lines first.
  explicit LineTail(std::size_t max_bytes = kLines * kLineBytes) : max_bytes_(max_bytes) {}

  void feed(std::string_view bytes);
  // Oldest first, without their newlines; an unfinished last line, too.
  std::vector<std::string> lines() const;

 private:
  void append(std::string_view text);
  void end_line();

  std::size_t max_bytes_;
  std::size_t bytes_ = 0;  // in ended_
  std::deque<std::string> ended_;
  std::string open_;
};

// The same of what stands in a file from `first` on; empty when it cannot be read.
std::vector<std::string> last_lines_of_file(const std::string& path, off_t first);

}  // namespace col::launch
