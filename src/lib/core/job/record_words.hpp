// Values of several parts in one word of a control page.
#pragma once

#include <cstdint>

#include <col/job.hpp>

namespace col::core {

constexpr std::uint64_t pack(std::uint32_t upper, std::uint32_t lower) noexcept {
  return static_cast<std::uint64_t>(upper) << 32 | lower;
}
constexpr std::uint32_t upper_half(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> 32);
}
constexpr std::uint32_t lower_half(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word);
}

inline constexpr int kOpBits = 7;  // of a Collective

// Not by the table of collectives: this is for each call.
constexpr bool is_message(Collective op) noexcept {
  return op >= Collective::send;
}

// A call in one word: its number above its collective above whether it is under way.
constexpr std::uint64_t pack_brief(std::uint64_t sequence, Collective op, bool runs) noexcept {
  return (sequence << kOpBits | static_cast<std::uint64_t>(op)) << 1 | (runs ? 1U : 0U);
}

// The same for the flight recorder: above its group above whether it has ended.
inline constexpr int kEndedBits = 1, kGroupBits = 6;
constexpr std::uint64_t pack_noted(std::uint64_t sequence, Collective op, int group, bool ended) noexcept {
  const std::uint64_t above_group = sequence << kOpBits | static_cast<std::uint64_t>(op);
  return (above_group << kGroupBits | static_cast<std::uint64_t>(group)) << kEndedBits | (ended ? 1U : 0U);
}

constexpr std::uint64_t kGroupMask = ((std::uint64_t{1} << kGroupBits) - 1) << kEndedBits;
constexpr std::size_t group_of(std::uint64_t noted) noexcept {
  return (noted & kGroupMask) >> kEndedBits;
}
constexpr std::uint64_t without_group(std::uint64_t noted) noexcept {
  return noted & ~kGroupMask;
}

// Element types in eight bits, labels in sixteen.
inline constexpr std::uint64_t kOpaque = 255;
inline constexpr int kTypeBits = 8, kLabelBits = 16, kCountBits = 64 - kTypeBits - kLabelBits;
inline constexpr std::uint64_t kMostElements = (std::uint64_t{1} << kCountBits) - 1;
constexpr std::uint64_t pack_elements(const CallDetails& details) noexcept {
  const std::uint64_t dtype = is_opaque(details.dtype) ? kOpaque : static_cast<std::uint64_t>(details.dtype);
  const std::uint64_t count = details.count < kMostElements ? details.count : kMostElements;
  return (dtype << kLabelBits | details.label) << kCountBits | count;
}
constexpr std::uint32_t pack_method(const CallDetails& details) noexcept {
  return static_cast<std::uint32_t>(details.reduction) << 8 | details.algorithm;
}
// A round of a plan, and how many it has. Nobody needs to know more exactly.
constexpr std::uint32_t pack_rounds(const CallProgress& progress) noexcept {
  constexpr std::int32_t kNone = 0xffff;
  if (progress.rounds < 0) return ~std::uint32_t{0};
  const std::int32_t round = progress.round < kNone ? progress.round : kNone - 1;
  const std::int32_t rounds = progress.rounds < kNone ? progress.rounds : kNone - 1;
  return static_cast<std::uint32_t>(round) << 16 | static_cast<std::uint32_t>(rounds);
}
constexpr CallProgress unpack_rounds(std::uint32_t rounds, std::uint64_t bytes) noexcept {
  if (rounds == ~std::uint32_t{0}) return {.bytes = bytes};
  return {static_cast<std::int32_t>(rounds >> 16), static_cast<std::int32_t>(rounds & 0xffff), bytes};
}
constexpr std::uint64_t pack_partner(const CallDetails& details) noexcept {
  return pack(static_cast<std::uint32_t>(details.partner), static_cast<std::uint32_t>(details.tag));
}
// `method`: what pack_method() has made.
constexpr CallDetails unpack(std::uint64_t elements, std::uint64_t partner_and_tag, std::uint32_t method) noexcept {
  const std::uint64_t dtype = elements >> (kLabelBits + kCountBits);
  const auto partner = static_cast<std::int32_t>(upper_half(partner_and_tag));
  // What is none of them is opaque, or a damaged page.
  return {.dtype = dtype < kDTypeCount ? static_cast<DType>(dtype) : DType::bytes,
          .count = elements & kMostElements,
          .partner = partner < -1 ? -1 : partner,
          .tag = static_cast<std::int32_t>(lower_half(partner_and_tag)),
          .reduction = static_cast<std::uint8_t>(method >> 8),
          .algorithm = static_cast<std::uint8_t>(method),
          .label = static_cast<std::uint16_t>(elements >> kCountBits)};
}

}  // namespace col::core
