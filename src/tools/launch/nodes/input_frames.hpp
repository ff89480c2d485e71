// The ranks' input on its way to the launcher of another host: frames, each a length in four bytes (the most
// significant first) and as many bytes. A frame of length 0 is the input's end: that of the stream says something else,
// namely that its sender is gone.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace col::launch::input_frames {

inline constexpr std::size_t kHeadBytes = 4;
inline constexpr std::size_t kMaxBytes = 64 * 1024;  // of one frame, without its head

// Writes the head of a frame of `bytes` bytes to the front of `frame`.
void put_head(std::span<char> frame, std::size_t bytes);
// The length that is said at the front of `frame`, which has a head at least.
std::size_t length_in(std::string_view frame);

}  // namespace col::launch::input_frames
