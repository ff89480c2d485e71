// Reductions whose partial results are wider than the elements, and the steps before and after them.
//
// Narrow floats are summed in float32 and rounded once, at the end. Until then a value is either "narrow" (of the
// user's type) or "wide" (float32). For every other type, the wide type is the user's type itself, and `wide` arguments
// have no effect.
//
// No pointer needs to be aligned. An output may be exactly an input of the same width, and overlaps it in no other way.
// Nothing is allocated. A count of zero touches nothing.
#pragma once

#include <cstddef>

#include <col/types.hpp>

namespace col::core {

// result[i] = left[i] op right[i], with the rules of reduce(). Narrow floats are computed in float32, and rounded if
// the result is narrow. Requires: is_reducible(op, user). A user's function on narrow floats works on the user's type,
// so nothing may be wide then. Throws internal otherwise.
void reduce_mixed(const Op& op, DType user, bool left_wide, const void* left, bool right_wide, const void* right,
                  bool result_wide, void* result, std::size_t count);

// The last step of a reduction over `ranks` ranks, in the user's type: avg divides by `ranks` (integers toward zero,
// narrow floats in float32 before the one rounding), every other operator rounds or copies. Requires: ranks > 0.
void finish(const Op& op, std::size_t ranks, DType user, bool from_wide, const void* from, void* to, std::size_t count);

// The first step of a premul_sum: out[i] = in[i] * scale. Narrow floats are computed in float32, and rounded if `out`
// is narrow. Requires: for integer types is_whole(scale), which callers check before data moves; throws internal
// otherwise.
void premultiply_to(double scale, DType user, const void* in, bool to_wide, void* out, std::size_t count);

// A copy from narrow to wide.
void widen(DType user, const void* in, void* out, std::size_t count);

}  // namespace col::core
