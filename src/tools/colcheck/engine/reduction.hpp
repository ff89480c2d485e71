// Reductions for checks of their numerics: the call that all ranks make, and the part of the whole result that is the
// output of a rank. It is a header only, so that tests can use it without the tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/group.hpp>
#include <col/plan.hpp>

#include "colcheck/engine/element.hpp"

namespace col::colcheck {

// The elements of rank r are at [r]. Inputs have the same number on every rank, a multiple of the number of ranks for a
// reduce_scatter(v).
template <class T>
using PerRank = std::vector<std::vector<T>>;

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
  FoldOrder order = FoldOrder::any;       // the order that it promises
  std::vector<Op> ops = {ReduceOp::sum};  // by rank, or one for all
  int root = 0;
  bool in_place = false;  // allreduce, reduce and scans
  bool asynchronous = false;
  bool deterministic = false;
  bool compress = false;

  const Op& op(int rank) const { return tools::op_of(ops, rank); }
  col::Options options(int rank) const {
    col::Options options;
    options.op = op(rank);
    options.root = root;
    options.algorithm = algorithm;
    options.deterministic = deterministic;
    options.compress = compress;
    return options;
  }
  std::string text() const {
    return fmt::format("{} of {} by {}, root {}{}{}{}{}", to_string(collective), op(0).name(),
                       algorithm.empty() ? "what is chosen" : algorithm, root, in_place ? ", in place" : "",
                       asynchronous ? ", asynchronous" : "", deterministic ? ", deterministic" : "",
                       compress ? ", compressed" : "");
  }
};

// The output of a rank: `count` elements of the vector from `begin` on, each folded over the ranks [0, ranks).
struct Covered {
  std::size_t begin = 0, count = 0;
  int ranks = 0;
};

// Counts of a reduce_scatterv: nothing for rank 0, two blocks for the last rank, one block for each of the others.
inline std::vector<std::size_t> uneven_counts(int size, std::size_t total) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(size), total / static_cast<std::size_t>(size));
  if (size == 1) return counts;
  counts.back() += counts.front();
  counts.front() = 0;
  return counts;
}

// `total`: elements of every rank's input.
inline Covered covered(const Reduction& reduction, int rank, int size, std::size_t total) {
  const bool scatters = tools::brings_blocks(reduction.collective);
  const tools::ReferenceCall call{.collective = reduction.collective,
                                  .size = size,
                                  .root = reduction.root,
                                  .count = scatters ? total / static_cast<std::size_t>(size) : total,
                                  .counts = reduction.collective == Collective::reduce_scatterv
                                                ? uneven_counts(size, total)
                                                : std::vector<std::size_t>()};
  const auto segments = output_segments(call, rank);
  if (segments.empty()) return {};
  return {begin_of(call, segments[0]), segments[0].count, segments[0].last};
}

// Makes the call and waits for its end. Throws col::Error.
inline void make_call(Group& group, const Reduction& reduction, ConstTensorView in, TensorView out) {
  const col::Options options = reduction.options(group.rank());
  const auto counts = uneven_counts(group.size(), in.count);
  col::Call call{.collective = reduction.collective, .in = in, .out = out};
  if (row_of(reduction.collective).has_counts()) call.in_counts = counts;
  return reduction.asynchronous ? group.start(call, options).wait() : group.run(call, options);
}

// This rank's output; empty if it has none. Both buffers begin `offset` elements after their allocation. Throws
// col::Error, and std::runtime_error if the call has changed an input that is not the output.
template <class T>
std::vector<T> output_of(Group& group, const Reduction& reduction, const std::vector<T>& input,
                         std::size_t offset = 0) {
  const Covered mine = covered(reduction, group.rank(), group.size(), input.size());
  const bool whole = reduction.collective == Collective::exscan;  // rank 0 has an output, which is not written
  const std::size_t out_count = reduction.in_place || whole ? input.size() : mine.count;
  std::vector<T> in(offset + input.size()), out(offset + out_count);
  const auto start = static_cast<std::ptrdiff_t>(offset);
  std::copy(input.begin(), input.end(), (reduction.in_place ? out : in).begin() + start);
  const TensorView result(out.data() + offset, out_count, dtype_of<T>());
  make_call(group, reduction, reduction.in_place ? result : TensorView(in.data() + offset, input.size(), dtype_of<T>()),
            result);
  in.erase(in.begin(), in.begin() + start);
  if (!reduction.in_place && !same_bits(in, input)) throw std::runtime_error(reduction.text() + " changed its input");
  return {out.begin() + start, out.begin() + start + static_cast<std::ptrdiff_t>(mine.count)};
}

}  // namespace col::colcheck
