// Messages that came before their receive was posted: small ones completely, and the announcements of large ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

namespace col::shm_backend {

struct Unexpected {
  int peer = -1;
  std::uint64_t slot = 0;
  std::uint64_t bytes = 0;
  bool announced = false;    // the message itself is still with the sender,
  std::uint64_t remote = 0;  // which has this ticket for it
  std::unique_ptr<std::byte[]> data;
  std::size_t capacity = 0;  // of `data`
  Unexpected* next = nullptr;
};

// Keeps entries that are given back, for later messages of about the same length. It keeps at most kKeptBytes of their
// memory.
class UnexpectedPool {
 public:
  // Has room for `messages` messages of up to `data_bytes` from the start.
  UnexpectedPool(std::size_t messages, std::size_t data_bytes);

  // With room for `data_bytes` in `data`. Requires: data_bytes <= kLargest.
  Unexpected& get(std::size_t data_bytes);
  void give_back(Unexpected& message) noexcept;

  static constexpr std::size_t kLargest = std::size_t{64} << 10;

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{4} << 20;
  // By capacity: none, then powers of two.
  static constexpr std::size_t kClasses = 12;
  static std::size_t class_of(std::size_t data_bytes) noexcept;
  static std::size_t capacity_of(std::size_t size_class) noexcept;
  Unexpected& make(std::size_t size_class);

  std::deque<Unexpected> entries_;
  std::array<Unexpected*, kClasses> free_{};
  std::size_t kept_bytes_ = 0;
};

}  // namespace col::shm_backend
