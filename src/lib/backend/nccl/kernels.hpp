// The kernels on one GPU. They are loaded once, and started by operator and type, or by what they compare.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <col/error.hpp>
#include <col/types.hpp>

#include "backend/nccl/cuda_driver.hpp"
#include "backend/nccl/kernels/arguments.hpp"

namespace col::nccl_backend {

// The kernels in the form that the driver loads: a fat binary with code for several generations of GPUs. Empty in a
// build without nvcc. kernels/embed.py makes the source file that holds it.
extern const std::span<const std::uint64_t> kKernelImage;
// The CUDA version of the nvcc that compiled them: 13000 is 13.0; 0 without one.
extern const int kKernelToolkit;

// Made, used and destroyed with one context current, by one thread at a time.
class Kernels {
 public:
  // Loads all kernels. This may wait for the GPU, so it happens before a group's first call: then it does not wait for
  // a peer. If it fails, require() says why, because most calls need no kernel.
  explicit Kernels(const CudaDriver& cuda);
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  // Whether this build has kernels, that is, was made with nvcc.
  static bool are_built() noexcept;
  // Whether there is a kernel: for integers of 16 bits, booleans, complex numbers and opaque elements there is none.
  static bool have(const Op& op, DType dtype) noexcept;
  // Why a driver for that version of CUDA cannot load them; empty if it can.
  static std::string why_not_with(int driver);
  // The names that the image must have.
  static std::vector<std::string> names();

  // Throws the error of the loading, if it failed.
  void require() const;
  bool are_loaded() const noexcept { return !why_not_; }
  // Starts the kernel in `stream`. avg is a sum with a divisor. Requires: require() does not throw, and the operator is
  // defined on the type. Throws what CudaDriver::check() throws.
  void fold(ReduceOp op, DType dtype, const FoldArguments& arguments, CUstream stream) const;
  // The same for a comparison of elements of 1, 2, 4 or 8 bytes. Requires: at least one element.
  void compare(std::size_t element_bytes, const CompareArguments& arguments, CUstream stream) const;

 private:
  void load(CUfunction& function, const std::string& name);
  // Uses one thread for each element, up to the number that a GPU runs at the same time.
  void launch(CUfunction function, std::size_t count, void* arguments, CUstream stream) const;

  const CudaDriver& cuda_;
  CUmodule module_ = nullptr;
  std::array<std::array<CUfunction, kDTypeCount>, kReduceOpCount> functions_{};  // null: not defined
  std::array<CUfunction, 4> comparisons_{};                                      // by the logarithm of the element size
  std::optional<Error> why_not_;
};

}  // namespace col::nccl_backend
