// Which instruction set the kernels use: the best that this processor has, or what COL_ISA names.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/kernels/kernel_table.hpp"

namespace col::core {

// From the smallest to the largest. On processors other than x86-64 there is the baseline alone.
enum class Instructions : std::uint8_t { baseline, avx2_f16c, avx512 };
inline constexpr std::array kAllInstructions = {Instructions::baseline, Instructions::avx2_f16c, Instructions::avx512};

// "baseline", "avx2", "avx512": the values of COL_ISA.
std::string_view to_string(Instructions instructions) noexcept;

// Whether this processor has them, and the operating system saves their registers.
bool is_available(Instructions instructions) noexcept;
Instructions best_instructions() noexcept;

// What a value of COL_ISA means. invalid_argument when there is no such name, or the processor lacks them.
Instructions instructions_named(std::string_view name, bool (*available)(Instructions) noexcept = is_available);
// What COL_ISA says, and best_instructions() when it is unset.
Instructions instructions_from_environment();
// The same, but read only once; an error is thrown again at every call.
Instructions chosen_instructions();

// Requires: is_available(instructions).
const KernelTable& kernel_table(Instructions instructions) noexcept;
// The table of chosen_instructions(), with its errors.
const KernelTable& kernels();

}  // namespace col::core
