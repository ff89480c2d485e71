#include "launch/nodes/input_frames.hpp"

namespace col::launch::input_frames {

void put_head(std::span<char> frame, std::size_t bytes) {
  for (std::size_t index = 0; index < kHeadBytes; ++index)
    frame[index] = static_cast<char>(bytes >> (8 * (kHeadBytes - 1 - index)));
}

std::size_t length_in(std::string_view frame) {
  std::size_t length = 0;
  for (std::size_t index = 0; index < kHeadBytes; ++index)
    length = length << 8 | static_cast<unsigned char>(frame[index]);
  return length;
}

}  // namespace col::launch::input_frames
