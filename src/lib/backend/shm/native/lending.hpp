// The protocol of a call in which ranks work on one another's memory (SymmetricCollective, CmaCollective), between the
// meetings of steps.hpp.
//
//   meeting           all have told where their buffers are
//   work_on_others()  a rank says that it works, checks whether the group has ended, works, and checks again
//   meeting           all wait for all
//
// A rank whose call fails ends the group, and then calls take_back() for the memory that others may write into. The
// protocol makes two promises. They hold for every rank that fails at any moment, and for every delay of a rank between
// two instructions or inside the kernel's copy:
//
//   - No rank reports success after it has read memory whose owner's call had ended. Its second check comes after
//     everything that it has read, and a rank that fails ends the group before its user gets the memory back. So data
//     that was read before a check that finds nothing was read in time.
//   - No rank writes into memory whose owner's call has ended. A rank says that it works before its first check, and a
//     rank that fails ends the group before it looks who works.
//
// A test runs all interleavings of exactly this code, with ranks that fail at each point
// (tests/unit/shm/lending_test.cpp).
#pragma once

#include <cstdint>

namespace col::shm_backend {

// ---- What a rank tells the others in the first meeting

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

// Where they are in its own process. 0: nowhere, or not such that the call can do with one copy (CmaCollective).
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

// Nanoseconds that calls took the rank, by each way (KernelTrials).
struct WayTimes {
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  std::uint32_t kernel = kUnknown;
  std::uint32_t meeting = kUnknown;  // of that: the wait for all, after the rank has copied
  std::uint32_t slots = kUnknown;
};

struct Presence {
  Whereabouts whereabouts;
  Addresses addresses;
  Identity identity;
  WayTimes times;
};

// ---- The protocol

// What a Port does:
//
//   begin_work(), end_work()  tell the others that this rank works, or no longer works
//   look()                    throws if the group has ended, or is about to end
//   work()                    reads, or writes, the memory of others
//   look_after_work()         look(), ordered after everything that work() has read
//   wait_idle(peer)           returns false if the other rank works for too long
//   detach()                  nobody else reaches this rank's memory from now on

template <class Port>
void work_on_others(Port& port) {
  struct End {
    Port& port;
    ~End() { port.end_work(); }
  };
  port.begin_work();
  const End end{port};
  port.look();
  port.work();
  port.look_after_work();
}

// Requires: this rank's call has failed, and the group has ended, or is about to end.
template <class Port>
void take_back(Port& port, int rank, int size) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank && !port.wait_idle(peer)) return port.detach();
  }
}

}  // namespace col::shm_backend
