// A hash of what must be equal on several ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace col::colcheck {

// FNV-1a. Continues `hash`, so that several pieces of memory have one digest.
inline std::uint64_t digest_of(std::span<const std::byte> bytes, std::uint64_t hash = 0xcbf29ce484222325ULL) {
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace col::colcheck
