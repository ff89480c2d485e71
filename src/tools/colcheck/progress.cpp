#include "colcheck/progress.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "common/text.hpp"

namespace col::colcheck {
std::string activity_of(const Case& c) {
  const std::string devices = c.devices == Devices::cpu ? "" : fmt::format(" ({})", to_string(c.devices));
  const std::string where = c.backend.empty() ? "" : fmt::format("np {} over {}{}: ", c.ranks, c.backend, devices);
  return fmt::format("{}{} {}", where, c.property, to_string(c.primitive));
}

std::string progress_line(const Advance& advance, std::size_t width, bool utf8) {
  std::string head = "colcheck: " + tools::grouped(advance.done);
  if (advance.total > 0) head += "/" + tools::grouped(advance.total);
  const std::string tail =
      fmt::format("  {} failed  {}", tools::grouped(advance.failed), tools::clock_text(advance.elapsed));
  const std::size_t taken = tools::columns_of(head) + tools::columns_of(tail) + 2;
  const std::string activity = tools::activity_text(advance.activity, width > taken ? width - taken : 0, utf8);
  if (!activity.empty()) head += "  " + activity;
  return std::string(tools::cut(head + tail, width));
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

void Progress::draw() {
  line_.draw([this](std::chrono::seconds elapsed, std::size_t width) {
    advance_.elapsed = elapsed;
    // The one that is running is not done.
    advance_.done = std::max(ended_, begun_ > 0 ? begun_ - 1 : 0);
    if (advance_.total > 0) advance_.done = std::min(advance_.done, advance_.total);
    return progress_line(advance_, width, utf8_);
  });
}

}  // namespace col::colcheck
