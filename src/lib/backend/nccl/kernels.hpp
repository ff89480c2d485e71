// The kernels on one GPU: loaded once, and started by operator and type, or by what they compare.
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
  bool are_loaded() const noexcept { return !why_not_; }
  // Starts the kernel in `stream`; avg is a sum with a divisor. Requires: require() does not throw, the operator is
  // defined on the type. Throws what CudaDriver::check() throws.
  void fold(ReduceOp op, DType dtype, const FoldArguments& arguments, CUstream stream) const;
  // The same for a comparison of elements of 1, 2, 4 or 8 bytes. Requires: there is one at least.
  void compare(std::size_t element_bytes, const CompareArguments& arguments, CUstream stream) const;

 private:
  void load(CUfunction& function, const std::string& name);
  // One thread for each element, as far as a GPU runs them at a time.
  void launch(CUfunction function, std::size_t count, void* arguments, CUstream stream) const;

  const CudaDriver& cuda_;
  CUmodule module_ = nullptr;
  std::array<std::array<CUfunction, kDTypeCount>, kReduceOpCount> functions_{};  // null: not defined
  std::array<CUfunction, 4> comparisons_{};                                      // by the logarithm of the bytes
  std::optional<Error> why_not_;
};

}  // namespace col::nccl_backend
