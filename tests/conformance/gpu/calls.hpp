// Calls of every collective against an obvious reference. Inputs differ by rank and element, so that a block in the
// wrong place cannot look right.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/gpu_ranks.hpp"

namespace col::test {

// Small whole numbers: every sum and product of them is exact in every type.
template <class T>
std::vector<T> block(int rank, std::size_t count, int salt = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(
        static_cast<float>(1 + (static_cast<std::size_t>(rank) + i * 3 + static_cast<std::size_t>(salt)) % 2));
  return values;
}

// Of whole numbers up to 100, one after another from a start of its own for each rank.
inline std::vector<std::int32_t> numbers(int rank, std::size_t count, int salt = 0) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), 1000 * (rank + 1) + 100'000 * salt);
  return values;
}

template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return static_cast<double>(static_cast<float>(value));
  else
    return static_cast<double>(value);
}

template <class T>
void expect_equal(const GpuArray<T>& array, const std::vector<T>& want, const std::string& what) {
  const std::vector<T> got = array.values();
  expect(got.size() == want.size(), what);
  for (std::size_t i = 0; i < got.size(); ++i)
    expect(number(got[i]) == number(want[i]),
           fmt::format("{}: element {} is {}, not {}", what, i, number(got[i]), number(want[i])));
}

template <class T>
std::vector<T> reduced(int n, std::size_t count, ReduceOp op) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    double value = number(block<T>(0, count)[i]);
    for (int r = 1; r < n; ++r) {
      const double next = number(block<T>(r, count)[i]);
      if (op == ReduceOp::sum || op == ReduceOp::avg) value += next;
      if (op == ReduceOp::product) value *= next;
      if (op == ReduceOp::max) value = std::max(value, next);
      if (op == ReduceOp::min) value = std::min(value, next);
    }
    if (op == ReduceOp::avg) value = std::is_integral_v<T> ? std::trunc(value / n) : value / n;
    result[i] = static_cast<T>(static_cast<float>(value));
  }
  return result;
}

template <class T>
void reductions(Group& group, int place, std::size_t count) {
  const int rank = group.rank();
  const int n = group.size();
  const auto blocks = static_cast<std::size_t>(n);
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::max, ReduceOp::min, ReduceOp::avg}) {
    const auto what = fmt::format("{} of {} {}", to_string(op), count, to_string(dtype_of<T>()));
    const auto want = reduced<T>(n, count * blocks, op);
    const auto values = block<T>(rank, count * blocks);
    const GpuArray<T> in(place, values), out(place, count * blocks), in_place(place, values);
    group.allreduce(in, out, {.op = op});
    expect_equal(out, want, "allreduce " + what);
    expect_equal(in, values, "the input of allreduce " + what);
    group.allreduce(in_place, {.op = op});
    expect_equal(in_place, want, "allreduce in place, " + what);
    const GpuArray<T> own(place, count);
    group.reduce_scatter(in, own, {.op = op});
    expect_equal(own,
                 {want.begin() + rank * static_cast<std::ptrdiff_t>(count),
                  want.begin() + (rank + 1) * static_cast<std::ptrdiff_t>(count)},
                 "reduce_scatter " + what);
    for (const int root : {0, n - 1}) {
      const GpuArray<T> result(place, count * blocks, static_cast<T>(99.0f));
      group.reduce(in, result, {.op = op, .root = root});
      expect_equal(result, rank == root ? want : std::vector<T>(count * blocks, static_cast<T>(99.0f)),
                   "reduce " + what);
    }
  }
  const auto doubled = reduced<T>(n, count, ReduceOp::sum);
  const GpuArray<T> scaled(place, block<T>(rank, count));
  group.allreduce(scaled, {.op = Op::premul_sum(2)});
  std::vector<T> want(count);
  for (std::size_t i = 0; i < count; ++i) want[i] = static_cast<T>(static_cast<float>(2 * number(doubled[i])));
  expect_equal(scaled, want, fmt::format("a scaled sum of {}", to_string(dtype_of<T>())));
}

