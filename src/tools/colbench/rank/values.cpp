#include "colbench/rank/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

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

// As the type keeps it.
double wrapped(std::int64_t value, DType dtype) {
  switch (dtype) {
    case DType::int8:
      return static_cast<std::int8_t>(value);
    case DType::uint8:
      return static_cast<std::uint8_t>(value);
    case DType::int32:
      return static_cast<std::int32_t>(value);
    case DType::uint32:
      return static_cast<std::uint32_t>(value);
    default:
      return static_cast<double>(value);
  }
}

bool is_integer(DType dtype) {
  return dtype < DType::float16;
}

}  // namespace

void store_element(void* to, DType dtype, std::int64_t value) {
  switch (dtype) {
    case DType::int8:
    case DType::uint8:
      return put(to, static_cast<std::uint8_t>(value));
    case DType::int32:
    case DType::uint32:
      return put(to, static_cast<std::uint32_t>(value));
    case DType::int64:
    case DType::uint64:
      return put(to, value);
    default:
      return store_result(to, dtype, static_cast<double>(value));
  }
}

void store_result(void* to, DType dtype, double value) {
  switch (dtype) {
    case DType::float16:
      return put(to, float16(static_cast<float>(value)));
    case DType::bfloat16:
      return put(to, bfloat16(static_cast<float>(value)));
    case DType::float32:
      return put(to, static_cast<float>(value));
    case DType::float64:
      return put(to, value);
    default:  // a whole number that the type has
      return store_element(to, dtype, static_cast<std::int64_t>(value));
  }
}

double load_element(const void* from, DType dtype) {
  switch (dtype) {
    case DType::int8:
      return get<std::int8_t>(from);
    case DType::uint8:
      return get<std::uint8_t>(from);
    case DType::int32:
      return get<std::int32_t>(from);
    case DType::uint32:
      return get<std::uint32_t>(from);
    case DType::int64:
    case DType::uint64:
      return static_cast<double>(get<std::int64_t>(from));
    case DType::float16:
      return static_cast<float>(get<float16>(from));
    case DType::bfloat16:
      return static_cast<float>(get<bfloat16>(from));
    case DType::float32:
      return get<float>(from);
    case DType::float64:
      return get<double>(from);
  }
  return 0;
}

bool is_element(const void* from, DType dtype, double expected, int averaged) {
  const double value = load_element(from, dtype);
  if (value == expected) return true;
  if (is_integer(dtype)) return false;
  // An average need not be a number of the type; sums of many ranks may need more bits than bfloat16 has.
  // Beyond some, errors to either side make up for one another.
  const int roundings = std::min(averaged + 1, 16);
  const double unit = dtype == DType::bfloat16  ? roundings / 256.0
                      : dtype == DType::float16 ? roundings / 2048.0
                                                : 1e-6;
  if (std::isinf(value)) return std::abs(expected) > 65504 && dtype == DType::float16;
  return std::abs(value - expected) <= unit * std::abs(expected);
}

void Fold::add(std::int64_t value) {
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
