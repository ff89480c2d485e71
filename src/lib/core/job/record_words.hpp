// Values of several parts in one word of a control page.
#pragma once

#include <time.h>

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

inline std::uint64_t now_ns() noexcept {
  // For each collective: the exact time would cost more than all the rest of the record.
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// For who has waited, or is about to: it costs some 20 ns.
inline std::uint64_t exact_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

inline constexpr int kOpBits = 7;  // of a Collective

// Element types in eight bits.
inline constexpr std::uint64_t kOpaque = 255;
inline constexpr int kCountBits = 56;
constexpr std::uint64_t pack_elements(const CallDetails& details) noexcept {
  const std::uint64_t dtype = is_opaque(details.dtype) ? kOpaque : static_cast<std::uint64_t>(details.dtype);
  return dtype << kCountBits | (details.count & ((std::uint64_t{1} << kCountBits) - 1));
}
constexpr std::uint64_t pack_partner(const CallDetails& details) noexcept {
  return pack(static_cast<std::uint32_t>(details.partner), static_cast<std::uint32_t>(details.tag));
}
constexpr CallDetails unpack(std::uint64_t elements, std::uint64_t partner_and_tag) noexcept {
  const std::uint64_t dtype = elements >> kCountBits;
  const auto partner = static_cast<std::int32_t>(upper_half(partner_and_tag));
  // What is none of them is opaque, or a damaged page.
  return {.dtype = dtype < kDTypeCount ? static_cast<DType>(dtype) : DType::bytes,
          .count = elements & ((std::uint64_t{1} << kCountBits) - 1),
          .partner = partner < -1 ? -1 : partner,
          .tag = static_cast<std::int32_t>(lower_half(partner_and_tag))};
}

}  // namespace col::core
