#include "backend/nccl/kernels.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backend/nccl/kernels/image.hpp"

namespace col::nccl_backend {
namespace {

constexpr std::size_t kMostBlocks = 2048;  // as many as the largest GPUs run at a time; each thread then does more

// Calls visit(op, dtype, name) for each of them.
template <class Visit>
void for_each_kernel(Visit visit) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::band,
                            ReduceOp::bor, ReduceOp::bxor}) {
    const bool is_bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
    for (const DType dtype : {DType::int8, DType::uint8, DType::int32, DType::uint32, DType::int64, DType::uint64})
      visit(op, dtype, fmt::format("col_fold_{}_{}", to_string(op), to_string(dtype)));
    if (is_bitwise) continue;
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64})
      visit(op, dtype, fmt::format("col_fold_{}_{}", to_string(op), to_string(dtype)));
  }
}

}  // namespace

Kernels::Kernels(const CudaDriver& cuda) : cuda_(cuda) {
  if (!are_built()) {
    why_not_ = Error(ErrorCode::unavailable, "this build of col has no kernels; build it where nvcc is");
    return;
  }
  try {
    cuda_.check(cuda_.ModuleLoadData(&module_, kKernelImage.data()), "cannot load the kernels of col");
    // All of them now: the driver loads a kernel when it is first asked for, and may wait for the GPU to do so.
    for_each_kernel([this](ReduceOp op, DType dtype, const std::string& name) {
      CUfunction& function = functions_[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)];
      cuda_.check(cuda_.ModuleGetFunction(&function, module_, name.c_str()),
                  fmt::format("cannot load the kernel {} of col", name));
    });
  } catch (const Error& error) {
    why_not_ = error;
  }
}

Kernels::~Kernels() {
  if (module_ != nullptr) cuda_.ModuleUnload(module_);
}

bool Kernels::are_built() noexcept {
  return !kKernelImage.empty();
}

std::vector<std::string> Kernels::names() {
  std::vector<std::string> names;
  for_each_kernel([&names](ReduceOp, DType, const std::string& name) { names.push_back(name); });
  return names;
}

void Kernels::require() const {
  if (why_not_) throw *why_not_;
}

void Kernels::fold(ReduceOp op, DType dtype, const FoldArguments& arguments, CUstream stream) const {
  if (op == ReduceOp::avg) op = ReduceOp::sum;
  const auto blocks =
      static_cast<unsigned>(std::min((arguments.count + kThreadsOfBlock - 1) / kThreadsOfBlock, kMostBlocks));
  FoldArguments copy = arguments;
  void* parameters[] = {&copy};
  cuda_.check(cuda_.LaunchKernel(functions_[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)], blocks, 1,
                                 1, kThreadsOfBlock, 1, 1, 0, stream, parameters, nullptr),
              "cannot start a kernel of col");
}

}  // namespace col::nccl_backend
