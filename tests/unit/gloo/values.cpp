#include "unit/gloo/values.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>

#include "core/kernels/reduce.hpp"

namespace col::test {
namespace {

constexpr double kScale = 2.0;

template <class T>
void put(Bytes& bytes, std::size_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

void put_as(DType dtype, Bytes& bytes, std::size_t i, double value) {
  const auto whole = [&] { return static_cast<std::int64_t>(value); };
  switch (dtype) {
    case DType::int8:
    case DType::uint8:
      return put(bytes, i, static_cast<std::uint8_t>(whole()));
    case DType::int32:
    case DType::uint32:
      return put(bytes, i, static_cast<std::uint32_t>(whole()));
    case DType::int64:
    case DType::uint64:
      return put(bytes, i, static_cast<std::uint64_t>(whole()));
    case DType::float16:
      return put(bytes, i, float16(static_cast<float>(value)));
    case DType::bfloat16:
      return put(bytes, i, bfloat16(static_cast<float>(value)));
    case DType::float32:
      return put(bytes, i, static_cast<float>(value));
    case DType::int16:
    case DType::uint16:
      return put(bytes, i, static_cast<std::uint16_t>(whole()));
    case DType::complex128:
      return put(bytes, i, std::complex<double>(value));
    default:
      return put(bytes, i, value);
  }
}

double combine(ReduceOp op, double a, double b) {
  const auto bits = [](double x) { return static_cast<std::int64_t>(x); };
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return a + b;
    case ReduceOp::product:
      return a * b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::band:
      return static_cast<double>(bits(a) & bits(b));
    case ReduceOp::bor:
      return static_cast<double>(bits(a) | bits(b));
    case ReduceOp::bxor:
      return static_cast<double>(bits(a) ^ bits(b));
  }
  return 0;
}

bool is_integer(DType dtype) {
  return row_of(dtype).is_integer();
}

}  // namespace

Values input_values(int rank, std::size_t number, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t x = i * 2654435761U + static_cast<std::size_t>(rank) * 40503U + number * 97U;
    values[i] = static_cast<double>((x >> 7) % 4);
  }
  return values;
}

Bytes pack(DType dtype, const Values& values) {
  Bytes bytes(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) put_as(dtype, bytes, i, values[i]);
  return bytes;
}

std::vector<Op> all_ops() {
  std::vector<Op> ops;
  for (int op = 0; op < kReduceOpCount; ++op) ops.emplace_back(static_cast<ReduceOp>(op));
  ops.push_back(Op::premul_sum(kScale));
  ops.push_back(Op::user([](const void* left, const void* right, void* result, std::size_t count,
                            DType dtype) { core::reduce(ReduceOp::sum, dtype, left, right, result, count); },
                         true, "user_sum"));
  ops.push_back(Op::user([](const void* left, const void*, void* result, std::size_t count,
                            DType dtype) { std::memmove(result, left, count * size_of(dtype)); },
                         false, "first"));
  return ops;
}

bool applies_to(const Op& op, DType dtype) {
  return op.kind() == Op::Kind::user || core::is_reducible(op, dtype);
}

Values reduced(const Op& op, DType dtype, const std::vector<Values>& inputs) {
  if (op.kind() == Op::Kind::user && !op.commutative()) return inputs.front();
  const double scale = op.kind() == Op::Kind::premul_sum ? kScale : 1.0;
  Values result = inputs.front();
  for (double& value : result) value *= scale;
  for (std::size_t r = 1; r < inputs.size(); ++r) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] =
          combine(op.kind() == Op::Kind::builtin ? op.reduce_op() : ReduceOp::sum, result[i], inputs[r][i] * scale);
    }
  }
  if (op.kind() == Op::Kind::builtin && op.reduce_op() == ReduceOp::avg) {
    for (double& value : result) {
      value /= static_cast<double>(inputs.size());
      if (is_integer(dtype)) value = std::trunc(value);
    }
  }
  return result;
}

}  // namespace col::test
