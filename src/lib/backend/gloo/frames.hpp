// What two ranks say to each other over a connection, once both have proven who they are.
//
// A small message goes at once, and its receiver keeps it until a receive takes it; the sender is then told. So a send
// ends no sooner than it is received. A large one goes when its receive is there:
//
//   small   eager(slot) payload          →         ← taken
//   large   announce(slot)               →         ← ready, when a receive takes it;   announced_data payload →
//           a receive that names its peer says ready when it is posted; a send that finds that says   data payload →
//
// The bytes of eager messages that a receiver may have to keep for one peer are bounded: beyond, small ones are
// announced too. Messages of one slot, of one kind (small or large) and between the same ranks pair in their order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace col::gloo_backend {

enum class Kind : std::uint32_t {
  announce = 1,    // there is a message
  eager,           // there is a message, and this is it
  ready,           // send me one
  data,            // a message that was not announced
  announced_data,  // the oldest one that was
  taken,           // a receive has taken the oldest eager one
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
};
static_assert(sizeof(Frame) == 24);  // it travels as it is

inline constexpr std::size_t kMostEagerBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostUntakenBytes = std::size_t{128} << 10;  // per peer

constexpr bool is_large(std::size_t bytes) noexcept {
  return bytes > kMostEagerBytes;
}
// Where messages pair: those of a slot, but large ones apart. No slot has the bit: see transport.hpp.
inline constexpr std::uint64_t kLargeBit = 0x40ULL << 56;
constexpr std::uint64_t line_of(std::uint64_t slot, std::size_t bytes) noexcept {
  return is_large(bytes) ? slot | kLargeBit : slot;
}

}  // namespace col::gloo_backend
