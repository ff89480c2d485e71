// The arithmetic of NCCL's operators, with its habits: sums of narrow floats round at every step, minimum and maximum
// pass over a NaN, averages of integers are cut off, averages of floats scale before they add.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <vector>

namespace fake_nccl {

struct Reduction {
  enum class Kind { sum, product, max, min, average, scaled_sum };
  Kind kind;
  uint64_t scale = 0;              // scaled_sum: the bytes of a number of the data's type…
  const void* scale_at = nullptr;  // …or where they are when the operation runs
};

size_t bytes_of(ncclDataType_t type);
// Whether a rank multiplies its own input before it is combined with those of others.
bool scales(ncclDataType_t type, const Reduction& reduction);
// What it then gives, of `ranks` ranks: each has a scale of its own.
std::vector<char> scaled(ncclDataType_t type, const Reduction& reduction, size_t ranks, const char* input,
                         size_t count);
// Combines `count` elements of each input, in the order of the inputs. The output may be one of them.
void reduce(ncclDataType_t type, const Reduction& reduction, const std::vector<const char*>& inputs, char* output,
            size_t count);

}  // namespace fake_nccl
