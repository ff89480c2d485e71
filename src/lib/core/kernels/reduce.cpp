#include "core/kernels/reduce.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/kernels/instructions.hpp"
#include "core/kernels/kernel_table.hpp"
#include "core/kernels/mixed.hpp"

namespace col::core {

namespace {

// Null where the operator is not defined.
FoldKernel find_kernel(const KernelTable& kernels, ReduceOp op, DType dtype) noexcept {
  const auto row = static_cast<std::size_t>(op);
  const auto column = static_cast<std::size_t>(dtype);
  return row < kReduceOpCount && column < kDTypeCount ? kernels.folds[row][column] : nullptr;
}

}  // namespace

void reduce(const Op& op, DType dtype, const void* left, const void* right, void* result, std::size_t count) {
  if (count == 0) return;
  if (op.kind() == Op::Kind::user) {
    op.user_function()(left, right, result, count, dtype);
    return;
  }
  const FoldKernel kernel = find_kernel(kernels(), op.reduce_op(), dtype);
  if (kernel == nullptr) {
    throw Error(ErrorCode::internal,
                fmt::format("no kernel for {} on {}; please report this as a bug in col", op.name(), to_string(dtype)));
  }
  const std::array inputs = {static_cast<const std::byte*>(left), static_cast<const std::byte*>(right)};
  kernel({inputs.data(), inputs.size(), 0, {static_cast<std::byte*>(result)}, {}, 0, count});
}

bool is_reducible(const Op& op, DType dtype) noexcept {
  if (op.kind() == Op::Kind::user) return size_of(dtype) != 0;
  return find_kernel(kBaselineKernels, op.reduce_op(), dtype) != nullptr;  // all tables have the same
}

DType accumulation_type(DType dtype) noexcept {
  return is_narrow(dtype) ? DType::float32 : dtype;
}

void convert(DType from, const void* in, DType to, void* out, std::size_t count) {
  if (count == 0) return;
  const auto* source = static_cast<const std::byte*>(in);
  auto* target = static_cast<std::byte*>(out);
  if (from == to) {
    if (in != out) std::memcpy(out, in, count * size_of(from));
  } else if (is_narrow(from) && to == DType::float32) {
    narrow_kernels(from).widen(source, target, count);
  } else if (from == DType::float32 && is_narrow(to)) {
    narrow_kernels(to).narrow(source, target, count);
  } else {
    throw Error(ErrorCode::internal, fmt::format("no conversion from {} to {}; please report this as a bug in col",
                                                 to_string(from), to_string(to)));
  }
}

bool is_whole(double scale) noexcept {
  return std::isfinite(scale) && std::trunc(scale) == scale;
}

void premultiply(double scale, DType dtype, void* inout, std::size_t count) {
  premultiply_to(scale, dtype, inout, false, inout, count);
}

void finish_average(std::size_t divisor, DType dtype, void* inout, std::size_t count) {
  finish(ReduceOp::avg, divisor, dtype, false, inout, inout, count);
}

}  // namespace col::core
