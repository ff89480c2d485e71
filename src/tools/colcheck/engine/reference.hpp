// The simple reference: the input of a rank in a case, and its expected output. The output is computed from the inputs
// of all ranks, which are functions of (seed, rank, block, index).
//
// The values are such that the order of a commutative reduction does not show. They are small whole numbers (small
// powers of two for products), whose partial sums are exact in float32. Over NCCL, which rounds narrow floats at every
// step, they are exact in these types too. Integers take the whole range, and wrap.
#pragma once

#include <cstddef>
#include <vector>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

struct Part {
  Bytes input = {};
  Bytes output = {};                                         // if it is not written, only its length counts
  bool reads = true, writes = true;                          // whether the call reads the input, and writes the output
  std::vector<std::size_t> in_counts = {}, out_counts = {};  // v-forms; empty if the call ignores them
  std::size_t own_offset = 0;                                // in bytes: this rank's block in the longer of the two
};

// Gives what a rank brings and gets. The blocks have count(c, from, to) elements.
Part part_of(const Case& c, int rank, int size, std::size_t (*count)(const Case& c, int from, int to) = &block_count);

// The operator that `rank` passes.
Op op_of(const Case& c, int rank);

}  // namespace col::colcheck
