// What ranks tell one another in one step, before or after they move data. Each is the Moves of a Port
// (collectives.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <col/channel.hpp>

#include "backend/shm/native/waiter.hpp"
#include "backend/shm/segment/layout.hpp"

namespace col::shm_backend {

// All ranks wait for all, and may tell one another something of the same kind.
template <class Told>
class Telling {
 public:
  // `told`: by rank, including this one; empty: nothing is told.
  Telling(const Area& area, int rank, std::span<Told> told) : area_(area), rank_(rank), told_(told) {}

  void put(std::uint64_t /*index*/, std::uint64_t /*step*/, StepHeader& own) const {
    static_assert(sizeof(Told) <= kInlineBytes);
    if (!told_.empty()) std::memcpy(own.inline_data, &told_[at(rank_)], sizeof(Told));
  }
  void fold(std::uint64_t /*index*/, std::uint64_t /*step*/) const {}
  void take(std::uint64_t /*index*/, std::uint64_t step, int peer) const {
    if (!told_.empty()) std::memcpy(&told_[at(peer)], area_.header(peer, step).inline_data, sizeof(Told));
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  const Area& area_;
  const int rank_;
  const std::span<Told> told_;
};

// The elements that a rank sends to each rank, and gets from it, in calls whose counts no rank knows completely.
struct PrivateCounts {
  void set(const Request& request, int rank, int size) {
    const auto root = static_cast<std::size_t>(request.root);
    sent.assign(static_cast<std::size_t>(size), 0);
    expected.assign(static_cast<std::size_t>(size), 0);
    const auto copy = [](std::vector<std::uint64_t>& row, std::span<const std::size_t> counts) {
      std::copy(counts.begin(), counts.end(), row.begin());
    };
    const CollectiveRow& row = row_of(request.collective);
    const bool is_root = rank == request.root;
    if (row.in == Extent::block)
      sent[root] = request.in.count;
    else if (row.has_input(is_root))
      copy(sent, request.in_counts);
    if (row.out == Extent::block)
      expected[root] = request.out.count;
    else if (row.has_output(is_root))
      copy(expected, request.out_counts);
    longest = *std::max_element(sent.begin(), sent.end());
  }

  std::vector<std::uint64_t> sent, expected;  // by rank
  std::uint64_t longest = 0;  // the most that this rank sends to one; after the meeting, that any rank sends to one
};

// Every rank tells all others how much it sends to each of them: then all know the longest block, and each that it gets
// what it expects.
class Counting {
 public:
  Counting(const Area& area, int rank, PrivateCounts& counts)
      : area_(area), rank_(rank), sent_(counts.sent), expected_(counts.expected), longest_(counts.longest) {}

  void put(std::uint64_t /*index*/, std::uint64_t step, StepHeader& /*own*/) const {
    area_.put_data(rank_, step, sent_.size_bytes(), 0,
                   [&](std::byte* to) { return std::memcpy(to, sent_.data(), sent_.size_bytes()); });
  }
  void fold(std::uint64_t /*index*/, std::uint64_t /*step*/) const {}
  void take(std::uint64_t /*index*/, std::uint64_t step, int peer) const {
    const std::byte* const row = area_.data(peer, step, sent_.size_bytes());
    for (std::size_t rank = 0; rank < sent_.size(); ++rank) {
      std::uint64_t count = 0;
      std::memcpy(&count, row + rank * sizeof count, sizeof count);
      longest_ = std::max(longest_, count);
      if (static_cast<int>(rank) == rank_ && count != expected_[static_cast<std::size_t>(peer)]) throw OtherCall{peer};
    }
  }

 private:
  const Area& area_;
  const int rank_;
  const std::span<const std::uint64_t> sent_, expected_;
  std::uint64_t& longest_;
};

}  // namespace col::shm_backend
