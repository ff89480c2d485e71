// The content of a plan file, and what its writer and its reader share. Steps are in the file's unit: elements or
// chunks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/plan.hpp>

namespace col::plan {

inline constexpr std::size_t kPlanVersion = 1;
// The largest number of elements in a file. Every JSON reader keeps whole numbers up to here exact.
inline constexpr std::size_t kMostElements = std::size_t{1} << 53;
// The largest number of chunks in one buffer.
inline constexpr std::size_t kMostChunks = std::size_t{1} << 20;

// `count` elements cut into `chunks`, again and again: chunk k of any buffer is as long as chunk k mod `chunks` of the
// first block. So a message keeps its length in every buffer, as long as its chunk has the same number modulo `chunks`.
class Cut {
 public:
  Cut(std::size_t count, std::size_t chunks) noexcept
      : chunks_(chunks), count_(count), short_(count / chunks), longer_(count % chunks) {}
  // Where chunk k begins. Requires: fits(k).
  std::size_t begin(std::size_t k) const noexcept {
    const std::size_t within = k % chunks_;
    return k / chunks_ * count_ + within * short_ + (within < longer_ ? within : longer_);
  }
  // True if the first k chunks have at most kMostElements elements.
  bool fits(std::size_t k) const noexcept { return k < chunks_ || count_ <= kMostElements / (k / chunks_ + 1); }
  Slice elements(const Slice& slice) const noexcept {
    const std::size_t first = begin(slice.offset);
    return {slice.buffer, first, begin(slice.offset + slice.count) - first};
  }

 private:
  std::size_t chunks_, count_, short_, longer_;
};

struct RankSteps {
  std::vector<Step> steps = {};              // of all rounds, one after the other
  std::vector<std::size_t> round_ends = {};  // where in `steps` each round ends
  std::size_t scratch = 0, wide = 0;
};

struct PlanContent {
  std::string name;
  bool in_chunks = false;
  PlanProblem problem;  // in the file's unit; in_chunks: its count is `chunks`
  std::vector<RankSteps> ranks = {};
  std::uint64_t hash = 0;
};

// Throws invalid_argument as PlanFile::parse() does; `source` names the text in messages.
PlanContent read_plan(std::string_view text, std::string source);

// Checks that these slices of a plan in chunks have equal length for every count: the two sides of every message, and
// the operands of every local step. Throws invalid_argument that names the step.
void check_chunk_lengths(const PlanContent& content, std::string_view source);

}  // namespace col::plan
