// Blocks of a call that the leaders of nodes carry, and how they lie in one message.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <col/plan.hpp>

namespace col::plan {

// Leaders carry the blocks that are short: a long one would only be copied twice more on its way. Of equal blocks, they
// carry all: there the selection table knows how long they are. A block is short for all ranks that know its length.
class Carried {
 public:
  explicit Carried(const PlanRequest& request) {
    if (!row_of(request.collective).has_private_counts()) return;
    most_ = request.parameters.segment == 0 ? kMost : request.parameters.segment;
  }
  bool is(std::size_t count) const noexcept { return count <= most_; }
  // So many elements of a block do they carry.
  std::size_t of(std::size_t count) const noexcept { return is(count) ? count : 0; }

 private:
  // 16 KiB of float32.
  static constexpr std::size_t kMost = 4096;
  std::size_t most_ = std::numeric_limits<std::size_t>::max();
};

// Pieces of a buffer, one after the other in a message.
class Parcel {
 public:
  void add(const Slice& piece) {
    if (piece.empty()) return;
    total_ += piece.count;
    if (!pieces_.empty() && pieces_.back().buffer == piece.buffer &&
        pieces_.back().offset + pieces_.back().count == piece.offset)
      pieces_.back().count += piece.count;
    else
      pieces_.push_back(piece);
  }
  std::size_t total() const noexcept { return total_; }
  // Where they are all, if they are neighbours: such a parcel needs no copy.
  std::optional<Slice> in_one() const {
    return pieces_.size() == 1 ? std::optional<Slice>(pieces_.front()) : std::nullopt;
  }
  void pack(Slice into, Round& round) const {
    each(into, [&](const Slice& packed, const Slice& piece) { round.copy(packed, piece); });
  }
  void unpack(Slice from, Round& round) const {
    each(from, [&](const Slice& packed, const Slice& piece) { round.copy(piece, packed); });
  }

 private:
  template <class Visit>
  void each(Slice region, Visit visit) const {
    std::size_t position = 0;
    for (const Slice& piece : pieces_) {
      visit(region.part(position, piece.count), piece);
      position += piece.count;
    }
  }

  std::vector<Slice> pieces_;
  std::size_t total_ = 0;
};

}  // namespace col::plan
