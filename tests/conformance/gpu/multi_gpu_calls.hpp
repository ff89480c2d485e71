// Every call over several GPUs of each rank, against the reference. Inputs differ by GPU and element, so that a block
// in the wrong place cannot look right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/multi_gpu.hpp"
#include "support/collectives.hpp"

namespace col::test {

using Ints = std::vector<std::int32_t>;
using IntArrays = MultiArray<std::int32_t>;

// Element i of flat rank `flat`; sums of eight fit easily.
inline std::int32_t flat_value(int flat, std::size_t i) {
  return 100'000 * (flat + 1) + static_cast<std::int32_t>(i);
}
// Of flat rank `from` for flat rank `to`.
inline Ints letter_of(std::size_t from, std::size_t to, std::size_t count) {
  Ints values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(flat_value(static_cast<int>(from), to * count + i));
  return values;
}

// The flat ranks of a group: all GPUs of rank 0, then those of rank 1 …
struct Flat {
  std::size_t each, first, all;

  Flat(const Group& group, const Gpus& gpus)
      : each(gpus.size()),
        first(gpus.size() * static_cast<std::size_t>(group.rank())),
        all(gpus.size() * static_cast<std::size_t>(group.size())) {}

  // What this rank's GPUs bring to a call of all flat ranks, and what they have before and after it.
  struct Parts {
    std::vector<Ints> in, before, want;
  };
  Parts parts(Collective collective, std::size_t count, std::size_t root = 0, const Op& op = {}) const {
    Parts parts;
    for (std::size_t i = 0; i < each; ++i) {
      const tools::ReferenceCall call{.collective = collective,
                                      .size = static_cast<int>(all),
                                      .root = static_cast<int>(root),
                                      .count = count,
                                      .ops = {op}};
      auto sides = sides_of(call, static_cast<int>(first + i), -1, flat_value);
      parts.in.push_back(std::move(sides.in));
      parts.before.push_back(std::move(sides.before));
      parts.want.push_back(std::move(sides.want));
    }
    return parts;
  }
};

inline void expect_all(const IntArrays& arrays, const std::vector<Ints>& want, const std::string& what) {
  const auto got = arrays.values();
  for (std::size_t i = 0; i < got.size(); ++i)
    expect(got[i] == want[i], fmt::format("{}: GPU {} of the rank has other values", what, i));
}

inline void check_reductions(Group& group, const Gpus& gpus, std::size_t count) {
  const Flat flat(group, gpus);
  const Flat::Parts sum = flat.parts(Collective::allreduce, count);

  const IntArrays sums(gpus, sum.in);
  group.allreduce_multigpu(sums.views());
  expect_all(sums, sum.want, "allreduce");
  const IntArrays largest(gpus, sum.in);
  group.allreduce_multigpu(largest.views(), {.op = ReduceOp::max});
  expect_all(largest, flat.parts(Collective::allreduce, count, 0, ReduceOp::max).want, "allreduce by max");
  const IntArrays doubled(gpus, sum.in);
  group.allreduce_multigpu(doubled.views(), {.op = Op::premul_sum(2)});
  expect_all(doubled, flat.parts(Collective::allreduce, count, 0, Op::premul_sum(2)).want, "allreduce by a scaled sum");

  for (int root = 0; root < group.size(); ++root) {
    for (std::size_t tensor = 0; tensor < flat.each; ++tensor) {
      const IntArrays reduced(gpus, sum.in);
      group.reduce_multigpu(reduced.views(), {.root = root}, static_cast<int>(tensor));
      std::vector<Ints> want = sum.in;
      if (group.rank() == root) want[tensor] = sum.want[tensor];
      expect_all(reduced, want, "reduce");
      const IntArrays spread(gpus, sum.in);
      group.broadcast_multigpu(spread.views(), {.root = root}, static_cast<int>(tensor));
      const std::size_t at = static_cast<std::size_t>(root) * flat.each + tensor;
      expect_all(spread, flat.parts(Collective::broadcast, count, at).want, "broadcast");
    }
  }
}

inline void check_gathering(Group& group, const Gpus& gpus, std::size_t count) {
  const Flat flat(group, gpus);
  const Flat::Parts parts = flat.parts(Collective::allgather, count);
  const IntArrays inputs(gpus, parts.in), outputs(gpus, parts.before);
  group.allgather_multigpu(outputs.views(), inputs.inputs());
  expect_all(outputs, parts.want, "allgather");
  expect_all(inputs, parts.in, "the inputs of allgather");

  std::vector<Ints> with_own = parts.before;
  for (std::size_t i = 0; i < flat.each; ++i)
    std::copy(parts.in[i].begin(), parts.in[i].end(),
              with_own[i].begin() + static_cast<std::ptrdiff_t>((flat.first + i) * count));
  const IntArrays in_place(gpus, with_own);
  std::vector<ConstTensorView> blocks;
  for (std::size_t i = 0; i < flat.each; ++i) blocks.push_back(in_place.view(i).slice((flat.first + i) * count, count));
  group.allgather_multigpu(in_place.views(), blocks);
  expect_all(in_place, parts.want, "allgather in place");

  // Into lists whose tensors lie in the other order, each with an element between them that nobody touches.
  const std::size_t stride = count + 1;
  const IntArrays room(gpus, stride * flat.all, -1);
  std::vector<std::vector<TensorView>> lists(flat.each);
  Ints apart;
  for (std::size_t f = flat.all; f-- > 0;) {
    const Ints part = letter_of(f, 0, count);
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
  const Flat::Parts parts = flat.parts(Collective::reduce_scatter, count);
  const IntArrays inputs(gpus, parts.in), outputs(gpus, parts.before);
  group.reducescatter_multigpu(outputs.views(), inputs.inputs());
  expect_all(outputs, parts.want, "reducescatter");
  expect_all(inputs, parts.in, "the inputs of reducescatter");

  const IntArrays in_place(gpus, parts.in);
  std::vector<TensorView> blocks;
  for (std::size_t i = 0; i < flat.each; ++i) blocks.push_back(in_place.view(i).slice((flat.first + i) * count, count));
  group.reducescatter_multigpu(blocks, in_place.inputs());
  for (std::size_t i = 0; i < flat.each; ++i) {
    const Ints got = in_place.values(i);
    const auto begin = got.begin() + static_cast<std::ptrdiff_t>((flat.first + i) * count);
    expect(Ints(begin, begin + static_cast<std::ptrdiff_t>(count)) == parts.want[i], "reducescatter in place");
  }

  // From lists whose tensors lie in the other order.
  std::vector<Ints> reversed(flat.each);
  std::vector<std::vector<ConstTensorView>> lists(flat.each);
  for (std::size_t i = 0; i < flat.each; ++i) {
    for (std::size_t b = flat.all; b-- > 0;) {
      const Ints block = letter_of(flat.first + i, b, count);
      reversed[i].insert(reversed[i].end(), block.begin(), block.end());
    }
  }
  const IntArrays turned(gpus, reversed), from_lists(gpus, parts.before);
  for (std::size_t i = 0; i < flat.each; ++i) {
    for (std::size_t b = 0; b < flat.all; ++b)
      lists[i].emplace_back(turned.view(i).slice((flat.all - 1 - b) * count, count));
  }
  group.reducescatter_multigpu(from_lists.views(), lists);
  expect_all(from_lists, parts.want, "reducescatter from lists");
}

// Every GPU of every rank sends to every GPU of every other, one after another.
inline void check_messages(Group& group, const Gpus& gpus, std::size_t count) {
  const Flat flat(group, gpus);
  const auto gpu_of = [&](std::size_t f) { return static_cast<int>(f); };  // as multi_body() gives them
  for (std::size_t from = 0; from < flat.all; ++from) {
    for (std::size_t to = 0; to < flat.all; ++to) {
      const int source = static_cast<int>(from / flat.each), destination = static_cast<int>(to / flat.each);
      if (source == destination) continue;
      const Ints letter = letter_of(from, to, count);
      if (group.rank() == source) {
        const IntArrays sent(gpus, std::vector<Ints>(flat.each, letter));
        group.send_multigpu(sent.view(from % flat.each), destination, gpu_of(to));
      }
      if (group.rank() == destination) {
        const IntArrays received(gpus, count, -1);
        group.recv_multigpu(received.view(to % flat.each), source, gpu_of(from));
        std::vector<Ints> want(flat.each, Ints(count, -1));
        want[to % flat.each] = letter;
        expect_all(received, want, "a message");
      }
    }
  }
}

}  // namespace col::test
