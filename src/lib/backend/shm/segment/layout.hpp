// What the ranks of a group share, in one piece of zeroed memory:
//
//   SegmentHeader | RankPlace per rank | RingIndices per ordered pair | ring of bytes per ordered pair | area of
//   collectives | pool
//
// The segment of a group that was made from this one's ranks lies in the pool (pool.hpp). What all its ranks
// touch in their first call is in few pages there, and the rest takes no memory before it is used:
//
//   SegmentHeader | RankPlace per rank | AreaHeader | StepsDone per rank | kHeaders StepHeaders per rank | last words
//   per rank | RingIndices per ordered pair | ring of bytes per ordered pair | the data of kSlots slots per rank
//
// Everything in it is an atomic, or is written by one rank and read by others in the order that an atomic gives. There
// are no locks: a rank that is killed at any instruction blocks nobody.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/shm/segment/tuning.hpp"

namespace col::shm_backend {

// Two cache lines, because processors fetch them in pairs. Data that different ranks write is at least this far apart.
inline constexpr std::size_t kLine = 128;

inline constexpr std::uint64_t kMagic = 0x33'31'6d'68'73'6c'6f'63ULL;  // "colshm13" in memory: changes with the layout

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
  bool is_loss;  // Error::is_loss() of the cause
};

// Whether the ranks that have mapped a segment use it.
enum class Verdict : std::uint32_t { none, used, abandoned };

struct SegmentHeader {
  std::atomic<std::uint64_t> magic;  // stored last
  std::uint64_t token;
  std::uint64_t size;
  std::uint64_t ring_bytes;
  std::uint64_t slot_bytes;            // the largest
  std::uint64_t small_slot_bytes;      // what its maker found right for the machine's caches
  std::uint64_t pool_bytes;            // 0: there is none
  Tuning tuning;                       // rank 0 writes it once all ranks are here, and before they go on
  std::atomic<std::uint32_t> verdict;  // Verdict: what rank 0 makes of it then
  // In a pool: how many ranks have left their last words, and how many will not touch it again; and whether more
  // than the first pages was used.
  std::atomic<std::uint32_t> speakers;
  std::atomic<std::uint32_t> gone;
  std::atomic<std::uint32_t> used;
  alignas(kLine) AbortRecord abort;
};

struct alignas(kLine) RankPlace {
  std::atomic<std::uint32_t> doorbell;  // see doorbell.hpp
  std::atomic<std::int32_t> awaited;    // the rank that it sleeps for in a collective
  // Set when the rank has closed its channel in good order: it will send and read nothing more.
  alignas(kLine) std::atomic<std::uint32_t> left;
  // In a pool: the length of its last words, and one more; 0 before it has left them.
  std::atomic<std::uint32_t> words;
  // Bit r mod 256 is set before rank r first writes into its ring to this rank: only those rings are looked at.
  static constexpr std::size_t kSenderBits = 256;
  alignas(kLine) std::atomic<std::uint64_t> senders[kSenderBits / 64];
  // Set while the rank works on the memory of other ranks.
  alignas(kLine) std::atomic<std::uint32_t> works;
  // The processors that the rank may run on; kUnknown before the rank has said. The mask may not cover all processors.
  static constexpr std::uint32_t kUnknown = 0, kListed = 1, kUnlisted = 2;
  static constexpr std::size_t kMaskWords = 15;
  alignas(kLine) std::atomic<std::uint32_t> processors_known;
  std::uint32_t processors_quota;  // how many of them at a time; 0: no limit
  std::uint64_t processors[kMaskWords];
};

// The number of bytes that were ever read from a ring. Only the consumer stores it. The frames in the ring say
// themselves that they are there.
struct alignas(kLine) RingIndices {
  std::atomic<std::uint64_t> head;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

// ---- The area: the part that collectives use
//
//   AreaHeader | StepsDone per rank | per rank: kHeaders StepHeaders, the data of kSlots slots
//
// All collectives of a group are cut into steps. Steps are counted from 1 over the whole life of the group: every rank
// goes through every step, even if it has nothing to do in it. Step s uses header s mod kHeaders of each rank, and slot
// s mod kSlots, or a part of it, if its data is too long for a header. Only a rank itself writes its headers, its slots
// and its StepsDone.

// A power of two. With two slots, every rank would wait for the slowest one in each step. With more than four, the
// slots of a step would have left the second-level cache before they are used again, where that is not what is wanted.
inline constexpr std::size_t kSlots = 4;

// A power of two. More than slots, so that a rank that need not wait for others is not held up by those who are a few
// steps behind: decision 0044 has the times.
inline constexpr std::size_t kHeaders = 16;

// The data of a small step is in the same cache line as the flag that announces it, and arrives with it.
inline constexpr std::size_t kInlineBytes = 104;

// Data of up to kPartBytes has a part of a slot, of which the first ones are so long, so that there are as many as
// headers.
inline constexpr std::size_t kPartBytes = 1024, kParts = kHeaders / kSlots;
static_assert(kParts * kSlots == kHeaders);

// What a rank writes its input to: a header, a part of a slot, or a slot with all its parts.
enum class Place : std::uint8_t { header, part, slot };

struct alignas(kLine) StepHeader {
  std::atomic<std::uint64_t> ready;  // the last step whose input is here
  std::uint64_t fingerprint;         // of the call that the step is part of
  std::uint64_t done;                // the owner's StepsDone when it wrote this; saves readers a look
  union {
    std::byte inline_data[kInlineBytes];
    std::uint64_t offset;  // of data that is too long for a part, in the slot
  };
  // The last step whose result is here, in the place that the owner's own input would have.
  alignas(kLine) std::atomic<std::uint64_t> folded;
};
static_assert(sizeof(StepHeader) == 2 * kLine);

// The last step for which this rank has nothing left to read; this holds for all earlier steps too.
struct alignas(kLine) StepsDone {
  std::atomic<std::uint64_t> step;

