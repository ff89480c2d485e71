// What programs put in streams of their own.
#pragma once

#include <cuda.h>

#include <chrono>

#include "conformance/gpu/gpu_ranks.hpp"

namespace col::test {

inline CUdeviceptr address_in(const void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

inline void copy_in(CUstream stream, ConstTensorView from, TensorView to) {
  cuda().check(cuda().MemcpyAsync(address_in(to.data), address_in(from.data), from.bytes(), stream), "copy");
}

// Until everything in it has ended.
inline void await_stream(CUstream stream) {
  nccl_backend::GpuEvent ended(cuda());
  ended.record(stream);
  const Deadline deadline = Deadline::after(std::chrono::seconds(20));
  while (!ended.done()) expect(!deadline.expired(), "a stream does not end");
}

// What `second` gets from now on comes after what `first` holds.
inline void join(CUstream first, CUstream second) {
  nccl_backend::GpuEvent passed(cuda());
  passed.record(first);
  passed.hold_up(second);
}

}  // namespace col::test
