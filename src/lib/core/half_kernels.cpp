#include "core/half_kernels.hpp"

#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "core/element.hpp"
#include "core/operators.hpp"

namespace col::core {
namespace {

// The body of all loops. Inlined by force, so that it is compiled with the instructions of the function it is in.
template <DType kTo, class Compute>
[[gnu::always_inline]] inline void fill(std::byte* to, std::size_t begin, std::size_t end, Compute compute) {
  // Arrays are the same or disjoint: no iteration depends on another.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (std::size_t i = begin; i < end; ++i) store<kTo>(to, i, compute(i));
}

// ---- For every processor --------------------------------------------------------------------------------------------

struct Baseline {
  template <DType kFrom, DType kTo>
  static void convert(const std::byte* in, std::byte* out, std::size_t count) {
    fill<kTo>(out, 0, count, [=](std::size_t i) { return load<kFrom>(in, i); });
  }

  template <class Operator, DType kLeft, DType kRight, DType kResult>
  static void reduce(const std::byte* left, const std::byte* right, std::byte* result, std::size_t count) {
    fill<kResult>(result, 0, count,
                  [=](std::size_t i) { return Operator::apply(load<kLeft>(left, i), load<kRight>(right, i)); });
  }
};

// ---- For x86-64 with AVX2 and F16C ----------------------------------------------------------------------------------

#if defined(__x86_64__)

struct Avx2 {
  static constexpr std::size_t kLanes = 8;
  static constexpr int kQuietBit = 0x0040'0000;  // of a float32 NaN

  template <DType kDType>
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline __m256 load8(const std::byte* data,
                                                                              std::size_t index) {
    data += index * sizeof(typename Element<kDType>::Storage);
    if constexpr (kDType == DType::float32) {
      return _mm256_loadu_ps(reinterpret_cast<const float*>(data));
    } else {
      const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
      if constexpr (kDType == DType::float16) return _mm256_cvtph_ps(halves);
      const __m256 floats = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
      const __m256 is_nan = _mm256_cmp_ps(floats, floats, _CMP_UNORD_Q);
      return _mm256_or_ps(floats, _mm256_and_ps(is_nan, _mm256_castsi256_ps(_mm256_set1_epi32(kQuietBit))));
    }
  }

  template <DType kDType>
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline void store8(std::byte* data, std::size_t index,
                                                                             __m256 value) {
    data += index * sizeof(typename Element<kDType>::Storage);
    if constexpr (kDType == DType::float32) {
      _mm256_storeu_ps(reinterpret_cast<float*>(data), value);
    } else if constexpr (kDType == DType::float16) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(data), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    } else {
      // As float_to_bfloat16(), lane by lane.
      const __m256i bits = _mm256_castps_si256(value);
      const __m256i upper = _mm256_srli_epi32(bits, 16);
      const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
      const __m256i rounding = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
      const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, rounding), 16);
      const __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(kQuietBit >> 16));
      const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
      const __m256i result = _mm256_blendv_epi8(rounded, nan, is_nan);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(data),
                       _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1)));
    }
  }

  template <class Operator>
  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline __m256 apply8(__m256 left, __m256 right) {
    if constexpr (std::is_same_v<Operator, Sum>) {
      return _mm256_add_ps(left, right);
    } else if constexpr (std::is_same_v<Operator, Product>) {
      return _mm256_mul_ps(left, right);
    } else if constexpr (std::is_same_v<Operator, Min>) {
      return _mm256_or_ps(_mm256_min_ps(left, right), _mm256_min_ps(right, left));  // as Min::apply()
    } else {
      const __m256 sign = _mm256_set1_ps(-0.0F);
      return _mm256_xor_ps(apply8<Min>(_mm256_xor_ps(left, sign), _mm256_xor_ps(right, sign)), sign);
    }
  }

  template <DType kFrom, DType kTo>
  [[gnu::target("avx2,f16c")]] static void convert(const std::byte* in, std::byte* out, std::size_t count) {
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store8<kTo>(out, i, load8<kFrom>(in, i));
    fill<kTo>(out, i, count, [=](std::size_t k) { return load<kFrom>(in, k); });
  }

  template <class Operator, DType kLeft, DType kRight, DType kResult>
  [[gnu::target("avx2,f16c")]] static void reduce(const std::byte* left, const std::byte* right, std::byte* result,
                                                  std::size_t count) {
    std::size_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      store8<kResult>(result, i, apply8<Operator>(load8<kLeft>(left, i), load8<kRight>(right, i)));
    fill<kResult>(result, i, count,
                  [=](std::size_t k) { return Operator::apply(load<kLeft>(left, k), load<kRight>(right, k)); });
  }
};

bool has_avx2_and_f16c() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0 &&
         __builtin_cpu_supports("avx2") != 0;  // asks whether the operating system saves the registers, too
}

#else

using Avx2 = Baseline;
bool has_avx2_and_f16c() noexcept {
  return false;
}

#endif

// ---- Tables ---------------------------------------------------------------------------------------------------------

template <class Form, class Operator, DType kUser>
constexpr std::array<HalfKernels::Reduce, 8> by_width() {
  return {&Form::template reduce<Operator, kUser, kUser, kUser>,
          &Form::template reduce<Operator, kUser, kUser, DType::float32>,
          &Form::template reduce<Operator, kUser, DType::float32, kUser>,
          &Form::template reduce<Operator, kUser, DType::float32, DType::float32>,
          &Form::template reduce<Operator, DType::float32, kUser, kUser>,
          &Form::template reduce<Operator, DType::float32, kUser, DType::float32>,
          &Form::template reduce<Operator, DType::float32, DType::float32, kUser>,
          nullptr};
}

template <class Form, DType kUser>
constexpr HalfKernels table() {
  HalfKernels kernels{
      &Form::template convert<kUser, DType::float32>, &Form::template convert<DType::float32, kUser>, {}};
  const auto set = [&](ReduceOp op, const std::array<HalfKernels::Reduce, 8>& row) {
    kernels.reductions[static_cast<std::size_t>(op)] = row;
  };
  set(ReduceOp::sum, by_width<Form, Sum, kUser>());
  set(ReduceOp::avg, by_width<Form, Sum, kUser>());
  set(ReduceOp::product, by_width<Form, Product, kUser>());
  set(ReduceOp::min, by_width<Form, Min, kUser>());
  set(ReduceOp::max, by_width<Form, Max, kUser>());
  return kernels;
}

constexpr HalfKernels kBaselineFloat16 = table<Baseline, DType::float16>();
constexpr HalfKernels kBaselineBfloat16 = table<Baseline, DType::bfloat16>();
constexpr HalfKernels kAvx2Float16 = table<Avx2, DType::float16>();
constexpr HalfKernels kAvx2Bfloat16 = table<Avx2, DType::bfloat16>();

}  // namespace

Instructions best_instructions() noexcept {
  static const Instructions kBest = has_avx2_and_f16c() ? Instructions::avx2_f16c : Instructions::baseline;
  return kBest;
}

const HalfKernels& half_kernels(DType dtype, Instructions instructions) noexcept {
  const bool float16 = dtype == DType::float16;
  if (instructions == Instructions::baseline) return float16 ? kBaselineFloat16 : kBaselineBfloat16;
  return float16 ? kAvx2Float16 : kAvx2Bfloat16;
}

}  // namespace col::core
