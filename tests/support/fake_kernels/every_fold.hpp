// What the kernels of libcol_nccl.so are made of, by operator and type, as ordinary C++.
#pragma once

#include <cstdint>

#include <col/types.hpp>

#include "backend/nccl/kernels/fold.hpp"

namespace col::test {

// Calls visit(op, dtype, Fold<Operator, Element>()) for each kernel.
template <class Visit>
void for_each_fold(Visit visit) {
  using namespace nccl_backend;  // NOLINT(google-build-using-namespace): their names make a table
  const auto arithmetic = [&visit]<class Element>(DType dtype, Element) {
    visit(ReduceOp::sum, dtype, Fold<Sum, Element>());
    visit(ReduceOp::product, dtype, Fold<Product, Element>());
    visit(ReduceOp::min, dtype, Fold<Min, Element>());
    visit(ReduceOp::max, dtype, Fold<Max, Element>());
  };
  const auto integer = [&]<class Element>(DType dtype, Element element) {
    arithmetic(dtype, element);
    visit(ReduceOp::band, dtype, Fold<BitAnd, Element>());
    visit(ReduceOp::bor, dtype, Fold<BitOr, Element>());
    visit(ReduceOp::bxor, dtype, Fold<BitXor, Element>());
  };
  integer(DType::int8, PlainElement<std::int8_t>());
  integer(DType::uint8, PlainElement<std::uint8_t>());
  integer(DType::int32, PlainElement<std::int32_t>());
  integer(DType::uint32, PlainElement<std::uint32_t>());
  integer(DType::int64, PlainElement<std::int64_t>());
  integer(DType::uint64, PlainElement<std::uint64_t>());
  arithmetic(DType::float16, Float16Element());
  arithmetic(DType::bfloat16, Bfloat16Element());
  arithmetic(DType::float8_e4m3fn, Float8E4m3fnElement());
  arithmetic(DType::float8_e5m2, Float8E5m2Element());
  arithmetic(DType::float32, PlainElement<float>());
  arithmetic(DType::float64, PlainElement<double>());
}

}  // namespace col::test