  // The fingerprints of its last calls. They show which rank made another call than the others.
  struct Call {
    std::atomic<std::uint64_t> number;  // from 1; 0 while it is written
    std::atomic<std::uint64_t> fingerprint;
  };
  // One more than headers, because a rank that only puts may be that far ahead.
  static constexpr std::size_t kKeptCalls = kHeaders + 1;
  Call calls[kKeptCalls];

  // For the owner. Each store is a release: a rank that sees a fingerprint also sees that the entry was invalid before
  // it.
  void enter(std::uint64_t number, std::uint64_t fingerprint) noexcept {
    Call& call = calls[number % kKeptCalls];
    call.number.store(0, std::memory_order_release);
    call.fingerprint.store(fingerprint, std::memory_order_release);
    call.number.store(number, std::memory_order_release);
  }
  // The fingerprint of a call; nothing when the rank has not come to it, or is far beyond.
  std::optional<std::uint64_t> fingerprint_of(std::uint64_t number) const noexcept {
    const Call& call = calls[number % kKeptCalls];
    if (call.number.load(std::memory_order_acquire) != number) return std::nullopt;
    const std::uint64_t fingerprint = call.fingerprint.load(std::memory_order_acquire);
    if (call.number.load(std::memory_order_relaxed) != number) return std::nullopt;
    return fingerprint;
  }
};

struct alignas(kLine) AreaHeader {
  std::atomic<std::uint32_t> sleepers;  // ranks that sleep in a collective, or are about to
};

// One page, for all headers of a rank.
inline constexpr std::size_t kSlotsHeader = 4096;
static_assert(kHeaders * sizeof(StepHeader) <= kSlotsHeader);

// One rank's view of the area. It is a value; the memory belongs to the segment.
class Area {
 public:
  // Bytes: at least one element of this size from each rank fits a slot.
  static constexpr std::size_t kLargestElement = 16;

  Area() = default;
  // In one piece, each rank's headers and data in pages of its own.
  Area(std::byte* base, int size, std::size_t slot_bytes) noexcept
      : base_(base),
        headers_(base + common_bytes(size)),
        data_(headers_ + kSlotsHeader),
        size_(static_cast<std::size_t>(size)),
        slot_bytes_(slot_bytes),
        header_stride_(part_bytes()),
        data_stride_(part_bytes()) {}
  // In two: all headers together, at `base`, and the data at `data`.
  Area(std::byte* base, std::byte* data, int size, std::size_t slot_bytes) noexcept
      : base_(base),
        headers_(base + sizeof(AreaHeader) + static_cast<std::size_t>(size) * sizeof(StepsDone)),
        data_(data),
        size_(static_cast<std::size_t>(size)),
        slot_bytes_(slot_bytes),
        header_stride_(kHeaders * sizeof(StepHeader)),
        data_stride_(kSlots * slot_bytes) {}

