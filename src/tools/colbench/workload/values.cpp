#include "colbench/workload/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace col::colbench {
namespace {

template <class T>
void put(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
T get(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Calls body(T{}) for the type of a whole number that a real DType is kept in.
template <class Body>
auto with_real(DType dtype, Body body) {
  switch (dtype) {
    case DType::int8:
      return body(std::int8_t{});
    case DType::uint8:
      return body(std::uint8_t{});
    case DType::int16:
      return body(std::int16_t{});
    case DType::uint16:
      return body(std::uint16_t{});
    case DType::int32:
      return body(std::int32_t{});
    case DType::uint32:
      return body(std::uint32_t{});
    case DType::float16:
      return body(float16{});
    case DType::bfloat16:
      return body(bfloat16{});
    case DType::float8_e4m3fn:
      return body(float8_e4m3fn{});
    case DType::float8_e5m2:
      return body(float8_e5m2{});
    case DType::float32:
    case DType::complex64:
      return body(float{});
    case DType::float64:
    case DType::complex128:
      return body(double{});
    default:  // sums of 64 bits wrap alike, with a sign and without
      return body(std::int64_t{});
  }
}

bool is_integer(DType dtype) {
  const ElementKind kind = row_of(dtype).kind;
  return row_of(dtype).is_integer() || kind == ElementKind::boolean || kind == ElementKind::opaque;
}

// Byte `index` of an opaque element, or of a boolean: the value's bytes again and again.
std::uint8_t byte_of(std::int64_t value, std::size_t index) {
  return static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * (index % sizeof value)));
}

// As the type keeps it.
double wrapped(std::int64_t value, DType dtype) {
  if (dtype == DType::boolean) return value != 0 ? 1 : 0;
  if (is_opaque(dtype) && size_of(dtype) < sizeof value)
    return static_cast<double>(value & ((std::int64_t{1} << (8 * size_of(dtype))) - 1));
  if (!row_of(dtype).is_integer()) return static_cast<double>(value);
  return with_real(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>) return static_cast<double>(static_cast<T>(value));
    return static_cast<double>(value);
  });
}

double load_opaque(const void* from, DType dtype) {
  const auto* const bytes = static_cast<const std::uint8_t*>(from);
  std::int64_t value = 0;
  for (std::size_t i = std::min(size_of(dtype), sizeof value); i-- > 0;) value = value * 256 + bytes[i];
  for (std::size_t i = 0; i < size_of(dtype); ++i)
    if (bytes[i] != byte_of(value, i)) return std::nan("");
  return static_cast<double>(value);
}

struct NarrowFormat {
  double unit;  // the part of a number that a rounding may change
  double largest;
  bool has_infinity = true;
};

// Of other floats, what is enough for their sums here.
NarrowFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {1.0 / 2048, 65504};
    case DType::bfloat16:
      return {1.0 / 256, 0x1.fep127};
    case DType::float8_e4m3fn:
      return {1.0 / 16, 448, false};
    case DType::float8_e5m2:
      return {1.0 / 8, 57344};
    default:
      return {1e-6, std::numeric_limits<float>::max()};
  }
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

void store_element(void* to, DType dtype, std::int64_t value) {
  if (dtype == DType::boolean) return put(to, value != 0);
  if (is_opaque(dtype)) {
    for (std::size_t i = 0; i < size_of(dtype); ++i) static_cast<std::uint8_t*>(to)[i] = byte_of(value, i);
    return;
  }
  with_real(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>)
      put(to, static_cast<T>(value));
    else
      store_result(to, dtype, static_cast<double>(value));
  });
}

void store_result(void* to, DType dtype, double value) {
  if (is_integer(dtype)) return store_element(to, dtype, static_cast<std::int64_t>(value));  // the type has it
  with_real(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, double>)
      put(to, value);
    else
      put(to, static_cast<T>(static_cast<float>(value)));
    if (row_of(dtype).kind == ElementKind::complex) put(static_cast<std::byte*>(to) + sizeof(T), T{});
  });
}

// Of a complex number its real part; no number if the other part is not 0.
double load_element(const void* from, DType dtype) {
  if (dtype == DType::boolean) return get<std::uint8_t>(from);
  if (is_opaque(dtype)) return load_opaque(from, dtype);
  return with_real(dtype, [&](auto element) -> double {
    using T = decltype(element);
    const auto value = get<T>(from);
    if constexpr (std::is_floating_point_v<T>) {
      if (row_of(dtype).kind == ElementKind::complex && get<T>(static_cast<const std::byte*>(from) + sizeof(T)) != 0)
        return std::nan("");
    }
    if constexpr (!std::is_arithmetic_v<T>)  // a narrow float
      return static_cast<float>(value);
    else
      return static_cast<double>(value);
  });
}

bool is_element(const void* from, DType dtype, double expected, int averaged) {
  const double value = load_element(from, dtype);
  if (value == expected) return true;
  if (is_integer(dtype) || averaged == 0) return false;
  // An average need not be a number of the type; sums of many ranks may need more bits than a narrow float has.
  // Beyond some, errors to either side make up for one another.
  const int roundings = std::min(averaged + 1, 16);
  const NarrowFormat format = format_of(dtype);
  const double unit = row_of(dtype).is_narrow() ? roundings * format.unit : format.unit;
  // Of what is too large for the type there is an infinity, or a NaN; NCCL takes the largest number of 8 bits.
  if (std::abs(expected) > format.largest && !(std::abs(value) < format.largest))
    return std::isnan(value) ? !format.has_infinity : value * expected > 0;
  return std::abs(value - expected) <= unit * std::abs(expected);
}

void Fold::add(std::int64_t value) {
  if (dtype_ == DType::boolean) value = value != 0;
  product_ *= static_cast<double>(value);
  if (added_++ == 0) {
    value_ = value;
    return;
  }
  switch (op_) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      value_ += value;
      break;
    case ReduceOp::product:
      value_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(value_) * static_cast<std::uint64_t>(value));
      break;
    case ReduceOp::min:
      value_ = std::min(value_, value);
      break;
    case ReduceOp::max:
      value_ = std::max(value_, value);
      break;
    case ReduceOp::band:
      value_ &= value;
      break;
    case ReduceOp::bor:
      value_ |= value;
      break;
    case ReduceOp::bxor:
      value_ ^= value;
      break;
  }
}

double Fold::result(int ranks) const {
  if (op_ == ReduceOp::product && !is_integer(dtype_)) return product_;
  if (op_ != ReduceOp::avg) return wrapped(value_, dtype_);
  if (!is_integer(dtype_)) return static_cast<double>(value_) / ranks;
  return wrapped(static_cast<std::int64_t>(wrapped(value_, dtype_)) / ranks, dtype_);
}

}  // namespace col::colbench
