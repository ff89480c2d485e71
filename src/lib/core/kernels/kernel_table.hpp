// The loops that touch every byte of a reduction: one table for each instruction set. All tables give the same results.
//
// Each table is compiled in its own source file (baseline.cpp, avx2.cpp, avx512.cpp) from the same templates. These
// files use the same compiler flags as all others. Only the text between their `#pragma`s is for the larger instruction
// set, and all of it is in an unnamed namespace. A compiler flag such as -mavx512f would affect every inline function
// of every included header. The linker keeps one copy of each such function for the whole library, and this could be a
// copy that older processors cannot run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <col/types.hpp>

#include "core/kernels/fold.hpp"

namespace col::core {

constexpr bool is_narrow(DType dtype) noexcept {
  return row_of(dtype).is_narrow();
}

// One call of a fold kernel: the arguments of fold() after all checks. Requires: input_count > 0, and a first target.
struct FoldCall {
  const std::byte* const* inputs;
  std::size_t input_count;
  std::size_t input_begin;  // the element of every input that becomes element 0 of the targets
  FoldTarget first;
  FoldTarget second;
  std::size_t divisor;  // divisor for sums of floats; 0: no division. Other kernels ignore it.
  std::size_t count;
};

using FoldKernel = void (*)(const FoldCall& call);

// Folds of element types for which no vector loop is worth its code: booleans, and products of complex numbers. The
// compiler vectorises what it can. All tables of kernels have the same ones.
void fold_logical_and(const FoldCall& call);
void fold_logical_or(const FoldCall& call);
void fold_logical_xor(const FoldCall& call);
// Of the two parts as the textbook multiplies them, without C's extra rules for infinities.
void fold_complex64_product(const FoldCall& call);
void fold_complex128_product(const FoldCall& call);

// out[i] = in[i] / divisor, toward zero; `out` may be `in`. Requires: divisor > 0.
using DivideKernel = void (*)(std::size_t divisor, const std::byte* in, std::byte* out, std::size_t count);

// Which arrays of a reduction are float32 instead of a narrow type.
struct Widths {
  bool left = false, right = false, result = false;
};

// The loops for one narrow type. No pointer needs to be aligned. A result may be exactly an operand of its own width.
struct NarrowKernels {
  using Convert = void (*)(const std::byte* in, std::byte* out, std::size_t count);
  using Reduce = void (*)(const std::byte* left, const std::byte* right, std::byte* result, std::size_t count);

  Convert widen;   // to float32
  Convert narrow;  // from float32: nearest, ties to even
  // Null for the bitwise operators, and if everything is wide (that is a reduction of float32).
  Reduce reduce(ReduceOp op, Widths widths) const noexcept {
    return reductions[static_cast<std::size_t>(op)]
                     [(widths.left ? 4U : 0U) + (widths.right ? 2U : 0U) + (widths.result ? 1U : 0U)];
  }
  std::array<std::array<Reduce, 8>, kReduceOpCount> reductions;
};

struct KernelTable {
  using Row = std::array<FoldKernel, kDTypeCount>;
  // By ReduceOp, then DType; null if the operator is not defined. The kernels of avg are those of sum, and divide only
  // floats.
  std::array<Row, kReduceOpCount> folds;
  // The same for float32 inputs; null except for narrow floats.
  std::array<Row, kReduceOpCount> wide_folds;
  // By DType; null for floats.
  std::array<DivideKernel, kDTypeCount> divisions;
  NarrowKernels float16;
  NarrowKernels bfloat16;
  NarrowKernels float8_e4m3fn;
  NarrowKernels float8_e5m2;
};

extern const KernelTable kBaselineKernels;
#if defined(__x86_64__)
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
#endif

}  // namespace col::core
