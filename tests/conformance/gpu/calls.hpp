// Calls of every collective on GPUs against the reference. Inputs differ by rank and element, so that a block in the
// wrong place cannot look right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/collectives.hpp"

namespace col::test {

// Element i of what a rank brings: another whole number everywhere.
inline std::int32_t number_of(int rank, std::size_t i) {
  return 100'000 * (rank + 1) + static_cast<std::int32_t>(i);
}
inline std::vector<std::int32_t> numbers(int rank, std::size_t count) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), number_of(rank, 0));
  return values;
}

template <class T>
void expect_equal(const GpuArray<T>& array, const std::vector<T>& want, const std::string& what,
                  CallPlace where = CallPlace::here()) {
  expect_equal(array.values(), want, what, where);
}

// Makes the call with both sides at `place`, and looks what is there afterwards.
template <class T>
void check_call(Group& group, int place, const tools::ReferenceCall& call, const Sides<T>& sides, Options options = {},
                const std::string& how = "") {
  const auto what = fmt::format("{} of {} {}, root {}{}", to_string(call.collective), call.count,
                                to_string(dtype_of<T>()), call.root, how);
  const GpuArray<T> in(place, sides.in), out(place, sides.before);
  options.root = call.root;
  run_by_name(group, {call.collective, in, out, sides.lengths.in_counts, sides.lengths.out_counts}, options);
  expect_equal(out, sides.want, what);
  expect_equal(in, sides.in, "the input of " + what);
}

// Small whole numbers: every sum and product of them is exact in every type.
template <class T>
Sides<T> sides_of_reduction(tools::ReferenceCall call, int rank, const Op& op) {
  call.ops = {op};
  return sides_of(call, rank, T(99.0F), [](int r, std::size_t i) {
    return static_cast<float>(1 + (static_cast<std::size_t>(r) + i * 3) % 2);
  });
}

template <class T>
void reductions(Group& group, int place, std::size_t count) {
  const int n = group.size(), rank = group.rank();
  const std::size_t whole = count * static_cast<std::size_t>(n);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::max, ReduceOp::min, ReduceOp::avg}) {
    const auto how = fmt::format(" by {}", to_string(op));
    const auto call_of = [n](Collective collective, std::size_t elements, int root = 0) {
      return tools::ReferenceCall{.collective = collective, .size = n, .root = root, .count = elements};
    };
    for (const auto& call : {call_of(Collective::allreduce, whole), call_of(Collective::reduce_scatter, count),
                             call_of(Collective::reduce, whole), call_of(Collective::reduce, whole, n - 1)})
      check_call(group, place, call, sides_of_reduction<T>(call, rank, op), {.op = op}, how);
    const auto sides =
        sides_of_reduction<T>({.collective = Collective::allreduce, .size = n, .count = whole}, rank, op);
    const GpuArray<T> in_place(place, sides.in);
    group.allreduce(in_place, {.op = op});
    expect_equal(in_place, sides.want, "allreduce in place" + how);
  }
  const Op doubled = Op::premul_sum(2);
  const auto sides =
      sides_of_reduction<T>({.collective = Collective::allreduce, .size = n, .count = count}, rank, doubled);
  const GpuArray<T> scaled(place, sides.in);
  group.allreduce(scaled, {.op = doubled});
  expect_equal(scaled, sides.want, fmt::format("a scaled sum of {}", to_string(dtype_of<T>())));
}

// What only moves data, in equal and uneven blocks.
inline void moves(Group& group, int place, std::size_t count) {
  const int n = group.size(), rank = group.rank();
  for (const Collective collective : all_collectives()) {
    if (row_of(collective).reduces()) continue;
    for (int root = 0; root < (row_of(collective).rooted ? n : 1); ++root) {
      const auto call = reference_call(collective, n, root, count);
      check_call(group, place, call, sides_of(call, rank, -7, number_of));
    }
  }
  const auto sides = sides_of({.collective = Collective::allgather, .size = n, .count = count}, rank, -7, number_of);
  auto with_own = sides.before;
  std::copy(sides.in.begin(), sides.in.end(), with_own.begin() + static_cast<std::ptrdiff_t>(sides.lengths.inner));
  const GpuArray<std::int32_t> in_place(place, with_own);
  group.allgather(in_place.part(sides.lengths.inner, count), in_place);
  expect_equal(in_place, sides.want, "allgather in place");
}

inline void ring_of_messages(Group& group, int place) {
  const int rank = group.rank();
  const int n = group.size();
  const GpuArray<std::int32_t> own(place, numbers(rank, 1000)), theirs(place, 1000);
  group.sendrecv(own, (rank + 1) % n, theirs, (rank + n - 1) % n);
  expect_equal(theirs, numbers((rank + n - 1) % n, 1000), "sendrecv around a ring");
  if (rank == 0) group.send(own, n - 1);
  if (rank == n - 1) {
    group.recv(theirs, 0);
    expect_equal(theirs, numbers(0, 1000), "send and recv");
  }
}

}  // namespace col::test
