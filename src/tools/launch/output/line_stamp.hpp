// The time at the start of a line of output.
#pragma once

#include <chrono>
#include <ctime>
#include <string_view>

namespace col::launch {

// Local time as "12:04:07.123456 ".
class LineStamp {
 public:
  // Valid until the next call.
  std::string_view text(std::chrono::system_clock::time_point time);

 private:
  std::time_t second_ = -1;  // to which the first part of text_ belongs
  char text_[17] = {};
};

}  // namespace col::launch
