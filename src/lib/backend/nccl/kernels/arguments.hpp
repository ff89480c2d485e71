// How the kernels are called. Kernels of the first kind combine blocks of one buffer, element by element, in the order
// of the blocks:
//
//   in     block 0 |a0 b0 c0 ...|   block 1 |a1 b1 c1 ...|   ...      each `in_stride` bytes after the one before
//
//   out    whole:      one block    |a0 + a1 + ...|
//          inclusive:  block r      |a0 + ... + ar|
//          exclusive:  block r      |a0 + ... + a(r-1)|, and block 0 is not touched
#pragma once

#include <cstddef>
#include <cstdint>

namespace col::nccl_backend {

inline constexpr unsigned kThreadsOfBlock = 256;  // at most

enum class Results : std::uint32_t { whole, inclusive, exclusive };

// The parameter of such a kernel. Block r of `out` may be exactly block r of `in` (for a whole result, any block); no
// other overlap is allowed. Pointers and strides are multiples of the element's size.
struct FoldArguments {
  const std::byte* in;
  std::byte* out;
  std::size_t in_stride, out_stride;  // bytes
  std::size_t count;                  // elements of a block
  const std::uint64_t* factors;       // sums: the factor of each block, see factor_of(); null: no factors
  std::uint32_t blocks;               // at least 1
  std::uint32_t divisor;              // sums: the divisor of results; 0: no division
  Results results;
};

// Kernels of the second kind compare two buffers, element by element.

// Zeroed before the start. `first_inverted` is the complement of the index, so that zero is later than any index.
struct CompareResult {
  unsigned long long count;  // elements that differ
  unsigned long long first_inverted;
};

struct CompareArguments {
  const std::byte* left;
  const std::byte* right;  // both at any address
  std::size_t count;       // elements
  CompareResult* result;
};

}  // namespace col::nccl_backend
