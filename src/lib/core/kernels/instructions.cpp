#include "core/kernels/instructions.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <col/error.hpp>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/env.hpp"

namespace col::core {
namespace {

#if defined(__x86_64__)

bool has_avx2_and_f16c() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // The built-in function asks whether the operating system saves the registers, too; gcc 10 does not know "f16c".
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0 && __builtin_cpu_supports("avx2") != 0;
}

bool has_avx512() noexcept {
  return has_avx2_and_f16c() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

#else

bool has_avx2_and_f16c() noexcept {
  return false;
}
bool has_avx512() noexcept {
  return false;
}

#endif

std::string names_of(bool (*available)(Instructions) noexcept) {
  std::string names;
  for (const Instructions each : kAllInstructions) {
    if (available(each)) names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(each));
  }
  return names;
}

}  // namespace

std::string_view to_string(Instructions instructions) noexcept {
  switch (instructions) {
    case Instructions::baseline:
      return "baseline";
    case Instructions::avx2_f16c:
      return "avx2";
    case Instructions::avx512:
      return "avx512";
  }
  return "?";
}

bool is_available(Instructions instructions) noexcept {
  switch (instructions) {
    case Instructions::baseline:
      return true;
    case Instructions::avx2_f16c:
      return has_avx2_and_f16c();
    case Instructions::avx512:
      return has_avx512();
  }
  return false;
}

Instructions best_instructions() noexcept {
  static const Instructions kBest = *std::find_if(kAllInstructions.rbegin(), kAllInstructions.rend(), is_available);
  return kBest;
}

Instructions instructions_named(std::string_view name, bool (*available)(Instructions) noexcept) {
  for (const Instructions each : kAllInstructions) {
    if (to_string(each) != name) continue;
    if (available(each)) return each;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("COL_ISA='{}': this processor does not have these instructions; it has: {}; set one of "
                            "these, or unset it",
                            name, names_of(available)));
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("COL_ISA='{}' is not one of baseline, avx2, avx512; correct it, "
                                                       "or unset it",
                                                       name));
}

Instructions instructions_from_environment() {
  const auto name = env::get("COL_ISA");
  return name ? instructions_named(*name) : best_instructions();
}

Instructions chosen_instructions() {
  static const Instructions kChosen = instructions_from_environment();
  return kChosen;
}

const KernelTable& kernel_table([[maybe_unused]] Instructions instructions) noexcept {
#if defined(__x86_64__)
  if (instructions == Instructions::avx512) return kAvx512Kernels;
  if (instructions == Instructions::avx2_f16c) return kAvx2Kernels;
#endif
  return kBaselineKernels;
}

const KernelTable& kernels() {
  static const KernelTable& kTable = kernel_table(chosen_instructions());
  return kTable;
}

}  // namespace col::core
