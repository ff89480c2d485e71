// Symmetric memory: the ranks of a group allocate it together. Each rank has a part, and every rank maps all parts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <col/channel.hpp>

#include "backend/capabilities.hpp"
#include "core/fork_guard.hpp"

namespace col::shm_backend {

class SymmetricMemory {
 public:
  // Maps one page and the parts of `size` ranks, one after the other in the file. Throws resource.
  SymmetricMemory(int fd, int rank, int size, std::size_t part_bytes, std::uint64_t number);
  ~SymmetricMemory();
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;

  // The size of the file.
  static std::size_t bytes_for(int size, std::size_t part_bytes) noexcept;

  // Takes the memory of this rank's part from the machine, on the NUMA node of the calling thread. Throws resource.
  void claim() const;
  // Enters the others' parts, which they have claimed, into this process's page tables, so that a collective causes no
  // page faults.
  void enter_all() const noexcept;
  // Makes this rank's part private: from now on, this rank does not see what others write there, and they do not see
  // what it writes. It is used after a failure. What another thread of this process writes meanwhile may be lost.
  void detach() const noexcept;
  // Ends the use of this rank's part: its memory goes back to the machine. In a forked child, nothing happens.
  void give_back() const noexcept;
  // Whether no buffer is in it any more.
  bool is_given_back() const noexcept;

  std::uint64_t number() const noexcept { return number_; }
  std::byte* part(int rank) const noexcept;
  // Where [memory, memory + bytes) begins in this rank's part, if it is inside.
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

// All symmetric memory of one rank's channel. A rank that has given its own part back keeps the others' parts mapped,
// because they may still have buffers there. Used by one thread. But any thread may give back what it has allocated,
// also after this object is gone.
class SymmetricHeap {
 public:
  SymmetricHeap(std::string group, int rank, int size);

  // As Channel::allocate().
  std::shared_ptr<void> allocate(std::size_t bytes, const backend::AllocationOps::Exchange& exchange);
  // Whether the group has ever allocated. All ranks get the same answer at the same call.
  bool any() const noexcept { return made_ > 0; }
  // SymmetricMemory::detach() for all.
  void detach() noexcept;
  // Null if there is none.
  const SymmetricMemory* find(std::uint64_t number) const noexcept;
  const SymmetricMemory* find(const void* memory, std::size_t bytes) const noexcept;

 private:
  struct Offer;
  Offer make_offer(bool by_file, std::size_t part_bytes) const;
  std::shared_ptr<SymmetricMemory> accept(const std::string& offer, std::size_t part_bytes, std::string& answer) const;

  const std::string group_;
  const int rank_, size_;
  std::uint64_t made_ = 0;
  std::vector<std::shared_ptr<SymmetricMemory>> memories_;  // shared with the users of the memory
};

}  // namespace col::shm_backend
