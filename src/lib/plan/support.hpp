// Small helpers that builders share.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include <col/plan.hpp>

#include "plan/blocks.hpp"

namespace col::plan {

// (rank + by) mod size, for any `by`.
constexpr int shifted(int rank, int by, int size) noexcept {
  const int moved = (rank + by) % size;
  return moved < 0 ? moved + size : moved;
}

// ceil(log2(n)) and floor(log2(n)). Require: n >= 1.
constexpr int ceil_log2(int n) noexcept {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
}
constexpr int floor_log2(int n) noexcept {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1;
}

// The buffer in which the raw input of another rank is received, by its type.
constexpr Buffer raw_buffer(const PlanRequest& request) noexcept {
  return request.widens && !request.wide_input ? Buffer::scratch : Buffer::wide;
}

// Gives out the elements of a plan's scratch and wide buffers, one region after the other.
class Scratch {
 public:
  Slice take(Buffer buffer, std::size_t count) noexcept {
    std::size_t& used = buffer == Buffer::wide ? wide_ : scratch_;
    const Slice slice{buffer, used, count};
    used += count;
    return slice;
  }
  std::size_t scratch() const noexcept { return scratch_; }
  std::size_t wide() const noexcept { return wide_; }

 private:
  std::size_t scratch_ = 0, wide_ = 0;
};

// A plan from a scratch layout and a function object `generate(index, round)`.
template <class Generate>
Plan make_plan(std::size_t rounds, const Scratch& scratch, Generate generate) {
  return {.rounds = rounds, .scratch = scratch.scratch(), .wide = scratch.wide(), .generate = std::move(generate)};
}

// The plan for a group of one rank: its input is the result. In v-forms, its block has a place of its own.
inline Plan alone(const PlanRequest& request) {
  const Slice in = Blocks::of_input(request).slice(Buffer::input, 0);
  const Slice out = Blocks::of_output(request).slice(Buffer::output, 0);
  const bool reduces = row_of(request.collective).reduces();
  return make_plan(1, Scratch{}, [in, out, reduces, in_place = request.in_place](std::size_t, Round& round) {
    if (reduces) return round.convert(out, in);
    if (!in_place) round.copy(out, in);
  });
}

// `first`, then `second`. They share their scratch, so nothing in it survives from one to the other.
inline Plan then(Plan first, Plan second) {
  Plan both;
  both.rounds = first.rounds + second.rounds;
  both.scratch = std::max(first.scratch, second.scratch);
  both.wide = std::max(first.wide, second.wide);
  both.generate = [first = std::move(first), second = std::move(second)](std::size_t index, Round& round) {
    if (index < first.rounds)
      first.generate(index, round);
    else
      second.generate(index - first.rounds, round);
  };
  return both;
}

}  // namespace col::plan
