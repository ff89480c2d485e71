// Folds what many ranks have brought into one result, in one pass over all of it.
//
// This is what a collective inside a node does with the inputs of all ranks before it: each is read once, nothing but
// the result is written, and partial results never leave the registers.
#pragma once

#include <cstddef>
#include <span>

#include <col/types.hpp>

namespace col::core {

struct KernelTable;

// Whether what is written will be read soon, and so belongs into the caches, or goes past them to memory.
enum class Stores { cached, streaming };

struct FoldTarget {
  std::byte* data = nullptr;  // null: not wanted
  Stores stores = Stores::cached;
};

// Both targets get, for each i below `count`, ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) …: in the order of
// `inputs`, whatever their number (at least 1). 16-bit floats are accumulated in float32 over all inputs and rounded
// once; avg divides as core::finish() does; premul_sum acts as sum; a user's function is applied pair by pair. The bits
// are those of reduce_mixed() and finish() applied one after the other, on every processor, for every alignment and
// every split of the range (but for the payload of a NaN that comes from several).
//
// `wide`: the inputs are of accumulation_type(dtype), not of dtype; not with a user's function on 16-bit floats. The
// targets are always of dtype.
// `ranks`: what avg divides by. 0: not the last part of the fold, no division (then avg acts as sum).
//
// No pointer needs to be aligned. A target may be exactly one of the inputs when `wide` changes nothing; inputs may be
// the same, and the two targets are not; no other overlap. Nothing is allocated. A count of zero touches nothing, and
// neither does a fold without targets. Only what is aligned to a vector is streamed, in a target of which some element
// begins at such an address (and, where both targets stream, in the second only if it does where the first one does).
// Streaming stores are ordered before whatever this thread stores afterwards: they end with a store fence.
// Requires: is_reducible(op, dtype); throws internal otherwise, what a user's function throws, and invalid_argument
// when COL_ISA is wrong (core/instructions.hpp).
void fold(const Op& op, DType dtype, bool wide, std::span<const std::byte* const> inputs, std::size_t ranks,
          FoldTarget first, FoldTarget second, std::size_t count);

// The same with the kernels of one instruction set: for tests and measurements.
void fold_with(const KernelTable& kernels, const Op& op, DType dtype, bool wide,
               std::span<const std::byte* const> inputs, std::size_t ranks, FoldTarget first, FoldTarget second,
               std::size_t count);

// Copies, past the caches when `stores` says so. The arrays are the same or do not overlap. As fold(): fenced,
// unaligned, any size.
void copy(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores);

}  // namespace col::core
