// Which GPU a buffer is on. The driver is asked once in full, and then only whether the memory is still the same.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "backend/nccl/cuda_driver.hpp"

namespace col::nccl_backend {

// The driver numbers every allocation and never gives a number twice. So memory that was freed, and maybe given out
// again at the same address, has another number, or none. A buffer that lies in several allocations, mapped one beside
// the other, is asked for in full each time: one of them may be gone while its first is not.
//
// One thread at a time may use it.
class KnownMemory {
 public:
  // As device_of(). Calls the driver once for a buffer that was asked for before.
  std::optional<int> device_of(const void* memory, std::size_t bytes, const CudaDriver& cuda);

 private:
  struct Buffer {
    const void* memory = nullptr;
    std::size_t bytes = 0;
    unsigned long long number = 0;  // of its allocation
    int device = 0;
  };
  static constexpr std::size_t kMost = 64;  // a power of two

  std::array<Buffer, kMost> known_{};  // each has one place
};

}  // namespace col::nccl_backend
