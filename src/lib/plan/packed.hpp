// Pieces of a vector in one run of memory, so that neighbouring pieces travel as one message.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <col/plan.hpp>

#include "plan/blocks.hpp"

namespace col::plan {

// Where pieces begin that are stored one after the other. Cheap to copy.
class Packed {
 public:
  Packed() : Packed(0, [](std::size_t) { return std::size_t{0}; }) {}
  // `parts` pieces; piece i has count(i) elements.
  template <class Count>
  Packed(std::size_t parts, Count count) {
    auto starts = std::make_shared<std::vector<std::size_t>>(parts + 1);
    for (std::size_t i = 0; i < parts; ++i) (*starts)[i + 1] = (*starts)[i] + count(i);
    starts_ = std::move(starts);
  }

  std::size_t parts() const noexcept { return starts_->size() - 1; }
  std::size_t start(std::size_t i) const noexcept { return (*starts_)[i]; }
  std::size_t total() const noexcept { return starts_->back(); }
  // Elements of pieces [first, last).
  std::size_t count(std::size_t first, std::size_t last) const noexcept { return start(last) - start(first); }
  // Pieces [first, last), if the first of all pieces begins at `region`.
  Slice range(const Slice& region, std::size_t first, std::size_t last) const noexcept {
    return region.part(start(first), count(first, last));
  }

 private:
  std::shared_ptr<const std::vector<std::size_t>> starts_;  // shared: plans are copied, this never changes
};

// Where all blocks begin, if they are one after the other in memory; otherwise nothing. Displacements may differ
// between ranks, so only this rank may use the answer.
inline std::optional<std::size_t> run_of(const Blocks& blocks) noexcept {
  std::optional<std::size_t> begin;
  std::size_t next = 0;
  for (std::size_t i = 0; i < blocks.parts(); ++i) {
    if (blocks.count(i) == 0) continue;  // its place does not matter
    if (begin && blocks.offset(i) != next) return std::nullopt;
    if (!begin) begin = blocks.offset(i);
    next = blocks.offset(i) + blocks.count(i);
  }
  return begin.value_or(0);
}

}  // namespace col::plan
