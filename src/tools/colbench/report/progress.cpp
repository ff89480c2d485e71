#include "colbench/report/progress.hpp"

#include <fmt/format.h>

#include "common/text.hpp"

namespace col::colbench {
std::string activity_of(const CellSpec& spec) {
  std::string text(to_string(spec.operation));
  if (spec.operation != Operation::barrier) text += " " + size_text(spec.bytes);
  if (!is_message(spec.operation)) text += " " + spec.algorithm;
  return text;
}

std::string progress_line(const Advance& advance, std::size_t width, bool utf8) {
  std::string head = "colbench: ";
  if (advance.total > 0)
    head += fmt::format("{}/{} cells, ", tools::grouped(advance.done), tools::grouped(advance.total));
  if (advance.launches > 1) head += fmt::format("launch {}/{}, ", advance.launch + 1, advance.launches);
  const std::string tail = "  " + tools::clock_text(advance.elapsed);
  const std::size_t taken = tools::columns_of(head) + tools::columns_of(tail);
  const std::string activity = tools::activity_text(advance.activity, width > taken ? width - taken : 0, utf8);
  if (activity.empty()) head.erase(head.find_last_not_of(", :") + 1);
  return std::string(tools::cut(head + activity + tail, width));
}

void Progress::show(Advance advance) {
  line_.draw([&](std::chrono::seconds elapsed, std::size_t width) {
    advance.elapsed = elapsed;
    return progress_line(advance, width, utf8_);
  });
}

}  // namespace col::colbench
