// What the reductions of the host give, one contribution after the other.
#pragma once

#include <cstddef>
#include <vector>

#include <col/types.hpp>

#include "core/kernels/mixed.hpp"
#include "core/kernels/reduce.hpp"

namespace col::test {

using Bytes = std::vector<std::byte>;

// The results over the first, the first two, … of `inputs`: widened, scaled (premul_sum), combined in that order,
// finished. `ops`: by input. A user's function works on the type itself.
inline std::vector<Bytes> host_folds(const std::vector<Op>& ops, DType dtype, std::size_t count,
                                     const std::vector<const std::byte*>& inputs) {
  const DType wide = ops.front().kind() == Op::Kind::user ? dtype : core::accumulation_type(dtype);
  const bool is_wide = wide != dtype;
  std::vector<Bytes> results;
  Bytes total(count * size_of(wide)), next(total.size());
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    if (ops[r].kind() == Op::Kind::premul_sum)
      core::premultiply_to(ops[r].scale(), dtype, inputs[r], true, next.data(), count);
    else if (is_wide)
      core::widen(dtype, inputs[r], next.data(), count);
    else
      next.assign(inputs[r], inputs[r] + next.size());
    if (r == 0)
      total = next;
    else
      core::reduce_mixed(ops[r], dtype, is_wide, total.data(), is_wide, next.data(), is_wide, total.data(), count);
    Bytes& result = results.emplace_back(count * size_of(dtype));
    core::finish(ops[r], inputs.size(), dtype, is_wide, total.data(), result.data(), count);
  }
  return results;
}

}  // namespace col::test
