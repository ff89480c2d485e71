#include "launch/output/line_stamp.hpp"

#include <fmt/format.h>

namespace col::launch {

std::string_view LineStamp::text(std::chrono::system_clock::time_point time) {
  const auto microseconds = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(microseconds);
  if (const auto second = static_cast<std::time_t>(seconds.count()); second != second_) {
    std::tm local{};
    ::localtime_r(&second, &local);
    fmt::format("{:02}:{:02}:{:02}.", local.tm_hour, local.tm_min, local.tm_sec).copy(text_, 9);
    second_ = second;
  }
  fmt::format("{:06} ", (microseconds - seconds).count()).copy(text_ + 9, 7);
  return {text_, 16};
}

}  // namespace col::launch
