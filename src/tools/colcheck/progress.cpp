#include "colcheck/progress.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "colcheck/report/text.hpp"

namespace col::colcheck {
namespace {

// Fewer columns of the activity would tell nothing.
constexpr std::size_t kLeastActivity = 8;

std::string clock_of(std::chrono::seconds elapsed) {
  const auto seconds = elapsed.count();
  return seconds < 60 ? fmt::format("{} s", seconds) : fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
}

}  // namespace

std::string activity_of(const Case& c) {
  const std::string where = c.backend.empty() ? "" : fmt::format("np {} over {}: ", c.ranks, c.backend);
  return fmt::format("{}{} {}", where, c.property, to_string(c.primitive));
}

std::string progress_line(const Advance& advance, std::size_t width, bool utf8) {
  std::string head = "colcheck: " + grouped(advance.done);
  if (advance.total > 0) head += "/" + grouped(advance.total);
  const std::string tail = fmt::format("  {} failed  {}", grouped(advance.failed), clock_of(advance.elapsed));
  const std::string_view ellipsis = utf8 ? " …" : " ...";
  const std::size_t taken = columns_of(head) + columns_of(tail) + 2 + columns_of(ellipsis);
  const std::size_t room = width > taken ? width - taken : 0;
  const std::string activity = one_line(advance.activity, !utf8);
  if (!activity.empty() && (columns_of(activity) <= room || room >= kLeastActivity)) {
    head += fmt::format("  {}{}", cut(activity, room), ellipsis);
  }
  return std::string(cut(head + tail, width));
}

void Progress::begin(const Case& c) {
  ++begun_;
  advance_.activity = activity_of(c);
  draw();
}

void Progress::end(const CaseResult& result) {
  ++ended_;
  begun_ = std::max(begun_, ended_);
  if (result.verdict == Finding::Verdict::fail) ++advance_.failed;
  draw();
}

void Progress::clear() {
  if (shown_ > 0 && write("\r" + std::string(shown_, ' ') + "\r")) shown_ = 0;
}

void Progress::draw() {
  const Clock::time_point now = now_();
  if (fd_ < 0 || width_ < 2 || (drawn_ != Clock::time_point() && now - drawn_ < kInterval)) return;
  drawn_ = now;
  advance_.elapsed = std::chrono::duration_cast<std::chrono::seconds>(now - started_);
  // The one that is running is not done.
  advance_.done = std::max(ended_, begun_ > 0 ? begun_ - 1 : 0);
  if (advance_.total > 0) advance_.done = std::min(advance_.done, advance_.total);
  // Not in the last column: some terminals go to the next line after it.
  const std::string line = progress_line(advance_, static_cast<std::size_t>(width_) - 1, utf8_);
  const std::size_t columns = columns_of(line);
  const std::string rest(std::max(columns, shown_) - columns, ' ');
  if (write("\r" + line + rest)) shown_ = columns;
}

bool Progress::write(const std::string& text) {
  pollfd ready{fd_, POLLOUT, 0};
  // A terminal that has gone is ready to be written to, and to fail.
  if (::poll(&ready, 1, 0) != 1 || ready.revents != POLLOUT) return false;
  return ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace col::colcheck
