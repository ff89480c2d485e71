// Memory that the ranks of a group have allocated together: a part for each, and every rank maps all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <col/backend.hpp>

#include "core/fork_guard.hpp"

namespace col::shm_backend {

class Region {
 public:
  // Maps a page and the parts of `size` ranks, one after the other in the file. Throws resource.
  Region(int fd, int rank, int size, std::size_t part_bytes, std::uint64_t number);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // Of the file.
  static std::size_t bytes_for(int size, std::size_t part_bytes) noexcept;

  // Takes the memory of this rank's part, on the side of the machine that the calling thread runs on. Throws resource.
  void claim() const;
  // Makes the others' parts, which they have claimed, known to this process's page tables: no faults in a collective.
  void enter_all() const noexcept;
  // Makes this rank's part its own: from now on, what others write there is not seen here, nor the other way round. For
  // the time after a failure; what another thread of this process writes meanwhile may be lost.
  void detach() const noexcept;
  // Ends the use of this rank's part: its memory goes back to the machine. In a forked child nothing happens.
  void give_back() const noexcept;
  // Nobody has a buffer in it any more.
  bool is_given_back() const noexcept;

  std::uint64_t number() const noexcept { return number_; }
  std::byte* part(int rank) const noexcept;
  // Where [memory, memory + bytes) begins in this rank's part, if it lies there.
  std::optional<std::size_t> offset_of(const void* memory, std::size_t bytes) const noexcept;

 private:
  struct Header;
  Header& header() const noexcept;

  const core::ForkGuard fork_guard_;
  const int rank_, size_;
  const std::size_t part_bytes_;
  const std::uint64_t number_;
  std::byte* base_ = nullptr;
  mutable std::atomic<bool> given_back_{false};  // by this rank
};

// The regions of one rank's channel. A rank that has given its part back keeps the others' mapped: they may still have
// buffers there. Used by one thread; what it has allocated may be given back by any, also when this is gone.
class Regions {
 public:
  Regions(std::string group, int rank, int size);

  // As Channel::allocate().
  std::shared_ptr<void> allocate(std::size_t bytes, const Channel::Exchange& exchange);
  // Whether the group has ever allocated: the same on all ranks at the same call.
  bool any() const noexcept { return made_ > 0; }
  // Region::detach() for all.
  void detach() noexcept;
  // Null where there is none.
  const Region* find(std::uint64_t number) const noexcept;
  const Region* find(const void* memory, std::size_t bytes) const noexcept;

 private:
  struct Offer;
  Offer make_offer(bool by_file, std::size_t part_bytes) const;
  std::shared_ptr<Region> accept(const std::string& offer, std::size_t part_bytes, std::string& answer) const;

  const std::string group_;
  const int rank_, size_;
  std::uint64_t made_ = 0;
  std::vector<std::shared_ptr<Region>> regions_;  // shared with the users of the memory
};

}  // namespace col::shm_backend
