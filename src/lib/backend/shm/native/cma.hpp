// CMA (cross memory attach): reads the memory of other ranks through the kernel (process_vm_readv). This takes one
// copy, where slots take two.
//
// The ranks of a group find out at the first opportunity whether it works between all of them. It does not work if a
// security module, a filter of system calls, or different process namespaces prevent it. In one meeting, each rank
// tells who it is, and then tries. In the next meeting, each tells whether it could, and then all know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <col/request.hpp>

#include "backend/shm/native/lending.hpp"
#include "backend/shm/segment/tuning.hpp"

namespace col::shm_backend {

class Cma {
 public:
  // `token`: equal on all ranks of the group, and on no others.
  Cma(std::string group, int rank, std::uint64_t token);
  Cma(const Cma&) = delete;
  Cma& operator=(const Cma&) = delete;

  // Whether meetings are useful for this alone. For this and the following functions, all ranks get the same answer at
  // the same call.
  bool may_work() const noexcept { return state_ != State::no; }
  bool works() const noexcept { return state_ == State::yes; }
  Identity identity() const noexcept;
  // Call it after a meeting, with what all ranks have told, by rank.
  void learn(std::span<const Presence> all);

  // Call it after a meeting in which each rank has told whether it could read. Returns false, from then on always, if
  // one rank could not: for example for device memory, which the probe did not test.
  bool all_have_read(std::span<const Presence> all) noexcept;

  // Copies from the memory of `rank`. Returns false if the kernel refuses. Throws peer_lost if that process is gone. It
  // calls `rest` from time to time, which may throw. Requires: works().
  bool read(int rank, std::uint64_t from, std::byte* to, std::size_t bytes, const std::function<void()>& rest) const;

 private:
  enum class State { unknown, tried, yes, no };

  const std::string group_;
  const int rank_;
  const std::int64_t pid_;  // of this rank; asking the kernel takes a tenth of a microsecond, in each call
  const std::uint64_t proof_;
  State state_ = State::unknown;
  bool reaches_all_ = false;
  std::vector<std::int64_t> pids_;  // by rank
};

// Collectives by CMA: every rank copies what it wants from the private memory of the others. They are broadcast,
// scatter, gather, allgather and alltoall; of two ranks also reduce and allreduce. The ranks tell first where the
// memory is, and wait for one another afterwards. No rank writes to the memory of another.
class CmaCollective {
 public:
  // What such a call is. Nothing: none that the kernel can serve. All ranks get the same answer, here and below.
  static std::optional<KernelCall> call_of(const Request& request, int size) noexcept;
  // Whether one copy by the kernel may be faster than two through slots.
  static bool suits(const Request& request, int size, const Tuning& tuning) noexcept;
  static Addresses addresses(const Request& request, int rank) noexcept;

  // Requires: `all` is ordered by rank; all arguments outlive it.
  CmaCollective(const Request& request, int rank, int size, std::span<const Presence> all) noexcept
      : request_(request), rank_(rank), size_(size), all_(all) {}

  // Whether the data that others read stays in place during the call. All ranks get the same answer.
  bool possible() const noexcept;
  // Does this rank's share. Returns false if the kernel refuses: some of the output is written then, but no input.
  // `rest` as in Cma::read().
  bool run(const Cma& cma, const std::function<void()>& rest) const;

 private:
  bool fold(const Cma& cma, const std::function<void()>& rest) const;

  const Request& request_;
  const int rank_, size_;
  const std::span<const Presence> all_;
};

}  // namespace col::shm_backend
