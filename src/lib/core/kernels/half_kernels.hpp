// The loops over arrays of 16-bit floats, alone or together with float32 (kernels/mixed_loops.hpp).
//
// All forms give the same bits for every input, except for the payload of a NaN that comes from two inputs. The tests
// compare them.
#pragma once

#include <col/types.hpp>

#include "core/kernels/instructions.hpp"
#include "core/kernels/kernel_table.hpp"

namespace col::core {

// Requires: is_half(dtype), and a processor that has `instructions`.
inline const HalfKernels& half_kernels(DType dtype, Instructions instructions = chosen_instructions()) {
  const KernelTable& table = kernel_table(instructions);
  return dtype == DType::float16 ? table.float16 : table.bfloat16;
}

}  // namespace col::core
