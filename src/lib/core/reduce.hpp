// Element-wise reduction and conversion on host memory.
#pragma once

#include <cstddef>

#include <col/types.hpp>

namespace col::core {

// result[i] = left[i] op right[i]. `result` may be exactly `left`, `right` or both, and overlaps them in no other way;
// no pointer needs to be aligned. 16-bit floats are computed in float and rounded once; integers wrap; min and max
// propagate NaN, and take -0 for less than +0; avg acts as sum here (finish_average divides), and so does premul_sum
// (premultiply multiplies). A count of zero touches nothing and calls no user function. Requires: is_reducible(op,
// dtype); throws internal otherwise.
void reduce(const Op& op, DType dtype, const void* left, const void* right, void* result, std::size_t count);

// Whether `op` is defined on `dtype` (the bitwise operators are on integers only; a user's function on every type).
bool is_reducible(const Op& op, DType dtype) noexcept;

// The type that sums of `dtype` are kept in until the one rounding at the end: float32 for 16-bit floats, else dtype.
DType accumulation_type(DType dtype) noexcept;

// Converts between a 16-bit float type and float32 (round to nearest even, NaN kept); a plain copy when the types are
// equal. Throws internal for any other pair. The arrays do not overlap; they may be the same when the types are equal.
void convert(DType from, const void* in, DType to, void* out, std::size_t count);

// What each rank does to its input before a premul_sum: inout[i] *= scale, in `dtype` (16-bit floats: in float, rounded
// once). Requires: for integer types is_whole(scale), which callers check before data moves; throws internal otherwise.
void premultiply(double scale, DType dtype, void* inout, std::size_t count);

// A finite number without a fraction: what an integer type can be multiplied by (the product wraps).
bool is_whole(double scale) noexcept;

// What ends an average: inout[i] /= divisor. Integers round toward zero. Requires: divisor > 0.
void finish_average(std::size_t divisor, DType dtype, void* inout, std::size_t count);

}  // namespace col::core
