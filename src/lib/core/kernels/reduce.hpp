// Element-wise reduction and conversion on host memory.
#pragma once

#include <cstddef>

#include <col/types.hpp>

#include "core/export/module_export.hpp"

namespace col::core {

// result[i] = left[i] op right[i]. `result` may be exactly `left`, `right` or both, and overlaps them in no other way.
// No pointer needs to be aligned. Narrow floats are computed in float and rounded once. Integers wrap. min and max
// propagate NaN, and treat -0 as less than +0. avg acts as sum here (finish_average divides), and so does premul_sum
// (premultiply multiplies). A count of zero touches nothing and calls no user function. Requires: is_reducible(op,
// dtype); throws internal otherwise.
COL_MODULE_EXPORT void reduce(const Op& op, DType dtype, const void* left, const void* right, void* result,
                              std::size_t count);

// Whether `op` is defined on `dtype`. The bitwise operators are defined on integers only, a user's function on every
// type.
bool is_reducible(const Op& op, DType dtype) noexcept;

// The type of sums of `dtype` before the one rounding at the end: float32 for narrow floats, otherwise dtype.
COL_MODULE_EXPORT DType accumulation_type(DType dtype) noexcept;

// Converts between a narrow float type and float32 (round to nearest even, NaN kept); a plain copy when the types are
// equal. Throws internal for any other pair. The arrays do not overlap; they may be the same when the types are equal.
COL_MODULE_EXPORT void convert(DType from, const void* in, DType to, void* out, std::size_t count);

// The first step of each rank in a premul_sum: inout[i] *= scale, in `dtype` (narrow floats: in float, rounded once).
// Requires: for integer types is_whole(scale), which callers check before data moves; throws internal otherwise.
COL_MODULE_EXPORT void premultiply(double scale, DType dtype, void* inout, std::size_t count);

// Whether `scale` is a finite number without a fraction. An integer type can be multiplied by such a number (the
// product wraps).
bool is_whole(double scale) noexcept;

// The last step of an average: inout[i] /= divisor. Integers round toward zero. Requires: divisor > 0.
COL_MODULE_EXPORT void finish_average(std::size_t divisor, DType dtype, void* inout, std::size_t count);

}  // namespace col::core
