#include "backend/nccl/kernels.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include <fmt/format.h>

#include "backend/nccl/device.hpp"

namespace col::nccl_backend {
namespace {

constexpr std::size_t kMostBlocks = 2048;  // as many as the largest GPUs run at a time; each thread then does more

// Of the kernels in the image.
constexpr bool has_folds(DType dtype) {
  return dtype <= DType::float64 || row_of(dtype).is_narrow();
}

// Calls visit(op, dtype, name) for each that folds.
template <class Visit>
void for_each_fold(Visit visit) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::band,
                            ReduceOp::bor, ReduceOp::bxor}) {
    const bool is_bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (has_folds(dtype) && (row_of(dtype).is_integer() || !is_bitwise))
        visit(op, dtype, fmt::format("col_fold_{}_{}", to_string(op), to_string(dtype)));
    }
  }
}

std::string name_of_comparison(std::size_t logarithm) {
  return fmt::format("col_compare_{}", 1U << logarithm);
}

}  // namespace

Kernels::Kernels(const CudaDriver& cuda) : cuda_(cuda) {
  if (!are_built()) {
    why_not_ = Error(ErrorCode::unavailable, "this build of col has no kernels; build it where nvcc is");
    return;
  }
  const BesideCaptures beside(cuda_);
  try {
    if (const std::string problem = why_not_with(cuda_.version); !problem.empty())
      throw Error(ErrorCode::unavailable, problem);
    cuda_.check(cuda_.ModuleLoadData(&module_, kKernelImage.data()), "cannot load the kernels of col");
    // All of them now: the driver loads a kernel when it is first asked for, and may wait for the GPU to do so.
    for_each_fold([this](ReduceOp op, DType dtype, const std::string& name) {
      load(functions_[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)], name);
    });
    for (std::size_t i = 0; i < comparisons_.size(); ++i) load(comparisons_[i], name_of_comparison(i));
  } catch (const Error& error) {
    why_not_ = error;
  }
}

std::string Kernels::why_not_with(int driver) {
  // The machine code and the assembly of one generation are unknown to the drivers of those before.
  if (driver / 1000 >= kKernelToolkit / 1000) return "";
  return fmt::format(
      "col's kernels were compiled by CUDA {}.{}, and need a driver for CUDA {}.0 or newer; this one is for {}.{}: "
      "update it",
      kKernelToolkit / 1000, kKernelToolkit % 1000 / 10, kKernelToolkit / 1000, driver / 1000, driver % 1000 / 10);
}

bool Kernels::have(const Op& op, DType dtype) noexcept {
  return op.kind() != Op::Kind::user && has_folds(dtype);
}

void Kernels::load(CUfunction& function, const std::string& name) {
  cuda_.check(cuda_.ModuleGetFunction(&function, module_, name.c_str()),
              fmt::format("cannot load the kernel {} of col", name));
}

Kernels::~Kernels() {
  if (module_ == nullptr) return;
  const BesideCaptures beside(cuda_);
  cuda_.ModuleUnload(module_);
}

bool Kernels::are_built() noexcept {
  return !kKernelImage.empty();
}

std::vector<std::string> Kernels::names() {
  std::vector<std::string> names;
  for_each_fold([&names](ReduceOp, DType, const std::string& name) { names.push_back(name); });
  for (std::size_t i = 0; i < std::tuple_size_v<decltype(comparisons_)>; ++i) names.push_back(name_of_comparison(i));
  return names;
}

void Kernels::require() const {
  if (why_not_) throw *why_not_;
}

void Kernels::fold(ReduceOp op, DType dtype, const FoldArguments& arguments, CUstream stream) const {
  if (op == ReduceOp::avg) op = ReduceOp::sum;
  FoldArguments copy = arguments;
  launch(functions_[static_cast<std::size_t>(op)][static_cast<std::size_t>(dtype)], copy.count, &copy, stream);
}

void Kernels::compare(std::size_t element_bytes, const CompareArguments& arguments, CUstream stream) const {
  CompareArguments copy = arguments;
  launch(comparisons_[static_cast<std::size_t>(std::countr_zero(element_bytes))], copy.count, &copy, stream);
}

void Kernels::launch(CUfunction function, std::size_t count, void* arguments, CUstream stream) const {
  const auto blocks = static_cast<unsigned>(std::min((count + kThreadsOfBlock - 1) / kThreadsOfBlock, kMostBlocks));
  void* parameters[] = {arguments};
  cuda_.check(cuda_.LaunchKernel(function, blocks, 1, 1, kThreadsOfBlock, 1, 1, 0, stream, parameters, nullptr),
              "cannot start a kernel of col");
}

}  // namespace col::nccl_backend
