// Reductions of any type, of bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include <col/types.hpp>

#include "common/arithmetic.hpp"

namespace col::test {

using Bytes = std::vector<std::byte>;

// The results over the first, the first two, … of `inputs`. `ops`: by input.
inline std::vector<Bytes> host_folds(const std::vector<Op>& ops, DType dtype, std::size_t count,
                                     const std::vector<const std::byte*>& inputs) {
  std::vector<Bytes> results(inputs.size(), Bytes(count * size_of(dtype)));
  tools::with_element(dtype, [&]<class T>(T element) {
    for (std::size_t i = 0; i < count * inputs.size(); ++i) {
      const std::size_t at = i / inputs.size() * sizeof(T), last = i % inputs.size();
      const auto input = [&](int rank) {
        std::memcpy(&element, inputs[static_cast<std::size_t>(rank)] + at, sizeof element);
        return element;
      };
      const int size = static_cast<int>(inputs.size());
      const auto result = static_cast<T>(tools::partial_fold<T>(ops, size, 0, static_cast<int>(last) + 1, input));
      std::memcpy(results[last].data() + at, &result, sizeof result);
    }
  });
  return results;
}

}  // namespace col::test
