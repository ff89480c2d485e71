#include "colbench/workload/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/element.hpp"

namespace col::colbench {
namespace {

using tools::with_element;

// Byte `index` of an opaque element, or of a boolean: the value's bytes again and again.
std::uint8_t byte_of(std::int64_t value, std::size_t index) {
  return static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * (index % sizeof value)));
}

double load_opaque(const void* from, DType dtype) {
  const auto* const bytes = static_cast<const std::uint8_t*>(from);
  std::int64_t value = 0;
  for (std::size_t i = std::min(size_of(dtype), sizeof value); i-- > 0;) value = value * 256 + bytes[i];
  for (std::size_t i = 0; i < size_of(dtype); ++i)
    if (bytes[i] != byte_of(value, i)) return std::nan("");
  return static_cast<double>(value);
}

// The largest number of a floating type; of float64, what is enough for the sums here.
template <class T>
constexpr double kLargest = std::is_same_v<T, float16>         ? 65504
                            : std::is_same_v<T, bfloat16>      ? 0x1.fep127
                            : std::is_same_v<T, float8_e4m3fn> ? 448
                            : std::is_same_v<T, float8_e5m2>   ? 57344
                                                               : std::numeric_limits<float>::max();

// True if `value` is near enough to a result that is no number of the type, or needs more bits than it has.
template <class T>
bool is_near(double value, double expected, int roundings) {
  // A result too large for the type is an infinity, or a NaN; NCCL takes the largest number of 8 bits.
  if (std::abs(expected) > kLargest<T> && !(std::abs(value) < kLargest<T>))
    return std::isnan(value) ? std::is_same_v<T, float8_e4m3fn> : value * expected > 0;
  const double unit = tools::is_narrow_v<T> ? roundings * std::ldexp(1.0, -tools::kPrecision<T>) : 1e-6;
  return std::abs(value - expected) <= unit * std::abs(expected);
}

}  // namespace

std::vector<std::size_t> sampled_elements(std::uint64_t seed, std::uint64_t iteration, std::size_t count) {
  constexpr std::size_t kSampled = 16;
  std::vector<std::size_t> sampled = {0, count - 1};
  std::uint64_t state = seed ^ (iteration * 0x9e3779b97f4a7c15U);
  for (std::size_t i = 2; i < std::min(kSampled, count); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    sampled.push_back((state >> 33) % count);
  }
  std::sort(sampled.begin(), sampled.end());
  sampled.erase(std::unique(sampled.begin(), sampled.end()), sampled.end());
  return sampled;
}

void store_element(void* to, DType dtype, double value) {
  if (is_opaque(dtype)) {
    const auto whole = static_cast<std::int64_t>(value);
    for (std::size_t i = 0; i < size_of(dtype); ++i) static_cast<std::uint8_t*>(to)[i] = byte_of(whole, i);
    return;
  }
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
      element = static_cast<T>(value);
    else
      element = tools::element_of<T>(static_cast<float>(value));
    std::memcpy(to, &element, sizeof element);
  });
}

// Of a complex number its real part; no number if the other part is not 0.
double load_element(const void* from, DType dtype) {
  if (is_opaque(dtype)) return load_opaque(from, dtype);
  // A boolean is read as its byte, which may be neither 0 nor 1.
  return with_element(dtype == DType::boolean ? DType::uint8 : dtype, [&](auto element) -> double {
    using T = decltype(element);
    std::memcpy(&element, from, sizeof element);
    if constexpr (tools::is_complex_v<T>)
      return element.imag() != 0 ? std::nan("") : static_cast<double>(element.real());
    else
      return static_cast<double>(static_cast<tools::Partial<T>>(element));
  });
}

bool is_element(const void* from, DType dtype, double expected, int averaged) {
  const double value = load_element(from, dtype);
  if (value == expected) return true;
  const ElementKind kind = row_of(dtype).kind;
  if (averaged == 0 || (kind != ElementKind::floating && kind != ElementKind::complex)) return false;
  // Beyond some, errors to either side make up for one another.
  const int roundings = std::min(averaged + 1, 16);
  return with_element(dtype, [&](auto element) { return is_near<decltype(element)>(value, expected, roundings); });
}

}  // namespace col::colbench