inline std::vector<std::int32_t> concatenated(const std::vector<std::vector<std::int32_t>>& parts) {
  std::vector<std::int32_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline void moves(Group& group, int place, std::size_t count) {
  const int rank = group.rank();
  const int n = group.size();
  const auto blocks = static_cast<std::size_t>(n);
  std::vector<std::vector<std::int32_t>> of_all;
  for (int r = 0; r < n; ++r) of_all.push_back(numbers(r, count));
  const auto all = concatenated(of_all);
  const GpuArray<std::int32_t> own(place, numbers(rank, count));

  const GpuArray<std::int32_t> gathered(place, count * blocks);
  group.allgather(own, gathered);
  expect_equal(gathered, all, "allgather");
  auto with_own = std::vector<std::int32_t>(count * blocks, -1);
  std::copy(of_all[static_cast<std::size_t>(rank)].begin(), of_all[static_cast<std::size_t>(rank)].end(),
            with_own.begin() + rank * static_cast<std::ptrdiff_t>(count));
  const GpuArray<std::int32_t> in_place(place, with_own);
  group.allgather(in_place.part(static_cast<std::size_t>(rank) * count, count), in_place);
  expect_equal(in_place, all, "allgather in place");

  for (int root = 0; root < n; ++root) {
    const bool is_root = root == rank;
    const GpuArray<std::int32_t> data(place, is_root ? numbers(root, count, 5) : std::vector<std::int32_t>(count));
    group.broadcast(data, {.root = root});
    expect_equal(data, numbers(root, count, 5), "broadcast");
    const GpuArray<std::int32_t> at_root(place, count * blocks, -7);
    group.gather(own, at_root, {.root = root});
    expect_equal(at_root, is_root ? all : std::vector<std::int32_t>(count * blocks, -7), "gather");
    const GpuArray<std::int32_t> source(place, is_root ? all : std::vector<std::int32_t>(count * blocks, -3));
    const GpuArray<std::int32_t> part(place, count);
    group.scatter(source, part, {.root = root});
    expect_equal(part, numbers(rank, count), "scatter");
  }

  // Block s of rank r says who it is from and for.
  std::vector<std::vector<std::int32_t>> sent, received;
  for (int r = 0; r < n; ++r) {
    sent.push_back(numbers(rank, count, r));
    received.push_back(numbers(r, count, rank));
  }
  const GpuArray<std::int32_t> to_all(place, concatenated(sent)), from_all(place, count * blocks);
  group.alltoall(to_all, from_all);
  expect_equal(from_all, concatenated(received), "alltoall");
  expect_equal(to_all, concatenated(sent), "the input of alltoall");
  group.barrier();
}

// Rank r has r + 1 elements, and sends r + s to rank s.
inline void uneven_moves(Group& group, int place) {
  const int rank = group.rank();
  const int n = group.size();
  std::vector<std::size_t> counts, sent_counts, received_counts;
  std::vector<std::vector<std::int32_t>> of_all, sent, received;
  for (int r = 0; r < n; ++r) {
    counts.push_back(static_cast<std::size_t>(r + 1));
    of_all.push_back(numbers(r, counts.back()));
    sent_counts.push_back(static_cast<std::size_t>(rank + r));
    received_counts.push_back(static_cast<std::size_t>(rank + r));
    sent.push_back(numbers(rank, sent_counts.back(), r));
    received.push_back(numbers(r, received_counts.back(), rank));
  }
  const auto all = concatenated(of_all);
  const GpuArray<std::int32_t> own(place, numbers(rank, counts[static_cast<std::size_t>(rank)]));
  const GpuArray<std::int32_t> gathered(place, all.size());
  group.allgatherv(own, gathered, counts);
  expect_equal(gathered, all, "allgatherv");
  for (int root = 0; root < n; ++root) {
    const GpuArray<std::int32_t> at_root(place, all.size(), -7);
    group.gatherv(own, at_root, counts, {.root = root});
    expect_equal(at_root, root == rank ? all : std::vector<std::int32_t>(all.size(), -7), "gatherv");
    const GpuArray<std::int32_t> source(place, all), part(place, counts[static_cast<std::size_t>(rank)]);
    group.scatterv(source, counts, part, {.root = root});
    expect_equal(part, numbers(rank, counts[static_cast<std::size_t>(rank)]), "scatterv");
  }
  const auto from_all = concatenated(received);
  const GpuArray<std::int32_t> to(place, concatenated(sent)), from(place, from_all.size());
  group.alltoallv(to, sent_counts, from, received_counts);
  expect_equal(from, from_all, "alltoallv");
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
