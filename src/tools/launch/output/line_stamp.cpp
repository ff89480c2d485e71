#include "launch/output/line_stamp.hpp"

#include <fmt/format.h>

namespace col::launch {

std::string_view LineStamp::text(std::chrono::system_clock::time_point time) {
  const auto microseconds = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(microseconds);
  if (const auto second = static_cast<std::time_t>(seconds.count()); second != second_) {
    std::tm local{};
    ::localtime_r(&second, &local);
    fmt::format_to(text_, "{:02}:{:02}:{:02}.", local.tm_hour, local.tm_min, local.tm_sec);
    second_ = second;
  }
  fmt::format_to(text_ + 9, "{:06} ", (microseconds - seconds).count());
  return {text_, 16};
}

}  // namespace col::launch
