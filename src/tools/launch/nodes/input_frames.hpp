// The ranks' input on its way to the launcher of another host. It consists of frames: a length in four bytes (most
// significant first), and as many bytes. A frame of length 0 is the end of the input. The end of the stream has another
// meaning: its sender is gone.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace col::launch::input_frames {

inline constexpr std::size_t kHeadBytes = 4;
inline constexpr std::size_t kMaxBytes = 64 * 1024;  // the most in one frame, without its head

// Writes the head of a frame of `bytes` bytes to the front of `frame`.
void put_head(std::span<char> frame, std::size_t bytes);
// The length at the front of `frame`, which has at least a head.
std::size_t length_in(std::string_view frame);

}  // namespace col::launch::input_frames
