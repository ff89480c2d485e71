// What a rank tells the others before a collective that works on their memory without slots.
#pragma once

#include <cstdint>

namespace col::shm_backend {

// Where its buffers are in memory that all ranks have mapped.
struct Whereabouts {
  // These, or the number of a region.
  static constexpr std::uint64_t kPrivate = 0, kNothing = ~std::uint64_t{0};
  struct Location {
    std::uint64_t region = kPrivate;
    std::uint64_t offset = 0;
  };
  Location in, out;
};

// Where they are in its own process. 0: nowhere, or in memory that may change during the call.
struct Addresses {
  std::uint64_t in = 0, out = 0;
};

// The identity of the rank.
struct Identity {
  std::int64_t pid = 0;
  std::uint64_t proof_at = 0;  // address of a number that no other process has
  std::uint64_t proof = 0;
  std::uint64_t reaches_all = 0;  // counts from the second meeting on
};

struct Presence {
  Whereabouts whereabouts;
  Addresses addresses;
  Identity identity;
};

}  // namespace col::shm_backend
