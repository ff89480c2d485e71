// Which instruction set the kernels use: the best one of this processor, or the one that COL_ISA names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/kernels/kernel_table.hpp"

namespace col::core {

// From the smallest to the largest. Processors other than x86-64 have only the baseline.
enum class Instructions : std::uint8_t { baseline, avx2_f16c, avx512 };
inline constexpr std::array kAllInstructions = {Instructions::baseline, Instructions::avx2_f16c, Instructions::avx512};

// "baseline", "avx2", "avx512": the values of COL_ISA.
std::string_view to_string(Instructions instructions) noexcept;

// Whether this processor has them, and whether the operating system saves their registers.
bool is_available(Instructions instructions) noexcept;
Instructions best_instructions() noexcept;

// The instruction set that a value of COL_ISA names. Throws invalid_argument if there is no such name, or if the
// processor lacks it.
Instructions instructions_named(std::string_view name, bool (*available)(Instructions) noexcept = is_available);
// The instruction set of COL_ISA, or best_instructions() if it is unset.
Instructions instructions_from_environment();
// The same, but reads COL_ISA only once. An error is thrown again at every call.
Instructions chosen_instructions();

// Requires: is_available(instructions).
const KernelTable& kernel_table(Instructions instructions) noexcept;
// The table of chosen_instructions(), with the same errors.
const KernelTable& kernels();

// The loops over arrays of narrow floats, alone or together with float32 (mixed_loops.hpp). All forms give the same
// bits for every input, except for the payload of a NaN that comes from two inputs: the tests compare them. Requires:
// is_narrow(dtype), and a processor that has `instructions`.
inline const NarrowKernels& narrow_kernels(DType dtype, Instructions instructions = chosen_instructions()) {
  const KernelTable& table = kernel_table(instructions);
  switch (dtype) {
    case DType::float16:
      return table.float16;
    case DType::bfloat16:
      return table.bfloat16;
    case DType::float8_e4m3fn:
      return table.float8_e4m3fn;
    default:
      return table.float8_e5m2;
  }
}

}  // namespace col::core
