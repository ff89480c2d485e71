// A fold of a few elements that comes again: what fold() finds out anew each time takes longer than the fold.
#pragma once

#include <cstddef>

#include <col/types.hpp>

#include "core/kernels/kernel_table.hpp"

namespace col::core {

struct FewFold {
  // As fold(), with the result in `to`. Requires: there is a kernel, and count > 0.
  void operator()(const std::byte* const* inputs, std::size_t input_count, std::byte* to, std::size_t count) const {
    kernel({inputs, input_count, 0, {to}, {}, divisor, count});
  }

  FoldKernel kernel = nullptr;  // null: it takes more than one pass, so that fold() has to do it
  std::size_t divisor = 0;
};

// For inputs of `inputs` ranks, all of them, which are not wide. Requires: more than one. Throws as fold().
FewFold few_fold(const Op& op, DType dtype, std::size_t inputs);

}  // namespace col::core
