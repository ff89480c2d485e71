// How messages on a connection are distinguished: Gloo pairs a send and a receive by a 64-bit slot.
//
// Gloo's own collectives use slots with a first byte of 0x01 to 0x08, then a 32-bit tag, then 24 bits of their own. Our
// slots begin with 0x80 or more, so the two never meet. The length in bytes is part of every slot and tag. So a receive
// of another length than the send's stays unpaired (the wait ends at its deadline, or finds the mismatch). It never
// reaches Gloo's check for messages that are too long.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/hash.hpp"

namespace col::gloo_backend {

inline constexpr std::uint64_t kMessagePrefix = 0x80ULL << 56;
inline constexpr std::uint64_t kProofSlot = 0xff00'0000'0000'0001ULL;
// A send that is announced and never made. It says that its rank leaves in good order.
inline constexpr std::uint64_t kGoodbyeSlot = 0xff00'0000'0000'0002ULL;

constexpr std::uint64_t message_slot(std::uint64_t slot, std::size_t bytes) noexcept {
  return kMessagePrefix | (core::Hash().add(slot).add(bytes).value() >> 8);
}

// The tag for Gloo's collectives, from the fingerprint of the call and the number of bytes that all ranks must agree
// on.
constexpr std::uint32_t collective_tag(std::uint64_t fingerprint, std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>(core::Hash().add(fingerprint).add(bytes).value());
}

}  // namespace col::gloo_backend
