// A stable 64-bit hash (FNV-1a with a final mix): equal on all ranks and builds, for fingerprints and tokens. Not for
// secrets.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

namespace col::core {

class Hash {
 public:
  constexpr Hash& add(std::string_view bytes) noexcept {
    for (const char c : bytes) step(static_cast<unsigned char>(c));
    return add(static_cast<std::uint64_t>(bytes.size()));  // so that ("ab","c") and ("a","bc") differ
  }
  template <std::integral T>
  constexpr Hash& add(T value) noexcept {
    auto rest = static_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, rest >>= 8) step(static_cast<unsigned char>(rest & 0xff));
    return *this;
  }
  constexpr std::uint64_t value() const noexcept {
    std::uint64_t h = state_;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return h ^ (h >> 33);
  }

 private:
  constexpr void step(unsigned char byte) noexcept { state_ = (state_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace col::core
