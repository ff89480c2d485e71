#include "launch/output/line_tail.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/unique_fd.hpp"

namespace col::launch {
namespace {

// Where the last kLines ended lines of the bytes and what follows them begin, or 0.
std::size_t start_of_last_lines(std::string_view bytes) {
  std::size_t end = bytes.size();
  for (std::size_t count = 0; count <= LineTail::kLines; ++count) {
    const void* newline = end == 0 ? nullptr : ::memrchr(bytes.data(), '\n', end);
    if (newline == nullptr) return 0;
    end = static_cast<std::size_t>(static_cast<const char*>(newline) - bytes.data());
  }
  return end + 1;
}

}  // namespace

void LineTail::feed(std::string_view bytes) {
  if (const std::size_t start = start_of_last_lines(bytes); start > 0) {
    ended_.clear();
    open_.clear();
    bytes_ = 0;
    bytes.remove_prefix(start);
  }
  for (std::size_t newline = bytes.find('\n'); newline != std::string_view::npos; newline = bytes.find('\n')) {
    append(bytes.substr(0, newline));
    end_line();
    bytes.remove_prefix(newline + 1);
  }
  append(bytes);
}

void LineTail::append(std::string_view text) {
  while (text.ends_with("\r\r")) text.remove_suffix(1);
  if (text.empty() || (text == "\r" && open_.ends_with('\r'))) return;
  // A return at the end may belong to a "\r\n"; whether it does shows with the next byte.
  const std::size_t last_return = text.substr(0, text.size() - 1).rfind('\r');
  if (last_return != std::string_view::npos || open_.ends_with('\r')) open_.clear();
  if (last_return != std::string_view::npos) text.remove_prefix(last_return + 1);
  open_.append(text.substr(0, kLineBytes - open_.size()));
  if (text.ends_with('\r')) open_.back() = '\r';
}

void LineTail::end_line() {
  if (open_.ends_with('\r')) open_.pop_back();
  bytes_ += open_.size();
  ended_.push_back(std::move(open_));
  open_.clear();
  while (ended_.size() > kLines || (bytes_ > max_bytes_ && ended_.size() > 1)) {
    bytes_ -= ended_.front().size();
    ended_.pop_front();
  }
}

std::vector<std::string> LineTail::lines() const {
  std::vector<std::string> lines(ended_.begin(), ended_.end());
  if (!open_.empty()) lines.push_back(open_.ends_with('\r') ? open_.substr(0, open_.size() - 1) : open_);
  if (lines.size() > kLines) lines.erase(lines.begin());
  return lines;
}

std::vector<std::string> last_lines_of_file(const std::string& path, off_t first) {
  const tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  constexpr auto kWindow = static_cast<off_t>((LineTail::kLines + 1) * LineTail::kLineBytes);
  const off_t start = std::max(first, info.st_size - kWindow);
  std::string text(static_cast<std::size_t>(std::max<off_t>(info.st_size - start, 0)), '\0');
  const ssize_t length = ::pread(file.get(), text.data(), text.size(), start);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  std::string_view lines = text;
  // The first line has lost its beginning; unless it is all there is, leave it out.
  const std::size_t newline = lines.find('\n');
  if (start > first && newline != std::string_view::npos && newline + 1 < lines.size())
    lines.remove_prefix(newline + 1);
  LineTail tail;
  tail.feed(lines);
  return tail.lines();
}

}  // namespace col::launch
