// A stable 64-bit hash, for fingerprints and tokens. It takes one word at a time (multiply and fold, as wyhash does),
// and is equal on all ranks and builds. It is not for secrets.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace col::core {

class Hash {
 public:
  constexpr Hash& add(std::string_view bytes) noexcept {
    std::uint64_t word = 0;
    std::size_t filled = 0;
    for (const char c : bytes) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << (8 * filled);
      if (++filled < sizeof word) continue;
      step(word);
      word = 0;
      filled = 0;
    }
    step(word);
    return add(static_cast<std::uint64_t>(bytes.size()));  // so that ("ab","c") and ("a","bc") differ
  }
  template <std::integral T>
  constexpr Hash& add(T value) noexcept {
    step(static_cast<std::uint64_t>(value));
    return *this;
  }
  constexpr std::uint64_t value() const noexcept {
    std::uint64_t h = state_;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return h ^ (h >> 33);
  }

 private:
  constexpr void step(std::uint64_t word) noexcept {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15ULL;
    state_ ^= state_ >> 32;  // brings down what the multiplication carried upwards
  }
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace col::core
