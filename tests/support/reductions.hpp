// Reductions as tests of their numerics see them: the same calls on all ranks, every rank's output, and which part of
// the whole result that output is.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <col/backend.hpp>
#include <col/group.hpp>
#include <col/plan.hpp>

#include "support/ranks.hpp"

namespace col::test {

// The elements of rank r at [r]. Inputs: the same number on every rank, a multiple of the number of ranks.
template <class T>
using PerRank = std::vector<std::vector<T>>;

template <class T>
constexpr bool is_half_v = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <class T>
auto bits_of(T value) {
  if constexpr (sizeof(T) == 1)
    return std::bit_cast<std::uint8_t>(value);
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<std::uint16_t>(value);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<std::uint32_t>(value);
  else
    return std::bit_cast<std::uint64_t>(value);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (bits_of(a[i]) != bits_of(b[i])) return false;
  }
  return true;
}

// One call that all ranks make.
struct Reduction {
  Collective collective = Collective::allreduce;
  std::string algorithm = {};             // empty: chosen
  FoldOrder order = FoldOrder::any;       // what it promises
  std::vector<Op> ops = {ReduceOp::sum};  // by rank, or one for all
  int root = 0;
  bool in_place = false;  // allreduce, reduce and scans
  bool deterministic = false;
  bool compress = false;

  const Op& op(int rank) const { return ops.size() == 1 ? ops.front() : ops[static_cast<std::size_t>(rank)]; }
  Options options(int rank) const {
    Options options;
    options.op = op(rank);
    options.root = root;
    options.algorithm = algorithm;
    options.deterministic = deterministic;
    options.compress = compress;
    return options;
  }
  std::string text() const {
    return fmt::format("{} of {} by {}, root {}{}{}{}", to_string(collective), op(0).name(),
                       algorithm.empty() ? "what is chosen" : algorithm, root, in_place ? ", in place" : "",
                       deterministic ? ", deterministic" : "", compress ? ", compressed" : "");
  }
};

// Output of a rank: `count` elements of the vector from `begin`, each folded over the ranks [0, ranks).
struct Covered {
  std::size_t begin = 0, count = 0;
  int ranks = 0;
};

// Of a reduce_scatterv: nothing for rank 0, two blocks for the last rank, one for each of the others.
inline std::vector<std::size_t> uneven_counts(int size, std::size_t total) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(size), total / static_cast<std::size_t>(size));
  counts.back() += counts.front();
  counts.front() = 0;
  return counts;
}

inline Covered covered(const Reduction& reduction, int rank, int size, std::size_t total) {
  const std::size_t block = total / static_cast<std::size_t>(size);
  const auto r = static_cast<std::size_t>(rank);
  switch (reduction.collective) {
    case Collective::reduce:
      return rank == reduction.root ? Covered{0, total, size} : Covered{};
    case Collective::scan:
      return {0, total, rank + 1};
    case Collective::exscan:
      return rank > 0 ? Covered{0, total, rank} : Covered{};
    case Collective::reduce_scatter:
      return {r * block, block, size};
    case Collective::reduce_scatterv:
      return {r == 0 ? 0 : (r - 1) * block, uneven_counts(size, total)[r], size};
    default:
      return {0, total, size};
  }
}

// This rank's output; empty where it has none.
template <class T>
std::vector<T> run(Group& group, const Reduction& reduction, const std::vector<T>& input) {
  const Options options = reduction.options(group.rank());
  const Covered mine = covered(reduction, group.rank(), group.size(), input.size());
  const bool whole = reduction.collective == Collective::exscan;  // rank 0 has an output, which nobody writes
  std::vector<T> out = reduction.in_place ? input : std::vector<T>(whole ? input.size() : mine.count);
  const std::vector<T> kept = input;
  const ConstTensorView in = reduction.in_place ? ConstTensorView(out) : ConstTensorView(kept);
  switch (reduction.collective) {
    case Collective::reduce:
      group.reduce(in, out, options);
      break;
    case Collective::scan:
      group.scan(in, out, options);
      break;
    case Collective::exscan:
      group.exscan(in, out, options);
      break;
    case Collective::reduce_scatter:
      group.reduce_scatter(in, out, options);
      break;
    case Collective::reduce_scatterv:
      group.reduce_scatterv(in, out, uneven_counts(group.size(), input.size()), options);
      break;
    default:
      group.allreduce(in, out, options);
      break;
  }
  expect(same_bits(kept, input), reduction.text() + " changed its input");
  out.resize(mine.count);
  return out;
}

// Makes the calls one after the other in a group of inputs.size() ranks. Returns the outputs, [call][rank]; throws what
// went wrong.
template <class T>
std::vector<PerRank<T>> run_all(const std::string& backend, const std::vector<Reduction>& calls,
                                const PerRank<T>& inputs) {
  const int size = static_cast<int>(inputs.size());
  std::vector<PerRank<T>> outputs(calls.size(), PerRank<T>(inputs.size()));
  const auto outcomes = run_threads(size, [&](int rank, Context& context) {
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = size, .backend_name = backend});
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < calls.size(); ++i) outputs[i][r] = run(group, calls[i], inputs[r]);
    group.barrier();
  });
  expect(all_good(outcomes), show(outcomes));
  return outputs;
}

inline bool is_reduction(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce || collective == Collective::scan ||
         collective == Collective::exscan || collective == Collective::reduce_scatter ||
         collective == Collective::reduce_scatterv;
}

inline const std::vector<Collective>& reductions() {
  static const std::vector<Collective> kAll = {Collective::allreduce,      Collective::reduce,
                                               Collective::scan,           Collective::exscan,
                                               Collective::reduce_scatter, Collective::reduce_scatterv};
  return kAll;
}

// A call of every built-in algorithm that serves `size` ranks; those that cut their vectors into segments also with
// short ones, the rooted ones also with the last rank as root.
inline std::vector<Reduction> every_algorithm(int size) {
  std::vector<Reduction> calls;
  for (const Algorithm& algorithm : algorithms()) {
    if (!is_reduction(algorithm.collective)) continue;
    PlanProblem::Spec spec{.collective = algorithm.collective, .size = size, .count = 1};
    if (algorithm.collective == Collective::reduce_scatterv) spec.counts.assign(static_cast<std::size_t>(size), 1);
    const PlanProblem problem(spec);
    if (algorithm.refuse(problem.request(0))) continue;
    Reduction call;
    call.collective = algorithm.collective;
    call.algorithm = algorithm.name;
    call.order = algorithm.order;
    calls.push_back(call);
    if (algorithm.collective == Collective::reduce) {
      call.root = size - 1;
      calls.push_back(call);
    }
    if (algorithm.parameters.find("segment") != std::string_view::npos) {
      call.algorithm += ":segment=40";
      calls.push_back(call);
    }
  }
  return calls;
}

// Every reduction by the algorithm that is chosen for it.
inline std::vector<Reduction> every_default(int size, bool deterministic = false) {
  std::vector<Reduction> calls;
  for (const Collective collective : reductions()) {
    Reduction call;
    call.collective = collective;
    call.order = deterministic ? FoldOrder::rank_order : FoldOrder::any;
    call.root = size - 1;
    call.deterministic = deterministic;
    calls.push_back(call);
  }
  return calls;
}

}  // namespace col::test
