// Every call over several GPUs of each rank, against an obvious reference. Inputs differ by GPU and element, so that a
// block in the wrong place cannot look right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/multi_gpu.hpp"

namespace col::test {

using Ints = std::vector<std::int32_t>;
using IntArrays = MultiArray<std::int32_t>;

// Of flat rank `flat`; sums of eight fit easily, and products of the small ones.
inline Ints numbers_of(std::size_t flat, std::size_t count, int salt = 0) {
  Ints values(count);
  std::iota(values.begin(), values.end(), static_cast<std::int32_t>(1000 * (flat + 1)) + 100'000 * salt);
  return values;
}

// What the flat ranks of one group know of themselves.
struct Flat {
  std::size_t each, first, all;

  Flat(const Group& group, const Gpus& gpus)
      : each(gpus.size()),
        first(gpus.size() * static_cast<std::size_t>(group.rank())),
        all(gpus.size() * static_cast<std::size_t>(group.size())) {}

  // What `values(flat)` says, for this rank's GPUs.
  template <class Make>
  std::vector<Ints> own(Make make) const {
    std::vector<Ints> values;
    for (std::size_t i = 0; i < each; ++i) values.push_back(make(first + i));
    return values;
  }
  // For all flat ranks, one after another.
  template <class Make>
  Ints joined(Make make) const {
    Ints values;
    for (std::size_t flat = 0; flat < all; ++flat) {
      const Ints part = make(flat);
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }
  Ints sum(std::size_t count, int salt = 0) const {
    Ints total(count, 0);
    for (std::size_t flat = 0; flat < all; ++flat) {
      const Ints part = numbers_of(flat, count, salt);
      for (std::size_t i = 0; i < count; ++i) total[i] += part[i];
    }
    return total;
  }
};

inline void expect_all(const IntArrays& arrays, const std::vector<Ints>& want, const std::string& what) {
  const auto got = arrays.values();
  for (std::size_t i = 0; i < got.size(); ++i)
    expect(got[i] == want[i], fmt::format("{}: GPU {} of the rank has other values", what, i));
}

inline void check_reductions(Group& group, const Gpus& gpus, std::size_t count) {
  const Flat flat(group, gpus);
  const auto own = flat.own([&](std::size_t f) { return numbers_of(f, count); });
  const auto everywhere = [&](const Ints& values) { return std::vector<Ints>(flat.each, values); };

  const IntArrays sums(gpus, own);
  group.allreduce_multigpu(sums.views());
  expect_all(sums, everywhere(flat.sum(count)), "allreduce");
  const IntArrays largest(gpus, own);
  group.allreduce_multigpu(largest.views(), {.op = ReduceOp::max});
  expect_all(largest, everywhere(numbers_of(flat.all - 1, count)), "allreduce by max");
  const IntArrays doubled(gpus, own);
  group.allreduce_multigpu(doubled.views(), {.op = Op::premul_sum(2)});
  Ints want = flat.sum(count);
  for (auto& value : want) value *= 2;
  expect_all(doubled, everywhere(want), "allreduce by a scaled sum");

  for (int root = 0; root < group.size(); ++root) {
    for (std::size_t tensor = 0; tensor < flat.each; ++tensor) {
      const std::size_t at = static_cast<std::size_t>(root) * flat.each + tensor;
      const IntArrays reduced(gpus, own);
      group.reduce_multigpu(reduced.views(), {.root = root}, static_cast<int>(tensor));
      expect_all(reduced, flat.own([&](std::size_t f) { return f == at ? flat.sum(count) : numbers_of(f, count); }),
                 "reduce");
      const IntArrays spread(gpus, own);
      group.broadcast_multigpu(spread.views(), {.root = root}, static_cast<int>(tensor));
      expect_all(spread, everywhere(numbers_of(at, count)), "broadcast");
    }
  }
}

inline void check_gathering(Group& group, const Gpus& gpus, std::size_t count) {
  const Flat flat(group, gpus);
  const auto own = flat.own([&](std::size_t f) { return numbers_of(f, count); });
  const Ints all = flat.joined([&](std::size_t f) { return numbers_of(f, count); });
  const std::vector<Ints> everywhere(flat.each, all);

  const IntArrays inputs(gpus, own), outputs(gpus, count * flat.all, -1);
  group.allgather_multigpu(outputs.views(), inputs.inputs());
  expect_all(outputs, everywhere, "allgather");
  expect_all(inputs, own, "the inputs of allgather");

  const IntArrays in_place(gpus, flat.own([&](std::size_t f) {
    Ints values(all.size(), -1);
    const Ints mine = numbers_of(f, count);
    std::copy(mine.begin(), mine.end(), values.begin() + static_cast<std::ptrdiff_t>(f * count));
    return values;
  }));
  std::vector<ConstTensorView> blocks;
  for (std::size_t i = 0; i < flat.each; ++i) blocks.push_back(in_place.view(i).slice((flat.first + i) * count, count));
  group.allgather_multigpu(in_place.views(), blocks);
  expect_all(in_place, everywhere, "allgather in place");

  // Into lists whose tensors lie in the other order, each with an element between them that nobody touches.
  const std::size_t stride = count + 1;
  const IntArrays room(gpus, stride * flat.all, -1);
  std::vector<std::vector<TensorView>> lists(flat.each);
  Ints apart;
  for (std::size_t f = flat.all; f-- > 0;) {
    const Ints part = numbers_of(f, count);
    apart.insert(apart.end(), part.begin(), part.end());
    apart.push_back(-1);
  }
  for (std::size_t i = 0; i < flat.each; ++i) {
    for (std::size_t f = 0; f < flat.all; ++f)
      lists[i].push_back(room.view(i).slice((flat.all - 1 - f) * stride, count));
  }
  group.allgather_multigpu(lists, inputs.inputs());
  expect_all(room, std::vector<Ints>(flat.each, apart), "allgather into lists");
}

inline void check_scattering(Group& group, const Gpus& gpus, std::size_t count) {
  const Flat flat(group, gpus);
  // Block b of flat rank f is numbers_of(f) with salt b, so that block b of the reduction is their sum.
  const auto input_of = [&](std::size_t f) {
    return flat.joined([&](std::size_t block) { return numbers_of(f, count, static_cast<int>(block)); });
  };
  const auto own = flat.own(input_of);
  const auto want = flat.own([&](std::size_t f) { return flat.sum(count, static_cast<int>(f)); });

  const IntArrays inputs(gpus, own), outputs(gpus, count, -1);
  group.reducescatter_multigpu(outputs.views(), inputs.inputs());
  expect_all(outputs, want, "reducescatter");
  expect_all(inputs, own, "the inputs of reducescatter");

  const IntArrays in_place(gpus, own);
  std::vector<TensorView> blocks;
  for (std::size_t i = 0; i < flat.each; ++i) blocks.push_back(in_place.view(i).slice((flat.first + i) * count, count));
  group.reducescatter_multigpu(blocks, in_place.inputs());
  for (std::size_t i = 0; i < flat.each; ++i) {
    const Ints got = in_place.values(i);
    const auto begin = got.begin() + static_cast<std::ptrdiff_t>((flat.first + i) * count);
    expect(Ints(begin, begin + static_cast<std::ptrdiff_t>(count)) == want[i], "reducescatter in place");
  }

  // From lists whose tensors lie in the other order.
  const IntArrays reversed(gpus, flat.own([&](std::size_t f) {
    return flat.joined([&](std::size_t block) { return numbers_of(f, count, static_cast<int>(flat.all - 1 - block)); });
  }));
  std::vector<std::vector<ConstTensorView>> lists(flat.each);
  for (std::size_t i = 0; i < flat.each; ++i) {
    for (std::size_t b = 0; b < flat.all; ++b)
      lists[i].emplace_back(reversed.view(i).slice((flat.all - 1 - b) * count, count));
  }
  const IntArrays from_lists(gpus, count, -1);
  group.reducescatter_multigpu(from_lists.views(), lists);
  expect_all(from_lists, want, "reducescatter from lists");
}

// Every GPU of every rank sends to every GPU of every other, one after another.
inline void check_messages(Group& group, const Gpus& gpus, std::size_t count) {
  const Flat flat(group, gpus);
  const auto gpu_of = [&](std::size_t f) { return static_cast<int>(f); };  // as multi_body() gives them
  for (std::size_t from = 0; from < flat.all; ++from) {
    for (std::size_t to = 0; to < flat.all; ++to) {
      const int source = static_cast<int>(from / flat.each), destination = static_cast<int>(to / flat.each);
      if (source == destination) continue;
      if (group.rank() == source) {
        const IntArrays data(gpus, count);
        const IntArrays sent(gpus, std::vector<Ints>(flat.each, numbers_of(from, count, static_cast<int>(to))));
        group.send_multigpu(sent.view(from % flat.each), destination, gpu_of(to));
      }
      if (group.rank() == destination) {
        const IntArrays received(gpus, count, -1);
        group.recv_multigpu(received.view(to % flat.each), source, gpu_of(from));
        expect_all(received, flat.own([&](std::size_t f) {
          return f == to ? numbers_of(from, count, static_cast<int>(to)) : Ints(count, -1);
        }),
                   "a message");
      }
    }
  }
}

}  // namespace col::test
