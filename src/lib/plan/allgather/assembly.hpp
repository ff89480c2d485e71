// Where an allgather assembles its result when several blocks travel as one message.
#pragma once

#include <cstddef>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/support.hpp"

namespace col::plan::allgather {

// The blocks of all ranks in one run: piece i is the block of rank (first + i) mod p. The run is the output itself if
// its blocks are in this order without gaps, otherwise scratch. Messages are the same in both cases.
class Assembly {
 public:
  // Takes its part of `scratch`, if it needs one.
  Assembly(const PlanRequest& request, int first, Scratch& scratch)
      : rank_(static_cast<std::size_t>(request.rank)),
        size_(static_cast<std::size_t>(request.size)),
        first_(static_cast<std::size_t>(first)),
        in_place_(request.in_place),
        output_(Blocks::of_output(request)),
        pieces_(size_, [this](std::size_t i) { return output_.count(block_at(i)); }) {
    const auto begin = first_ == 0 ? run_of(output_) : std::nullopt;
    region_ = begin ? Slice{Buffer::output, *begin, pieces_.total()} : scratch.take(Buffer::scratch, pieces_.total());
  }

  // Pieces [i, j).
  Slice range(std::size_t i, std::size_t j) const { return pieces_.range(region_, i, j); }
  Slice own_input() const { return {Buffer::input, 0, output_.count(rank_)}; }

  // Puts this rank's own block in its place.
  void place_own(Round& round) const {
    if (!in_place_) round.copy(output_.slice(Buffer::output, rank_), own_input());
    if (region_.buffer == Buffer::output) return;
    const std::size_t i = (rank_ + size_ - first_) % size_;
    round.copy(range(i, i + 1), own_input());
  }

  // Copies pieces [i, j), which have arrived, to the output.
  void deliver(Round& round, std::size_t i, std::size_t j) const {
    if (region_.buffer == Buffer::output) return;
    while (i < j) {
      const std::size_t from = i;
      const std::size_t to = output_.offset(block_at(i));
      do {
        ++i;
      } while (i < j && output_.offset(block_at(i)) == to + pieces_.count(from, i));
      round.copy({Buffer::output, to, pieces_.count(from, i)}, range(from, i));
    }
  }

 private:
  std::size_t block_at(std::size_t i) const noexcept { return (first_ + i) % size_; }

  std::size_t rank_, size_, first_;
  bool in_place_;
  Blocks output_;
  Packed pieces_;
  Slice region_;
};

}  // namespace col::plan::allgather
