// Collectives by CMA (cross memory attach): every rank copies what it wants from the private memory of the others,
// through the kernel (Cma). They are broadcast, scatter, allgather and alltoall. The ranks tell first where the
// memory is, and wait for one another afterwards. No rank writes to the memory of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include <col/backend.hpp>

#include "backend/shm/native/cma.hpp"
#include "backend/shm/native/presence.hpp"

namespace col::shm_backend {

class CmaCollective {
 public:
  // Whether one copy by the kernel is faster than two through slots. All ranks get the same answer.
  static bool suits(const Request& request, int size) noexcept;
  static Addresses addresses(const Request& request) noexcept;

  // Requires: `all` is ordered by rank; all arguments outlive it.
  CmaCollective(const Request& request, int rank, int size, std::span<const Presence> all) noexcept
      : request_(request), rank_(rank), size_(size), all_(all) {}

  // Whether the data that others read stays in place during the call. All ranks get the same answer.
  bool possible() const noexcept;
  // Does this rank's share. Returns false if the kernel refuses: some of the output is written then, but no input.
  // `rest` as in Cma::read().
  bool run(const Cma& cma, const std::function<void()>& rest) const;

 private:
  // The elements before a rank's block, and in it.
  struct Block {
    std::size_t begin = 0, count = 0;
  };
  Block block_of(int rank) const noexcept;

  const Request& request_;
  const int rank_, size_;
  const std::span<const Presence> all_;
};

}  // namespace col::shm_backend
