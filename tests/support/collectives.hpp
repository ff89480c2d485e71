// Collectives of any kind in one way: by the methods that have their names, with inputs that a test makes up and the
// outputs that the reference of tools/common gives for them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <col/group.hpp>

#include "common/arithmetic.hpp"
#include "support/ranks.hpp"

namespace col::test {

inline const std::vector<Collective>& all_collectives() {
  static const std::vector<Collective> kAll = [] {
    std::vector<Collective> all;
    for (int i = 0; i < kCollectiveCount; ++i) {
      if (!kCollectives[static_cast<std::size_t>(i)].is_message) all.push_back(static_cast<Collective>(i));
    }
    return all;
  }();
  return kAll;
}

// Makes the call by the method of its name, or by its asynchronous one. What is returned has ended unless the call is
// asynchronous.
inline Work call_by_name(Group& group, const Call& call, const Options& options, bool is_async) {
  using enum Collective;
  const auto either = [&](auto&& start, auto&& run) {
    if (is_async) return start();
    run();
    return Work();
  };
  // Not a structured binding, which lambdas of clang before 16 cannot capture.
  const ConstTensorView in = call.in;
  const TensorView out = call.out;
  const std::span<const std::size_t> in_counts = call.in_counts, out_counts = call.out_counts;
  switch (call.collective) {
    case allreduce:
      return either([&] { return group.iallreduce(in, out, options); }, [&] { group.allreduce(in, out, options); });
    case reduce:
      return either([&] { return group.ireduce(in, out, options); }, [&] { group.reduce(in, out, options); });
    case broadcast:
      return either([&] { return group.ibroadcast(out, options); }, [&] { group.broadcast(out, options); });
    case allgather:
      return either([&] { return group.iallgather(in, out, options); }, [&] { group.allgather(in, out, options); });
    case allgatherv:
      return either([&] { return group.iallgatherv(in, out, out_counts, options); },
                    [&] { group.allgatherv(in, out, out_counts, options); });
    case reduce_scatter:
      return either([&] { return group.ireduce_scatter(in, out, options); },
                    [&] { group.reduce_scatter(in, out, options); });
    case reduce_scatterv:
      return either([&] { return group.ireduce_scatterv(in, out, in_counts, options); },
                    [&] { group.reduce_scatterv(in, out, in_counts, options); });
    case gather:
      return either([&] { return group.igather(in, out, options); }, [&] { group.gather(in, out, options); });
    case gatherv:
      return either([&] { return group.igatherv(in, out, out_counts, options); },
                    [&] { group.gatherv(in, out, out_counts, options); });
    case scatter:
      return either([&] { return group.iscatter(in, out, options); }, [&] { group.scatter(in, out, options); });
    case scatterv:
      return either([&] { return group.iscatterv(in, in_counts, out, options); },
                    [&] { group.scatterv(in, in_counts, out, options); });
    case alltoall:
      return either([&] { return group.ialltoall(in, out, options); }, [&] { group.alltoall(in, out, options); });
    case alltoallv:
      return either([&] { return group.ialltoallv(in, in_counts, out, out_counts, options); },
                    [&] { group.alltoallv(in, in_counts, out, out_counts, options); });
    case scan:
      return either([&] { return group.iscan(in, out, options); }, [&] { group.scan(in, out, options); });
    case exscan:
      return either([&] { return group.iexscan(in, out, options); }, [&] { group.exscan(in, out, options); });
    case barrier:
      return either([&] { return group.ibarrier(options); }, [&] { group.barrier(options); });
    default:  // a new collective, until its methods are here
      return either([&] { return group.start(call, options); }, [&] { group.run(call, options); });
  }
}

inline void run_by_name(Group& group, const Call& call, const Options& options) {
  call_by_name(group, call, options, false).wait();
}

// A reduction of the user's: the sum of elements of type T, whatever they are called.
template <class T>
void add_as(const void* left, const void* right, void* result, std::size_t count, DType) {
  const auto *a = static_cast<const T*>(left), *b = static_cast<const T*>(right);
  for (std::size_t i = 0; i < count; ++i) static_cast<T*>(result)[i] = static_cast<T>(a[i] + b[i]);
}

// The elements of one rank's two sides, as if it were the root: other ranks may pass less where the call ignores it.
struct Lengths {
  std::size_t in = 0, out = 0;
  std::size_t inner = 0;  // in place, where the shorter side begins in the longer one
  std::vector<std::size_t> in_counts = {}, out_counts = {};
};

inline Lengths lengths_of(const tools::ReferenceCall& call, int rank) {
  const tools::Outline outline = outline_of(call, rank);
  Lengths lengths{
      .in = tools::elements_of(outline.given), .out = tools::elements_of(outline.gotten), .inner = outline.own_offset};
  if (call.counts.empty()) return lengths;
  if (tools::brings_blocks(call.collective)) lengths.in_counts = outline.given;
  if (tools::gets_blocks(call.collective)) lengths.out_counts = outline.gotten_counts();
  return lengths;
}

// Whether the call writes to the output of that rank.
inline bool gets_output(const tools::ReferenceCall& call, int rank) {
  return !output_segments(call, rank).empty();
}

// One rank's part of one call: its input, and its output before and after.
template <class T>
struct Sides {
  Lengths lengths;
  std::vector<T> in, before, want;
};

// `value(rank, i)` is element i of what a rank brings. `other` is in every place that the call ignores, or is to write.
template <class T, class Value>
Sides<T> sides_of(const tools::ReferenceCall& call, int rank, T other, Value value) {
  Sides<T> sides{.lengths = lengths_of(call, rank), .in = {}, .before = {}, .want = {}};
  sides.in.assign(sides.lengths.in, other);
  sides.before.assign(sides.lengths.out, other);
  auto& own = call.collective == Collective::broadcast ? sides.before : sides.in;
  const std::size_t brought = tools::elements_of(input_blocks(call, rank));
  for (std::size_t i = 0; i < brought; ++i) own[i] = static_cast<T>(value(rank, i));
  sides.want = gets_output(call, rank) ? tools::right_output<T>(call, rank, value) : sides.before;
  return sides;
}

template <class T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& want, const std::string& what,
                  CallPlace where = CallPlace::here()) {
  expect(got.size() == want.size(), what, where);
  const auto number = [](T value) {
    if constexpr (std::is_arithmetic_v<T>)
      return static_cast<double>(value);
    else
      return static_cast<double>(static_cast<float>(value));
  };
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (number(got[i]) != number(want[i]))
      expect(false, fmt::format("{}: element {} is {}, not {}", what, i, number(got[i]), number(want[i])), where);
  }
}

// A collective with equal blocks; or, where it has counts, with blocks that differ, some of them empty.
inline tools::ReferenceCall reference_call(Collective collective, int size, int root, std::size_t count) {
  tools::ReferenceCall call{.collective = collective, .size = size, .root = root, .count = count};
  if (collective == Collective::alltoallv) {
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to)
        call.counts.push_back(from == to && from % 2 == 0 ? 0 : count + static_cast<std::size_t>(from + 2 * to));
    }
  } else if (row_of(collective).has_counts()) {
    for (int r = 0; r < size; ++r) call.counts.push_back(r == 1 ? 0 : count + static_cast<std::size_t>(r));
  }
  return call;
}

}  // namespace col::test
