// Puts the loops of one instruction set into its table. Included once by each source file of kernels/.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <col/types.hpp>

#include "core/kernels/divide_loop.hpp"
#include "core/kernels/element.hpp"
#include "core/kernels/fold_loop.hpp"
#include "core/kernels/kernel_table.hpp"
#include "core/kernels/mixed_loops.hpp"
#include "core/kernels/operators.hpp"

namespace col::core {
namespace {  // NOLINT(google-build-namespaces)

// The unsigned type of the same size, for operations in which the sign makes no difference to the bits. This halves the
// number of loops to compile.
constexpr DType without_sign(DType dtype) {
  switch (dtype) {
    case DType::int8:
      return DType::uint8;
    case DType::int16:
      return DType::uint16;
    case DType::int32:
      return DType::uint32;
    case DType::int64:
      return DType::uint64;
    default:
      return dtype;
  }
}

template <class Operator>
constexpr bool kIsBitwise =
    std::is_same_v<Operator, BitAnd> || std::is_same_v<Operator, BitOr> || std::is_same_v<Operator, BitXor>;
template <class Operator>
constexpr bool kOrders = std::is_same_v<Operator, Min> || std::is_same_v<Operator, Max>;

template <class Operator>
constexpr FoldKernel logical_kernel() {
  if (std::is_same_v<Operator, Min> || std::is_same_v<Operator, BitAnd>) return &fold_logical_and;
  if (std::is_same_v<Operator, Max> || std::is_same_v<Operator, BitOr>) return &fold_logical_or;
  return std::is_same_v<Operator, BitXor> ? &fold_logical_xor : nullptr;
}

// A sum of complex numbers is the sum of their parts.
template <class Isa, DType kPart>
void fold_parts(const FoldCall& call) {
  FoldCall parts = call;
  parts.count *= 2;
  parts.input_begin *= 2;
  FoldLoop<Isa, Sum, kPart, kPart>::run(parts);
}

template <class Isa, class Operator, DType kDType>
constexpr FoldKernel complex_kernel() {
  if constexpr (std::is_same_v<Operator, Sum>) {
    return &fold_parts<Isa, part_type(kDType)>;
  } else if constexpr (std::is_same_v<Operator, Product>) {
    return kDType == DType::complex64 ? &fold_complex64_product : &fold_complex128_product;
  } else {
    return nullptr;
  }
}

template <class Isa, class Operator, DType kDType>
constexpr FoldKernel fold_kernel() {
  if constexpr (kDType == DType::boolean) {
    return logical_kernel<Operator>();
  } else if constexpr (row_of(kDType).kind == ElementKind::complex) {
    return complex_kernel<Isa, Operator, kDType>();
  } else if constexpr (kIsBitwise<Operator> && !is_integer<kDType>) {
    return nullptr;
  } else {
    constexpr DType kComputed = kOrders<Operator> ? kDType : without_sign(kDType);
    return &FoldLoop<Isa, Operator, kComputed, kComputed>::run;
  }
}

template <class Isa, class Operator, DType kDType>
constexpr FoldKernel wide_fold_kernel() {
  if constexpr (is_narrow(kDType) && !kIsBitwise<Operator>) {
    return &FoldLoop<Isa, Operator, DType::float32, kDType>::run;
  } else {
    return nullptr;
  }
}

template <class Isa, class Operator, std::size_t... kIndex>
constexpr void set_folds(KernelTable& table, ReduceOp op, std::index_sequence<kIndex...>) {
  const auto row = static_cast<std::size_t>(op);
  table.folds[row] = {fold_kernel<Isa, Operator, static_cast<DType>(kIndex)>()...};
  table.wide_folds[row] = {wide_fold_kernel<Isa, Operator, static_cast<DType>(kIndex)>()...};
}

template <class Isa, DType kDType>
constexpr DivideKernel division() {
  if constexpr (is_integer<kDType>) {
    return &divide_loop<Isa, kDType>;
  } else {
    return nullptr;
  }
}

template <class Isa, std::size_t... kIndex>
constexpr void set_divisions(KernelTable& table, std::index_sequence<kIndex...>) {
  table.divisions = {division<Isa, static_cast<DType>(kIndex)>()...};
}

template <class Isa, class Operator, DType kUser>
constexpr std::array<NarrowKernels::Reduce, 8> by_width() {
  constexpr DType kWide = DType::float32;
  return {&mixed_loop<Isa, Operator, kUser, kUser, kUser>, &mixed_loop<Isa, Operator, kUser, kUser, kWide>,
          &mixed_loop<Isa, Operator, kUser, kWide, kUser>, &mixed_loop<Isa, Operator, kUser, kWide, kWide>,
          &mixed_loop<Isa, Operator, kWide, kUser, kUser>, &mixed_loop<Isa, Operator, kWide, kUser, kWide>,
          &mixed_loop<Isa, Operator, kWide, kWide, kUser>, nullptr};
}

template <class Isa, DType kUser>
constexpr NarrowKernels make_narrow_kernels() {
  NarrowKernels kernels{&convert_loop<Isa, kUser, DType::float32>, &convert_loop<Isa, DType::float32, kUser>, {}};
  kernels.reductions[static_cast<std::size_t>(ReduceOp::sum)] = by_width<Isa, Sum, kUser>();
  kernels.reductions[static_cast<std::size_t>(ReduceOp::avg)] = by_width<Isa, Sum, kUser>();
  kernels.reductions[static_cast<std::size_t>(ReduceOp::product)] = by_width<Isa, Product, kUser>();
  kernels.reductions[static_cast<std::size_t>(ReduceOp::min)] = by_width<Isa, Min, kUser>();
  kernels.reductions[static_cast<std::size_t>(ReduceOp::max)] = by_width<Isa, Max, kUser>();
  return kernels;
}

template <class Isa>
constexpr KernelTable make_table() {
  KernelTable table{};
  constexpr auto kDTypes = std::make_index_sequence<kDTypeCount>{};
  set_folds<Isa, Sum>(table, ReduceOp::sum, kDTypes);
  set_folds<Isa, Product>(table, ReduceOp::product, kDTypes);
  set_folds<Isa, Min>(table, ReduceOp::min, kDTypes);
  set_folds<Isa, Max>(table, ReduceOp::max, kDTypes);
  set_folds<Isa, Sum>(table, ReduceOp::avg, kDTypes);
  set_folds<Isa, BitAnd>(table, ReduceOp::band, kDTypes);
  set_folds<Isa, BitOr>(table, ReduceOp::bor, kDTypes);
  set_folds<Isa, BitXor>(table, ReduceOp::bxor, kDTypes);
  set_divisions<Isa>(table, kDTypes);
  table.float16 = make_narrow_kernels<Isa, DType::float16>();
  table.bfloat16 = make_narrow_kernels<Isa, DType::bfloat16>();
  table.float8_e4m3fn = make_narrow_kernels<Isa, DType::float8_e4m3fn>();
  table.float8_e5m2 = make_narrow_kernels<Isa, DType::float8_e5m2>();
  return table;
}

}  // namespace
}  // namespace col::core
