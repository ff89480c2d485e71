#include "backend/shm/native/pull.hpp"

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

}  // namespace

bool Pull::suits(const Request& request, int size) noexcept {
  const auto suits_block = [&](std::size_t bytes) { return bytes >= (size == 2 ? kSmallestOfTwo : kSmallestOfMany); };
  switch (request.collective) {
    case Collective::scatter:
      return suits_block(request.out.bytes());
    case Collective::alltoall:
      return suits_block(request.in.bytes() / static_cast<std::size_t>(size));
    case Collective::broadcast:
      // One rank copies while the other waits: through slots both do.
      return size == 2 && request.out.bytes() >= kSmallestWhole && request.out.bytes() <= kLargestWhole;
    case Collective::allgather:
      return size == 2 && suits_block(request.in.bytes());
    case Collective::allgatherv:
      return size == 2 && suits_block(Movement::length_of(request, size) * size_of(request.in.dtype));
    default:
      return false;
  }
}

Addresses Pull::addresses(const Request& request) noexcept {
  const auto number = [](const void* memory) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory));
  };
  // In place, a rank would overwrite what others have yet to read.
  if (request.collective == Collective::alltoall && request.in.data == request.out.data) return {};
  return {number(request.in.data), number(request.out.data)};
}

bool Pull::possible() const noexcept {
  return request_.collective != Collective::alltoall ||
         std::all_of(all_.begin(), all_.end(), [](const Presence& each) { return each.addresses.in != 0; });
}

Pull::Block Pull::block_of(int rank) const noexcept {
  const auto r = static_cast<std::size_t>(rank);
  if (!request_.out_counts.empty())
    return {std::accumulate(request_.out_counts.begin(), request_.out_counts.begin() + rank, std::size_t{0}),
            request_.out_counts[r]};
  const std::size_t each = request_.collective == Collective::alltoall
                               ? request_.in.count / static_cast<std::size_t>(size_)
                               : request_.in.count;
  return {r * each, each};
}

bool Pull::run(const Reach& reach, const std::function<void()>& rest) const {
  const auto at = [&](int rank) -> const Addresses& { return all_[static_cast<std::size_t>(rank)].addresses; };
  const int root = request_.root;
  const bool is_root = rank_ == root;
  const auto own = static_cast<std::uint64_t>(rank_);
  auto* const out = static_cast<std::byte*>(request_.out.data);
  const auto* const in = static_cast<const std::byte*>(request_.in.data);
  switch (request_.collective) {
    case Collective::broadcast:
      return is_root || reach.read(root, at(root).out, out, request_.out.bytes(), rest);
    case Collective::scatter: {
      const std::size_t bytes = request_.out.bytes();
      if (!is_root) return reach.read(root, at(root).in + own * bytes, out, bytes, rest);
      if (out != in + own * bytes) std::memcpy(out, in + own * bytes, bytes);
      return true;
    }
    default:
      break;
  }
  // allgather(v), alltoall: a block from each, from the next rank on, so that not all read the same
  // memory at once.
  const std::size_t size = size_of(request_.in.dtype);
  for (int i = 1; i <= size_; ++i) {
    const int peer = (rank_ + i) % size_;
    const Block theirs = block_of(peer);
    const std::size_t offset = request_.collective == Collective::alltoall ? block_of(rank_).begin * size : 0;
    std::byte* const to = out + theirs.begin * size;
    const std::size_t bytes = theirs.count * size;
    if (peer != rank_ && !reach.read(peer, at(peer).in + offset, to, bytes, rest)) return false;
    if (peer == rank_ && bytes > 0 && to != in + offset) std::memcpy(to, in + offset, bytes);
  }
  return true;
}

}  // namespace col::shm_backend
