// Checks the outputs of reductions. Each function returns the first thing that is wrong, in words, or nothing.
#pragma once

#include <string>

#include "colcheck/engine/fold.hpp"

namespace col::colcheck {

template <class T>
std::string show(T value) {
  return fmt::format("{} ({:#x})", static_cast<Partial<T>>(value), bits_of(value));
}

// ---- Checks of one element. `judge`(element, ranks, got): the element of the whole vector, folded over the ranks [0,
// ranks).

// Whether it is the fold in rank order, bit by bit. Any NaN counts as NaN.
template <class T>
auto judge_left_fold(const Reduction& call, const PerRank<T>& inputs) {
  return [&call, &inputs](std::size_t i, int ranks, T got) -> std::string {
    const T want = left_fold(call, inputs, i, ranks);
    if (is_alike(got, want)) return {};
    return fmt::format("{}, not {}", show(got), show(want));
  };
}

// Nothing if `got` is in the range. `bound` says how wide the range is.
template <class T>
std::string outside(const Range<T>& range, T got, const std::string& bound) {
  const auto value = static_cast<Partial<T>>(got);
  if (static_cast<Partial<T>>(range.low) <= value && value <= static_cast<Partial<T>>(range.high)) return {};
  return fmt::format("{}, not between {} and {}: the exact result, give or take {}", show(got), show(range.low),
                     show(range.high), bound);
}

// Whether it is a possible result of some order of the operations.
template <class T>
auto judge_any_fold(const Reduction& call, const PerRank<T>& inputs) {
  return [&call, &inputs](std::size_t i, int ranks, T got) {
    return outside(any_fold(call, inputs, i, ranks), got,
                   fmt::format("({} + 2) * 2^-{} * the sum of the magnitudes, then rounded once", ranks,
                               std::numeric_limits<Partial<T>>::digits));
  };
}

// Whether it is a possible result of some order in which all partial results are rounded to T.
template <class T>
auto judge_compressed_fold(const Reduction& call, const PerRank<T>& inputs) {
  return [&call, &inputs](std::size_t i, int ranks, T got) {
    return outside(compressed_fold(call, inputs, i, ranks), got,
                   fmt::format("((1 + 2^-{})^({} + 3) - 1) * the sum of the magnitudes", kPrecision<T>, ranks));
  };
}

// ---- Checks of outputs

template <class T, class Judge>
std::string problem_on_rank(const Reduction& call, int rank, int size, std::size_t total, const std::vector<T>& output,
                            Judge judge) {
  const Covered mine = covered(call, rank, size, total);
  for (std::size_t i = 0; i < mine.count; ++i) {
    const std::string problem = judge(mine.begin + i, mine.ranks, output[i]);
    if (!problem.empty()) return fmt::format("element {} on rank {}: {}", mine.begin + i, rank, problem);
  }
  return {};
}

template <class T, class Judge>
std::string first_problem(const Reduction& call, const PerRank<T>& inputs, const PerRank<T>& outputs, Judge judge) {
  const int size = static_cast<int>(inputs.size());
  for (int rank = 0; rank < size; ++rank) {
    const std::string problem =
        problem_on_rank(call, rank, size, inputs[0].size(), outputs[static_cast<std::size_t>(rank)], judge);
    if (!problem.empty())
      return fmt::format("{}, {} ranks, {}: {}", call.text(), size, to_string(dtype_of<T>()), problem);
  }
  return {};
}

// Whether an allreduce gave all ranks the same bits, including those of NaNs.
template <class T>
std::string differs_between_ranks(const Reduction& call, const PerRank<T>& outputs) {
  if (call.collective != Collective::allreduce) return {};
  for (std::size_t r = 1; r < outputs.size(); ++r) {
    for (std::size_t i = 0; i < outputs[0].size(); ++i) {
      if (bits_of(outputs[r][i]) != bits_of(outputs[0][i]))
        return fmt::format("{}: element {} is {} on rank 0, {} on rank {}", call.text(), i, show(outputs[0][i]),
                           show(outputs[r][i]), r);
    }
  }
  return {};
}

template <class T>
std::string differs_from_left_fold(const Reduction& call, const PerRank<T>& inputs, const PerRank<T>& outputs) {
  return first_problem(call, inputs, outputs, judge_left_fold(call, inputs));
}

// Whether all outputs are possible results of the call's algorithm: the fold in rank order, or any_fold().
template <class T>
std::string differs_from_promise(const Reduction& call, const PerRank<T>& inputs, const PerRank<T>& outputs) {
  if (call.order == FoldOrder::rank_order) return differs_from_left_fold(call, inputs, outputs);
  return first_problem(call, inputs, outputs, judge_any_fold(call, inputs));
}

}  // namespace col::colcheck
