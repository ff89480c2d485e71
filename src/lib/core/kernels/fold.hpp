// Reduces ("folds") the inputs of many ranks into one result, in one pass.
//
// A collective inside a node reduces the inputs of all ranks in this way: it reads each input once, writes only the
// result, and keeps partial results in registers.
#pragma once

#include <cstddef>
#include <span>

#include <col/types.hpp>

namespace col::core {

struct KernelTable;

// Whether the result will be read soon and should stay in the caches, or should go past them to memory.
enum class Stores { cached, streaming };

struct FoldTarget {
  std::byte* data = nullptr;  // null: this target is not wanted
  Stores stores = Stores::cached;
};

// For each i below `count`, both targets get ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) …, in the order of
// `inputs`. There is at least one input. Narrow floats are accumulated in float32 over all inputs and rounded once. avg
// divides as core::finish() does, premul_sum acts as sum, and a user's function is applied pair by pair. The bits equal
// those of reduce_mixed() and finish() applied one after the other, on every processor, for every alignment and every
// split of the range. The only exception is the payload of a NaN that comes from several inputs.
//
// `wide`: the inputs have accumulation_type(dtype), not dtype. Not allowed with a user's function on narrow floats. The
// targets always have dtype.
//
// `ranks`: the divisor of avg. 0: this is not the last part of the fold, so there is no division, and avg acts as sum.
//
// No pointer needs to be aligned. A target may be exactly one of the inputs if `wide` changes nothing. Inputs may be
// the same memory; the two targets may not. No other overlap is allowed. Nothing is allocated. A count of zero touches
// nothing, and neither does a fold without targets.
//
// Streaming works only on whole aligned vectors, in a target in which some element begins at an aligned address. If
// both targets stream, the second one streams only where the first one does. Streaming stores end with a store fence,
// so they are ordered before later stores of this thread.
//
// Requires: is_reducible(op, dtype); otherwise throws internal. Throws what a user's function throws, and
// invalid_argument if COL_ISA is wrong (core/kernels/instructions.hpp).
void fold(const Op& op, DType dtype, bool wide, std::span<const std::byte* const> inputs, std::size_t ranks,
          FoldTarget first, FoldTarget second, std::size_t count);

// The same with the kernels of one instruction set: for tests and measurements.
void fold_with(const KernelTable& kernels, const Op& op, DType dtype, bool wide,
               std::span<const std::byte* const> inputs, std::size_t ranks, FoldTarget first, FoldTarget second,
               std::size_t count);

// Copies, past the caches if `stores` says so. The arrays are the same or do not overlap. As fold(): fenced, no
// alignment needed, any size.
void copy(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores);

}  // namespace col::core
