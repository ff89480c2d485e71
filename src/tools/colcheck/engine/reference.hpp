// The obvious reference: what a rank brings to a case, and what it must have afterwards, computed from the inputs of
// all ranks, which are a function of (seed, rank, block, index).
//
// Values are such that the order of a commutative reduction cannot be seen: small whole numbers (and small powers of
// two, for products) whose partial sums are exact in float32, and over NCCL, which rounds 16-bit floats at every step,
// in those. Integers take the whole range, and wrap.
#pragma once

#include <cstddef>
#include <vector>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

struct Part {
  Bytes input;
  Bytes output;                                    // where it is not written, its length is what counts
  bool reads = true, writes = true;                // whether the call looks at the input, and writes the output
  std::vector<std::size_t> in_counts, out_counts;  // v-forms; empty where the call does not look at them
  std::size_t own_offset = 0;                      // in bytes: this rank's block in the longer of the two
};

Part part_of(const Case& c, int rank, int size);

// The operator that `rank` passes.
Op op_of(const Case& c, int rank);

}  // namespace col::colcheck
