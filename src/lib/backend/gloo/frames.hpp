// What two ranks say to each other over a connection, once both have proven who they are.
//
// A small message goes at once, and its receiver keeps it until a receive takes it; its send has ended when the kernel
// has it. A large one goes when its receive is there:
//
//   small   eager(slot) payload          →         ← taken, of several together
//   large   announce(slot)               →         ← ready, when a receive takes it;   announced_data payload →
//           a receive that names its peer says ready when it is posted; a send that finds that says   data payload →
//
// What a receiver may have to keep for one peer is bounded: beyond, small ones are announced too. A receiver says what
// has been taken once it comes to a part of the bound, or when a small one had to be announced.
//
// Messages of one slot between the same ranks pair in their order, small and large ones together. If two differ that
// have to pair, no later ones ever would, and the sender of a small one may have ended: so that is a mismatch. Whoever
// is the second to come finds it: the receiver of an eager or an announced message, or the sender that finds a ready.
#pragma once

#include <cstddef>
#include <cstdint>

namespace col::gloo_backend {

// What tells a message from others of its stream: the lower half of its slot (kSlotContent). Gloo's own have 0.
using Content = std::uint32_t;

enum class Kind : std::uint32_t {
  announce = 1,    // there is a message
  eager,           // there is a message, and this is it
  ready,           // send me one
  data,            // a message that was not announced
  announced_data,  // the oldest one that was
  taken,           // receives have taken eager ones; `bytes`: what keeping them was reckoned at
  left,            // `rank` has left the group in good order
  lost,            // `rank` is dead, or left after an error
  alive,           // the host of the sender lives
  host_lost,       // the host of `rank` does not; `bytes`: the HostFault
};
constexpr bool has_payload(Kind kind) noexcept {
  return kind == Kind::eager || kind == Kind::data || kind == Kind::announced_data;
}

struct Frame {
  std::uint64_t line = 0;   // line_of() the message
  std::uint64_t bytes = 0;  // of the message
  Kind kind = Kind::announce;
  std::int32_t rank = -1;  // of left, lost and host_lost
  Content content = 0;     // of the message
  std::uint32_t unused = 0;
};
static_assert(sizeof(Frame) == 32);  // it travels as it is

inline constexpr std::size_t kMostEagerBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostKeptBytes = std::size_t{128} << 10;  // of one peer
inline constexpr std::size_t kMostUnsaidBytes = kMostKeptBytes / 2;

// What it takes to keep an eager message: an empty one has a place in a queue, too.
constexpr std::size_t kept_bytes(std::size_t bytes) noexcept {
  constexpr std::size_t kPlace = 64;
  return bytes + kPlace;
}

constexpr bool is_large(std::size_t bytes) noexcept {
  return bytes > kMostEagerBytes;
}
// Where messages pair: those of a slot, but large ones apart. No slot has the bit: see transport.hpp.
inline constexpr std::uint64_t kLargeBit = 0x40ULL << 56;
constexpr bool is_of_large(std::uint64_t line) noexcept {
  return (line & kLargeBit) != 0;
}
constexpr std::uint64_t line_of(std::uint64_t slot, std::size_t bytes) noexcept {
  return is_large(bytes) ? slot | kLargeBit : slot;
}

}  // namespace col::gloo_backend