  // How much of each slot is taken from the machine at the beginning, from the number of ranks and this machine's
  // caches: a multiple of the page size. No group uses less.
  static std::size_t small_slot_bytes_for(int size) noexcept;
  // How large slots are. What is beyond a small one costs no memory before it is used, where the kernel lets a rank
  // take it with an error if there is no room; elsewhere all slots are small.
  static std::size_t slot_bytes_for(int size) noexcept;
  // What calls use of each slot that touch more than the caches hold, and others where it is faster: with all slots of
  // a rank twice as large as its second-level cache, what it has put has left for the last level when others come for
  // it.
  static constexpr std::size_t wide_slot_bytes(std::size_t cache_bytes) noexcept {
    return std::bit_floor(2 * cache_bytes / kSlots);
  }
  // Of the second level, of one processor.
  static std::size_t cache_bytes() noexcept;
  static std::size_t bytes_for(int size, std::size_t slot_bytes) noexcept;
  // What is at `base` where the area is in two pieces.
  static std::size_t headers_bytes(int size) noexcept {
    return sizeof(AreaHeader) + static_cast<std::size_t>(size) * (sizeof(StepsDone) + kHeaders * sizeof(StepHeader));
  }
  // The bytes before the parts of the ranks.
  static std::size_t common_bytes(int size) noexcept {
    constexpr std::size_t kPage = kSlotsHeader;
    const std::size_t end = sizeof(AreaHeader) + static_cast<std::size_t>(size) * sizeof(StepsDone);
    return (end + kPage - 1) / kPage * kPage;
  }
  // Begin the lifetimes of the objects in zeroed memory: of the common part, and of one rank's part.
  void construct() const noexcept;
  void construct_part(int rank) const noexcept;

  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  AreaHeader& header() const noexcept { return *reinterpret_cast<AreaHeader*>(base_); }
  StepsDone& done(int rank) const noexcept {
    return reinterpret_cast<StepsDone*>(base_ + sizeof(AreaHeader))[static_cast<std::size_t>(rank)];
  }
  StepHeader& header(int rank, std::uint64_t step) const noexcept {
    const std::size_t index = step & (kHeaders - 1);
    return reinterpret_cast<StepHeader*>(headers_ + static_cast<std::size_t>(rank) * header_stride_)[index];
  }
  // From the header of a rank to that of the next one, in bytes.
  std::size_t header_stride() const noexcept { return header_stride_; }
  static constexpr Place place_of(std::size_t bytes) noexcept {
    return bytes <= kInlineBytes ? Place::header : bytes <= kPartBytes ? Place::part : Place::slot;
  }
  // Where in its slot the part of a step begins.
  static constexpr std::size_t part_at(std::uint64_t step) noexcept { return step / kSlots % kParts * kPartBytes; }
  // Puts data of a step of `bytes` by `write(where)`, so far into a rank's slot if it is no part, and returns what that
  // does. The others find it there: they are told last. They look at the header all the time, and would fetch its line
  // meanwhile.
  template <class Write>
  auto put_data(int rank, std::uint64_t step, std::size_t bytes, std::size_t offset, const Write& write) const {
    StepHeader& own = header(rank, step);
    const Place place = place_of(bytes);
    if (place == Place::header) return write(own.inline_data);
    std::byte* const slot = slot_data(rank, index(step));
    if (place == Place::part) return write(slot + part_at(step));
    const auto result = write(slot + offset);
    own.offset = offset;
    return result;
  }
  // Where that is: inside of the slot, whatever a rank that went wrong has written. Requires: the rank has put it.
  //
  // A processor works ahead of a look at a flag whose line is still on its way. It can then ask for the data, too, if
  // it need not know what is in that line: of 1 KiB, a broadcast takes 0.23 instead of 0.60 us where a line takes 300
  // ns there and back (decision 0044).
  std::byte* data(int rank, std::uint64_t step, std::size_t bytes) const noexcept {
    StepHeader& its = header(rank, step);
    const Place place = place_of(bytes);
    if (place == Place::header) return its.inline_data;
    std::byte* const slot = slot_data(rank, index(step));
    if (place == Place::part) return slot + part_at(step);
    return slot + std::min<std::size_t>(guessed_zero(its.offset), slot_bytes_ - bytes);
  }
  std::byte* slot_data(int rank, std::size_t slot) const noexcept {
    return data_ + static_cast<std::size_t>(rank) * data_stride_ + slot * slot_bytes_;
  }
  // In an area of one piece: the part that one rank writes, in whole pages. This rank should be the first to touch
  // them.
  std::byte* part_of(int rank) const noexcept { return headers_ + static_cast<std::size_t>(rank) * header_stride_; }
  std::size_t part_bytes() const noexcept { return part_bytes(slot_bytes_); }
  static std::size_t part_bytes(std::size_t slot_bytes) noexcept { return kSlotsHeader + kSlots * slot_bytes; }
  // The slot of a step.
  static constexpr std::size_t index(std::uint64_t step) noexcept { return step & (kSlots - 1); }

 private:
  // The same number, which is mostly zero: the processor guesses that, as it guesses the way of a branch, and goes on.
  static std::size_t guessed_zero(std::uint64_t number) noexcept {
    if (number != 0) return number;
    std::size_t zero = 0;
    asm("" : "+r"(zero));  // the compiler would see that both are the same, and leave out the branch
    return zero;
  }

  std::byte* base_ = nullptr;
  std::byte* headers_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t slot_bytes_ = 0;
  std::size_t header_stride_ = 0, data_stride_ = 0;  // from rank to rank
};

}  // namespace col::shm_backend
