#include "common/status_line.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::tools {
namespace {

// Whoever drew what is there.
constexpr std::string_view kEraseRest = "\x1b[K";

}  // namespace

std::string clock_text(std::chrono::seconds elapsed) {
  const auto seconds = elapsed.count();
  return seconds < 60 ? fmt::format("{} s", seconds) : fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
}

std::string activity_text(std::string_view activity, std::size_t room, bool utf8) {
  constexpr std::size_t kLeast = 8;  // columns: fewer would tell nothing
  const std::string_view ellipsis = utf8 ? " …" : " ...";
  room -= std::min(room, columns_of(ellipsis));
  const std::string line = one_line(activity, !utf8);
  if (line.empty() || (columns_of(line) > room && room < kLeast)) return {};
  return std::string(cut(line, room)) + std::string(ellipsis);
}

void StatusLine::draw(const std::string& text) {
  if (!usable()) return;
  if (write("\r" + text + std::string(kEraseRest))) shown_ = true;
}

void StatusLine::clear() {
  if (shown_ && write("\r" + std::string(kEraseRest))) shown_ = false;
}

void StatusLine::clear_any(int fd) {
  StatusLine line(fd, 0);
  line.shown_ = fd >= 0;
}

void PacedLine::draw(const std::function<std::string(std::chrono::seconds, std::size_t)>& text) {
  constexpr std::chrono::milliseconds kInterval{100};
  const Clock::time_point now = now_();
  if (!line_.usable() || (drawn_ != Clock::time_point() && now - drawn_ < kInterval)) return;
  drawn_ = now;
  line_.draw(text(std::chrono::duration_cast<std::chrono::seconds>(now - started_), line_.width()));
}

bool StatusLine::write(const std::string& text) {
  pollfd ready{fd_, POLLOUT, 0};
  // A terminal that has gone is ready to be written to, and to fail.
  if (core::poll_for({&ready, 1}, Duration::zero()) != 1 || ready.revents != POLLOUT) return false;
  return ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace col::tools
