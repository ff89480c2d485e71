// Tensors of any type from doubles, and what a reduction of them is, in the most obvious way.
#pragma once

#include <cstddef>
#include <vector>

#include <col/types.hpp>

namespace col::test {

using Values = std::vector<double>;
using Bytes = std::vector<std::byte>;

// What rank `rank` gives in the call `number`: whole numbers from 0 to 3, different on every rank, small enough that
// sums and products over 8 ranks are exact in every type that does not wrap.
Values input_values(int rank, std::size_t number, std::size_t count);

Bytes pack(DType dtype, const Values& values);  // integers wrap, floats round to nearest even
inline Bytes filler(DType dtype, std::size_t count) {
  return Bytes(count * size_of(dtype), std::byte{0xa5});
}

inline ConstTensorView view_of(const Bytes& bytes, DType dtype) {
  return {bytes.data(), bytes.size() / size_of(dtype), dtype};
}
inline TensorView view_of(Bytes& bytes, DType dtype) {
  return {bytes.data(), bytes.size() / size_of(dtype), dtype};
}

// The operators under test: all built-in ones, premul_sum (by 2), a commutative and a non-commutative function. The
// last is f(a, b) = a; its result is rank 0's input, in rank order only.
std::vector<Op> all_ops();
bool applies_to(const Op& op, DType dtype);
Values reduced(const Op& op, DType dtype, const std::vector<Values>& inputs);

}  // namespace col::test
