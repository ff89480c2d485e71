// What a rank tells the others before a collective that works on their memory without slots.
#pragma once

#include <cstdint>

namespace col::shm_backend {

// Where its buffers lie in memory that all have mapped.
struct Whereabouts {
  // Else the number of a region.
  static constexpr std::uint64_t kPrivate = 0, kNothing = ~std::uint64_t{0};
  struct Place {
    std::uint64_t region = kPrivate;
    std::uint64_t offset = 0;
  };
  Place in, out;
};

// Where they lie in its own process; 0: nowhere, or what lies there does not stay during the call.
struct Addresses {
  std::uint64_t in = 0, out = 0;
};

// Who it is.
struct Identity {
  std::int64_t pid = 0;
  std::uint64_t proof_at = 0;  // address of a number that nobody else has
  std::uint64_t proof = 0;
  std::uint64_t reaches_all = 0;  // counts from the second meeting on
};

struct Presence {
  Whereabouts whereabouts;
  Addresses addresses;
  Identity identity;
};

}  // namespace col::shm_backend
