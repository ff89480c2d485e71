// What the ranks of a group share, in one piece of zeroed memory:
//
//   Header | RankPlace per rank | RingIndices per ordered pair | ring of bytes per ordered pair | area of collectives
//
// Everything in it is an atomic, or is written by one rank and read by others in the order that an atomic gives. There
// are no locks: a rank that is killed at any instruction blocks nobody.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace col::shm_backend {

// Two cache lines, because processors fetch them in pairs. Data that different ranks write is at least this far apart.
inline constexpr std::size_t kLine = 128;

inline constexpr std::uint64_t kMagic = 0x34'30'6d'68'73'6c'6f'63ULL;  // "colshm04" in memory: changes with the layout

// Why the group ended. The first rank that claims it writes it. It counts only once it is `written`, so a rank that is
// killed in between has not ended the group.
struct AbortRecord {
  static constexpr std::size_t kMaxMessage = 440;
  enum State : std::uint32_t { kNone, kWriting, kWritten };
  std::atomic<std::uint32_t> state;
  std::int32_t code;
  std::int32_t aborter;  // the rank that ended it
  std::int32_t culprit;  // Error::rank() of the cause
  char message[kMaxMessage + 1];
};

struct Header {
  std::atomic<std::uint64_t> magic;  // stored last
  std::uint64_t token;
  std::uint64_t size;
  std::uint64_t ring_bytes;
  std::uint64_t slot_bytes;  // the value that its maker found right for the machine's caches
  alignas(kLine) AbortRecord abort;
};

struct alignas(kLine) RankPlace {
  std::atomic<std::uint32_t> doorbell;  // see doorbell.hpp
  std::atomic<std::int32_t> awaited;    // the rank that it sleeps for in a collective
  // Set when the rank has closed its channel in good order: it will send and read nothing more.
  alignas(kLine) std::atomic<std::uint32_t> left;
  // Set while the rank works on the memory of other ranks.
  alignas(kLine) std::atomic<std::uint32_t> works;
  // The processors that the rank may run on; kUnknown before the rank has said. The mask may not cover all processors.
  static constexpr std::uint32_t kUnknown = 0, kListed = 1, kUnlisted = 2;
  static constexpr std::size_t kMaskWords = 15;
  alignas(kLine) std::atomic<std::uint32_t> processors_known;
  std::uint32_t processors_quota;  // how many of them at a time; 0: no limit
  std::uint64_t processors[kMaskWords];
};

// The numbers of bytes that were ever written to and read from a ring.
struct RingIndices {
  alignas(kLine) std::atomic<std::uint64_t> tail;  // only the producer stores it
  alignas(kLine) std::atomic<std::uint64_t> head;  // only the consumer stores it
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace col::shm_backend
