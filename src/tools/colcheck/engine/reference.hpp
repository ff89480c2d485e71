// The simple reference: the input of a rank in a case, and its expected output. The output is computed from the inputs
// of all ranks, which are functions of (seed, rank, block, index).
//
// The values are such that the order of a commutative reduction does not show. They are small whole numbers (small
// powers of two for products), whose partial sums are exact in float32. Over NCCL, which rounds narrow floats at every
// step, they are exact in these types too. Integers take the whole range, and wrap.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <vector>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"
#include "colcheck/engine/element.hpp"

namespace col::colcheck {

struct Part {
  Bytes input = {};
  Bytes output = {};                                         // if it is not written, only its length counts
  bool reads = true, writes = true;                          // whether the call reads the input, and writes the output
  std::vector<std::size_t> in_counts = {}, out_counts = {};  // v-forms; empty if the call ignores them
  std::size_t own_offset = 0;                                // in bytes: this rank's block in the longer of the two
};

// Appends `count` elements: element(i).
template <class Element>
void append_block(Bytes& bytes, std::size_t count, Element element) {
  const std::size_t begin = bytes.size(), size = sizeof element(0);
  bytes.resize(begin + count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = element(i);
    std::memcpy(bytes.data() + begin + i * size, &value, size);
  }
}

// The part of a call of elements of type T: value(rank, block, i) is element i of a block that a rank brings.
template <class T>
Part part_with(const tools::ReferenceCall& call, int rank,
               const std::function<T(int rank, int block, std::size_t i)>& value) {
  const tools::Outline outline = outline_of(call, rank);
  Part part{.reads = outline.reads, .writes = outline.writes, .own_offset = outline.own_offset * sizeof(T)};
  if (tools::brings_blocks(call.collective) && part.reads) part.in_counts = outline.given;
  if (tools::gets_blocks(call.collective) && part.writes) part.out_counts = outline.gotten_counts();
  for (std::size_t block = 0; block < outline.given.size(); ++block) {
    append_block(part.input, outline.given[block],
                 [&](std::size_t i) { return value(outline.giver, static_cast<int>(block), i); });
  }
  for (const tools::Segment& from : outline.gotten)
    append_block(part.output, from.count,
                 [&](std::size_t i) { return tools::element_at<T>(call, from, i, std::cref(value)); });
  return part;
}

Part part_of(const Case& c, int rank, int size);

// The operator that `rank` passes.
Op op_of(const Case& c, int rank);

}  // namespace col::colcheck
