// The shared memory of one group, mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <col/error.hpp>

#include "backend/shm/segment/layout.hpp"
#include "backend/shm/segment/pool.hpp"
#include "core/fork_guard.hpp"

namespace col::shm_backend {

class Segment {
 public:
  // A power of two, and less for more ranks: small groups stream well, and large ones do not use up the machine's
  // memory.
  static std::size_t ring_bytes_for(int size) noexcept;
  // The size of a segment that is made here, and what of it every group may need.
  static std::size_t bytes_for(int size) noexcept;
  static std::size_t first_bytes_for(int size) noexcept;

  // Reserves, maps and fills a new segment in the empty file `fd`. Throws resource if there is no room.
  static std::shared_ptr<Segment> create(int fd, int size, std::uint64_t token);
  // Maps the segment that another rank made in `fd`. Null if there is none of this size. Throws mismatch if it belongs
  // to another group, and resource or io if it cannot be mapped.
  static std::shared_ptr<Segment> open(int fd, int size, std::uint64_t token);

  // Takes the memory of `rank`'s small slots, on the NUMA node of the calling thread (before Linux 5.14, create() has
  // taken it). Each rank calls it before it tells the others that it is there. Throws resource if there is no room.
  void claim(int rank) const;

  // ---- For groups of some of the ranks of this one, which may be in a pool itself

  // Whether this process can reach the pool.
  bool has_pool() const noexcept { return root().pool_.exists(); }
  // Makes the segment of a group of `size` in the pool, for the first of its ranks; null if there is no room. The
  // others get it by its place, once. It keeps `of` alive. When all have let go of it, its memory is given back.
  static std::shared_ptr<Segment> reserve(const std::shared_ptr<Segment>& of, int size, std::uint64_t token);
  std::uint64_t place_in_pool() const noexcept;
  // Throws internal if there is none of this size and token.
  static std::shared_ptr<Segment> open(const std::shared_ptr<Segment>& of, std::uint64_t place, int size,
                                       std::uint64_t token);
  // Rings take memory when they are used, and so do slots: what is beyond a small one, and in a pool all of it. A
  // rank calls these before it writes: into its slots, up to `bytes` of each, or into its ring to `to`. It has
  // `claimed` of them so far. Returns how much it has then. They throw resource if there is no room.
  std::size_t claim_slots(int rank, std::size_t claimed, std::size_t bytes);
  // What it has of each slot when the group is made.
  std::size_t first_slots() const noexcept { return root_ != nullptr ? 0 : small_slot_bytes(); }
  std::size_t claim_ring(int rank, int to, std::size_t claimed, std::size_t bytes);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int size() const noexcept { return size_; }
  std::uint64_t token() const noexcept { return header().token; }
  std::size_t ring_bytes() const noexcept { return ring_bytes_; }
  RankPlace& place(int rank) const noexcept;
  // Requires: from != to.
  RingIndices& indices(int from, int to) const noexcept;
  std::byte* ring(int from, int to) const noexcept;
  Area area() const noexcept;

  std::size_t small_slot_bytes() const noexcept { return header().small_slot_bytes; }
  // For rank 0, before it lets the others go on.
  void set_tuning(const Tuning& tuning) const noexcept { header().tuning = tuning; }
  const Tuning& tuning() const noexcept { return header().tuning; }

  // While the group is made. Whether `rank` has told its processors, and so has mapped the segment.
  bool is_here(int rank) const noexcept;
  // For rank 0: wakes the others.
  void decide(Verdict verdict) const noexcept;
  Verdict verdict() const noexcept;

  // Tells the other ranks which processors the calling thread may use, and which part of their time its control groups
  // leave it: `quota`, as by quota_of() in another group of this process.
  void tell_processors(int rank, std::optional<std::uint32_t> quota = std::nullopt) const noexcept;
  std::uint32_t quota_of(int rank) const noexcept { return place(rank).processors_quota; }
  // How many processors the ranks have together; nothing before all have told.
  std::optional<int> processors() const noexcept;
  // Whether each rank has processors that no other one may run on, as when a launcher has bound them. Requires:
  // processors() has returned something.
  bool are_apart() const noexcept;

  // Leaves words for the others, in a pool. Returns how many ranks have done so by now; nothing elsewhere.
  std::optional<int> post_farewell(int rank, std::string_view words) const noexcept;
  std::optional<std::string> farewell_of(int rank) const;

  // Ends the group for all ranks, unless it has ended before.
  void abort(int rank, const Error& cause) noexcept;
  bool aborted() const noexcept;
  // Whether the group has ended or is about to end: a rank is writing the reason.
  bool ending() const noexcept;
  // ending(), ordered after everything that this thread, or the kernel for it, has read before.
  bool ending_after_reads() const noexcept;
  // What a rank throws when it finds that the group has ended; nothing while aborted() is false.
  std::optional<Error> abort_error() const;

 private:
  Segment(void* address, int size, std::size_t mapped_bytes, std::shared_ptr<Segment> root = nullptr) noexcept;
  static std::size_t bytes_for(int size, std::size_t slot_bytes) noexcept;
  char* words_at(int rank) const noexcept;
  static std::shared_ptr<Segment> map(int fd, int size, std::size_t bytes, std::size_t least);
  void construct(std::uint64_t token, std::size_t slot_bytes, std::size_t pool_bytes) const noexcept;
  void find_pool() noexcept;
  SegmentHeader& header() const noexcept;
  std::size_t pair(int from, int to) const noexcept;
  std::size_t own_bytes() const noexcept;  // without the pool
  const Segment& root() const noexcept { return root_ != nullptr ? *root_ : *this; }
  void require_memory();
  void take_memory(std::byte* begin, std::size_t bytes) const;
  [[noreturn]] void throw_lack(const std::string& why) const;
  void leave_pool() const noexcept;

  std::byte* const base_;
  const std::size_t mapped_bytes_;
  const int size_;
  const std::size_t ring_bytes_;
  const std::shared_ptr<Segment> root_;  // shared by all in its pool; null: this one has a mapping of its own
  const core::ForkGuard fork_guard_;
  Pool pool_;                           // of a segment with a mapping of its own
  std::atomic<bool> has_asked_{false};  // whether there is memory for what is taken later
};

}  // namespace col::shm_backend
