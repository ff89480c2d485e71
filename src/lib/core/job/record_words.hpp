// Values of several parts in one word of a control page.
#pragma once

#include <cstddef>
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

// How far an operation is, in its entry of the ring. `brief`: the rank's record says nothing of it, as it does not
// wait; `timed`: the entry says how long it took. One that is waited for later has two entries.
enum class EntryState : std::uint8_t { none, running, started, brief_started, ended, timed, brief, brief_timed };
constexpr bool is_under_way(EntryState state) noexcept {
  return state == EntryState::running || state == EntryState::brief_started;
}
constexpr bool has_ended(EntryState state) noexcept {
  return state >= EntryState::ended;
}
constexpr bool is_brief(EntryState state) noexcept {
  return state >= EntryState::brief;
}
constexpr bool is_timed(EntryState state) noexcept {
  return state == EntryState::timed || state == EntryState::brief_timed;
}

// An entry in one word: its number in its group above its collective above its group above its state.
inline constexpr int kStateBits = 3, kGroupBits = 6;
constexpr std::uint64_t pack_entry(std::uint64_t sequence, Collective op, int group, EntryState state) noexcept {
  const std::uint64_t above_group = sequence << kOpBits | static_cast<std::uint64_t>(op);
  return (above_group << kGroupBits | static_cast<std::uint64_t>(group)) << kStateBits |
         static_cast<std::uint64_t>(state);
}
constexpr EntryState state_of(std::uint64_t entry) noexcept {
  return static_cast<EntryState>(entry & ((1U << kStateBits) - 1));
}
constexpr std::uint64_t kGroupMask = ((std::uint64_t{1} << kGroupBits) - 1) << kStateBits;
constexpr std::size_t group_of(std::uint64_t entry) noexcept {
  return (entry & kGroupMask) >> kStateBits;
}
constexpr std::uint64_t without_group(std::uint64_t entry) noexcept {
  return entry & ~kGroupMask;
}
// A damaged page has others.
constexpr Collective op_of(std::uint64_t entry) noexcept {
  const std::uint64_t op = entry >> (kStateBits + kGroupBits) & ((1U << kOpBits) - 1);
  return op < static_cast<std::uint64_t>(kCollectiveCount) ? static_cast<Collective>(op) : Collective::recv;
}
constexpr std::uint64_t sequence_of(std::uint64_t entry) noexcept {
  return entry >> (kStateBits + kGroupBits + kOpBits);
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
