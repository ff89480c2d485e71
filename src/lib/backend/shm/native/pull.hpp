// Collectives in which every rank copies what it wants from the memory of the others, through the kernel (Reach):
// broadcast, scatter, allgather and alltoall on private memory. The ranks have told where it lies, and wait for
// one another afterwards. Nobody writes to another's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include <col/backend.hpp>

#include "backend/shm/native/presence.hpp"
#include "backend/shm/native/reach.hpp"

namespace col::shm_backend {

class Pull {
 public:
  // Whether one copy by the kernel is faster than two through slots: the same on all ranks.
  static bool suits(const Request& request, int size) noexcept;
  static Addresses addresses(const Request& request) noexcept;

  // Requires: `all` by rank; all outlive it.
  Pull(const Request& request, int rank, int size, std::span<const Presence> all) noexcept
      : request_(request), rank_(rank), size_(size), all_(all) {}

  // Whether what others read stays where it is: the same on all ranks.
  bool possible() const noexcept;
  // This rank's share; false when the kernel refuses: some of the output is written then, and no input. `rest` as in
  // Reach::read().
  bool run(const Reach& reach, const std::function<void()>& rest) const;

 private:
  // Elements before a rank's block, and in it.
  struct Block {
    std::size_t begin = 0, count = 0;
  };
  Block block_of(int rank) const noexcept;

  const Request& request_;
  const int rank_, size_;
  const std::span<const Presence> all_;
};

}  // namespace col::shm_backend
