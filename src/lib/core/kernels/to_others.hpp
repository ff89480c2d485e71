// Writes what other processors read next, in memory that they have read before: slots, and outputs of other ranks.
//
// Such lines are in the caches of the readers. A vector store to a part of one waits until the line is here. Whole
// lines are written without their old content, which took a quarter of the time on an AMD EPYC whose ranks shared no
// core (docs/measurements.md).
#pragma once

#include <cstddef>
#include <span>

#include <col/types.hpp>

#include "core/kernels/fold.hpp"

namespace col::core {

// From here on, writing whole lines gains more than its start costs. The C library has about the same bound.
inline constexpr std::size_t kLeastWhole = 4096;

// Copies, past the caches if `stores` says so. The arrays do not overlap; no alignment is needed.
void copy_to_others(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores = Stores::cached) noexcept;

// As fold(), and the result goes to `theirs`, too. `own` may have no data. Either may be an input, as the targets of
// fold() may. Blocks of the result are made in `own`, or in the first cache where `own` has no data or streams, and
// copied from there.
//
// `inputs` may be changed: the pointers are not those of the inputs afterwards.
void fold_to_others(const Op& op, DType dtype, bool wide, std::span<const std::byte*> inputs, std::size_t ranks,
                    FoldTarget own, FoldTarget theirs, std::size_t count);

}  // namespace col::core
