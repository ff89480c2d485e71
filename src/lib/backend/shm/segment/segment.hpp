// The shared memory of one group, mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <col/error.hpp>

#include "backend/shm/segment/layout.hpp"

namespace col::shm_backend {

class Segment {
 public:
  // A power of two, and less for more ranks: small groups stream well, and large ones do not use up the machine's
  // memory.
  static std::size_t ring_bytes_for(int size) noexcept;
  // The size of a segment that is made here.
  static std::size_t bytes_for(int size) noexcept;

  // Reserves, maps and fills a new segment in the empty file `fd`. Throws resource if there is no room.
  static std::shared_ptr<Segment> create(int fd, int size, std::uint64_t token);
  // Maps the segment that another rank made in `fd`. Null if there is none of this size. Throws mismatch if it belongs
  // to another group, and resource or io if it cannot be mapped.
  static std::shared_ptr<Segment> open(int fd, int size, std::uint64_t token);

  // Takes the memory that only `rank` writes, on the NUMA node of the calling thread (before Linux 5.14, create() has
  // taken it). Each rank calls it before it tells the others that it is there. Throws resource if there is no room.
  void claim(int rank) const;

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

  // Tells the other ranks which processors the calling thread may use.
  void tell_processors(int rank) const noexcept;
  // How many processors the ranks have together; nothing before all have told.
  std::optional<int> processors() const noexcept;

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
  Segment(void* address, int size, std::size_t bytes) noexcept;
  static std::shared_ptr<Segment> map(int fd, int size, std::size_t bytes);
  SegmentHeader& header() const noexcept;
  std::size_t pair(int from, int to) const noexcept;

  std::byte* const base_;
  const std::size_t bytes_;
  const int size_;
  const std::size_t ring_bytes_;
};

}  // namespace col::shm_backend
