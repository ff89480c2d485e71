#include "colbench/report/progress.hpp"

#include <string_view>

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::colbench {
namespace {

// Fewer columns of the activity would tell nothing.
constexpr std::size_t kLeastActivity = 8;

std::string clock_of(std::chrono::seconds elapsed) {
  const auto seconds = elapsed.count();
  return seconds < 60 ? fmt::format("{} s", seconds) : fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
}

}  // namespace

std::string activity_of(const CellSpec& spec) {
  std::string text(to_string(spec.operation));
  if (spec.operation != Operation::barrier) text += " " + size_text(spec.bytes);
  if (!is_message(spec.operation)) text += " " + spec.algorithm;
  return text;
}

std::string progress_line(const Advance& advance, std::size_t width, bool utf8) {
  std::string head = "colbench: ";
  if (advance.total > 0) {
    head += fmt::format("{}/{} cells, ", tools::grouped(advance.done), tools::grouped(advance.total));
    if (advance.launches > 1) head += fmt::format("launch {}/{}, ", advance.launch + 1, advance.launches);
  }
  const std::string tail = "  " + clock_of(advance.elapsed);
  const std::string_view ellipsis = utf8 ? " …" : " ...";
  const std::size_t taken = tools::columns_of(head) + tools::columns_of(tail) + tools::columns_of(ellipsis);
  const std::size_t room = width > taken ? width - taken : 0;
  const std::string activity = tools::one_line(advance.activity, !utf8);
  if (!activity.empty() && (tools::columns_of(activity) <= room || room >= kLeastActivity)) {
    head += fmt::format("{}{}", tools::cut(activity, room), ellipsis);
  } else {
    head.erase(head.find_last_not_of(", :") + 1);
  }
  return std::string(tools::cut(head + tail, width));
}

void Progress::show(Advance advance) {
  const Clock::time_point now = now_();
  if (!line_.usable() || (drawn_ != Clock::time_point() && now - drawn_ < kInterval)) return;
  drawn_ = now;
  advance.elapsed = std::chrono::duration_cast<std::chrono::seconds>(now - started_);
  line_.draw(progress_line(advance, line_.width(), utf8_));
}

}  // namespace col::colbench
