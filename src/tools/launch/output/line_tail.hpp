// The last lines of a stream, in bounded memory.
#pragma once

#include <sys/types.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace col::launch {

// If a carriage return restarts a line (a progress bar), only the text after it is kept: what a terminal shows last.
class LineTail {
 public:
  static constexpr std::size_t kLines = 20;
  static constexpr std::size_t kLineBytes = 4 * 1024;  // the rest of a longer line is cut off

  // Keeps about `max_bytes` at most, and drops old lines first.
  explicit LineTail(std::size_t max_bytes = kLines * kLineBytes) : max_bytes_(max_bytes) {}

  void feed(std::string_view bytes);
  // The oldest line first, without newlines; also an unfinished last line.
  std::vector<std::string> lines() const;

 private:
  void append(std::string_view text);
  void end_line();

  std::size_t max_bytes_;
  std::size_t bytes_ = 0;  // in ended_
  std::deque<std::string> ended_;
  std::string open_;
};

// The same for the content of a file from `first` on; empty if it cannot be read.
std::vector<std::string> last_lines_of_file(const std::string& path, off_t first);

}  // namespace col::launch
