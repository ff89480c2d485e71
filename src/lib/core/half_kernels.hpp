// Loops over arrays of 16-bit floats, alone or together with float32, in the best form that this processor has.
//
// The work is all in the conversions: without instructions for them, float16 is bound by arithmetic and not by memory.
// Both forms give the same bits for every input (but for the payload of a NaN that comes from two); the tests compare
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <col/types.hpp>

namespace col::core {

constexpr bool is_half(DType dtype) noexcept {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

// Which arrays of a reduction are float32 rather than 16 bits wide.
struct Widths {
  bool left = false, right = false, result = false;
};

// The loops for one 16-bit type. No pointer needs to be aligned; a result may be exactly an operand of its own width.
struct HalfKernels {
  using Convert = void (*)(const std::byte* in, std::byte* out, std::size_t count);
  using Reduce = void (*)(const std::byte* left, const std::byte* right, std::byte* result, std::size_t count);

  Convert widen;   // to float32
  Convert narrow;  // from float32: nearest, ties to even
  // Null for the bitwise operators and where everything is wide, which is a reduction of float32.
  Reduce reduce(ReduceOp op, Widths widths) const noexcept {
    return reductions[static_cast<std::size_t>(op)]
                     [(widths.left ? 4U : 0U) + (widths.right ? 2U : 0U) + (widths.result ? 1U : 0U)];
  }
  std::array<std::array<Reduce, 8>, kReduceOpCount> reductions;
};

enum class Instructions : std::uint8_t { baseline, avx2_f16c };

// The best that this processor has.
Instructions best_instructions() noexcept;
// Requires: is_half(dtype), and a processor that has `instructions`.
const HalfKernels& half_kernels(DType dtype, Instructions instructions = best_instructions()) noexcept;

}  // namespace col::core
