#include "backend/shm/native/cma_collective.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backend/shm/native/movement.hpp"

namespace col::shm_backend {
namespace {

// Measured (docs/performance.md). Below, two more waits and the kernel's own work cost more than the second copy; with
// more ranks there are more waits. What several ranks want of one is faster out of a slot, which stays in the caches.
constexpr std::size_t kSmallestOfTwo = std::size_t{16} << 10, kSmallestOfMany = std::size_t{64} << 10;
constexpr std::size_t kSmallestWhole = std::size_t{8} << 10, kLargestWhole = std::size_t{2} << 20;

// Each rank has a block for each.
bool is_exchange(const Request& request) {
  const CollectiveRow& row = row_of(request.collective);
  return row.in == Extent::blocks && row.out == Extent::blocks;
}

}  // namespace

bool CmaCollective::suits(const Request& request, int size) noexcept {
  const CollectiveRow& row = row_of(request.collective);
  if (row.reduces() || row.has_private_counts() || row.out_on_root || row.out == Extent::nothing) return false;
  // One rank copies while the other waits: through slots both do.
  if (row.out == Extent::vector)
    return size == 2 && request.out.bytes() >= kSmallestWhole && request.out.bytes() <= kLargestWhole;
  if (row.in == Extent::block && size != 2) return false;
  return Movement::length_of(request, size) * size_of(request.out.dtype) >=
         (size == 2 ? kSmallestOfTwo : kSmallestOfMany);
}

Addresses CmaCollective::addresses(const Request& request) noexcept {
  const auto number = [](const void* memory) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory));
  };
  // In place, a rank would overwrite what others have yet to read.
  if (is_exchange(request) && request.in.data == request.out.data) return {};
  return {number(request.in.data), number(request.out.data)};
}

bool CmaCollective::possible() const noexcept {
  return !is_exchange(request_) ||
         std::all_of(all_.begin(), all_.end(), [](const Presence& each) { return each.addresses.in != 0; });
}

CmaCollective::Block CmaCollective::block_of(int rank) const noexcept {
  const auto r = static_cast<std::size_t>(rank);
  if (!request_.out_counts.empty())
    return {std::accumulate(request_.out_counts.begin(), request_.out_counts.begin() + rank, std::size_t{0}),
            request_.out_counts[r]};
  const std::size_t each = request_.out.count / static_cast<std::size_t>(size_);
  return {r * each, each};
}

bool CmaCollective::run(const Cma& cma, const std::function<void()>& rest) const {
  const auto at = [&](int rank) -> const Addresses& { return all_[static_cast<std::size_t>(rank)].addresses; };
  const int root = request_.root;
  const bool is_root = rank_ == root;
  const auto own = static_cast<std::uint64_t>(rank_);
  auto* const out = static_cast<std::byte*>(request_.out.data);
  const auto* const in = static_cast<const std::byte*>(request_.in.data);
  const CollectiveRow& row = row_of(request_.collective);
  if (row.out == Extent::vector) return is_root || cma.read(root, at(root).out, out, request_.out.bytes(), rest);
  if (row.in_on_root) {
    const std::size_t bytes = request_.out.bytes();
    if (!is_root) return cma.read(root, at(root).in + own * bytes, out, bytes, rest);
    if (out != in + own * bytes) std::memcpy(out, in + own * bytes, bytes);
    return true;
  }
  // A block from each, from the next rank on, so that not all read the same memory at once.
  const std::size_t size = size_of(request_.in.dtype);
  for (int i = 1; i <= size_; ++i) {
    const int peer = (rank_ + i) % size_;
    const Block theirs = block_of(peer);
    const std::size_t offset = is_exchange(request_) ? block_of(rank_).begin * size : 0;
    std::byte* const to = out + theirs.begin * size;
    const std::size_t bytes = theirs.count * size;
    if (peer != rank_ && !cma.read(peer, at(peer).in + offset, to, bytes, rest)) return false;
    if (peer == rank_ && bytes > 0 && to != in + offset) std::memcpy(to, in + offset, bytes);
  }
  return true;
}

}  // namespace col::shm_backend
