// The kernels on one GPU: loaded once, and started by operator and type.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <col/error.hpp>
#include <col/types.hpp>

#include "backend/nccl/cuda_driver.hpp"
#include "backend/nccl/kernels/arguments.hpp"

namespace col::nccl_backend {

// Made, used and destroyed with one context current, by one thread at a time.
class Kernels {
 public:
  // Loads all of them, which may wait for the GPU: before a group's first call, that waits for no peer. Where it fails,
  // require() says why, since most calls need no kernel.
  explicit Kernels(const CudaDriver& cuda);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Whether this build has kernels: it was made with nvcc.
  static bool are_built() noexcept;
  // What the image must have.
  static std::vector<std::string> names();

  // Throws what has kept them from being loaded.
  void require() const;
  // Starts the kernel in `stream`; avg is a sum with a divisor. Requires: require() does not throw, the operator is
  // defined on the type. Throws what CudaDriver::check() throws.
  void fold(ReduceOp op, DType dtype, const FoldArguments& arguments, CUstream stream) const;

 private:
  const CudaDriver& cuda_;
  CUmodule module_ = nullptr;
  std::array<std::array<CUfunction, kDTypeCount>, kReduceOpCount> functions_{};  // null: not defined
  std::optional<Error> why_not_;
};

}  // namespace col::nccl_backend
