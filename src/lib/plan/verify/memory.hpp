// A rank's four buffers, as runs of symbolic values.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <col/plan.hpp>

#include "plan/verify/symbols.hpp"

namespace col::plan::symbolic {

// An array of symbolic values, as runs with equal history. Its cost depends on how it was written, not on its length.
class Contents {
 public:
  explicit Contents(std::size_t count = 0) : count_(count), runs_{Run{}} {}
  // Require: the elements are inside.
  void read(std::size_t offset, std::size_t count, std::vector<Piece>& pieces) const;  // appends
  void write(std::size_t offset, const Piece& piece);

 private:
  // It extends from `begin` to the begin of the next run, or to the end.
  struct Run {
    std::size_t begin = 0;
    Node node = kUnset;
    std::size_t index = 0;
    bool continued_by(const Run& next) const noexcept {
      return node == next.node && (node == kUnset || index + (next.begin - begin) == next.index);
    }
  };
  std::size_t run_at(std::size_t offset) const noexcept;
  std::size_t end_of(std::size_t run) const noexcept { return run + 1 < runs_.size() ? runs_[run + 1].begin : count_; }

  std::size_t count_;
  std::vector<Run> runs_;  // the first begins at 0; neighbours differ
};

// "output[3..7)"
std::string describe(const Slice& slice);

class RankMemory {
 public:
  // Holds the values of the buffers before the first round.
  RankMemory(const PlanProblem& problem, int rank, const Plan& plan, const Symbols& symbols);

  // The real place of a slice: slices of input and output are in the same memory if the problem is in place.
  struct Extent {
    Buffer memory;
    std::size_t begin, end;
    bool operator==(const Extent&) const = default;
    bool overlaps(const Extent& other) const noexcept {
      return memory == other.memory && begin < other.end && other.begin < end;
    }
  };
  Extent extent(const Slice& slice) const noexcept;

  std::size_t count(Buffer buffer) const noexcept { return counts_[static_cast<std::size_t>(buffer)]; }
  bool has(const Slice& slice) const noexcept {
    return slice.count <= count(slice.buffer) && slice.offset <= count(slice.buffer) - slice.count;
  }
  // True if the buffer's elements have the wide type, and this is not the user's type.
  bool is_wide(Buffer buffer) const noexcept { return is_wide_[static_cast<std::size_t>(buffer)]; }
  bool is_writable(Buffer buffer) const noexcept { return is_writable_[static_cast<std::size_t>(buffer)]; }

  // Require: has(slice); pieces of the slice's count.
  void read(const Slice& slice, std::vector<Piece>& pieces) const;  // replaces
  void write(const Slice& slice, const std::vector<Piece>& pieces);

 private:
  struct Mapping {
    Buffer memory = Buffer::input;
    std::size_t base = 0;
  };
  void share(const PlanRequest& request);
  const Contents& contents(Buffer memory) const noexcept { return contents_[static_cast<std::size_t>(memory)]; }
  Contents& contents(Buffer memory) noexcept { return contents_[static_cast<std::size_t>(memory)]; }

  std::array<std::size_t, 4> counts_ = {};
  std::array<bool, 4> is_wide_ = {}, is_writable_ = {};
  std::array<Mapping, 4> mappings_ = {};
  std::array<Contents, 4> contents_;
};

}  // namespace col::plan::symbolic
