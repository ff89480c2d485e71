// The kernels of libcol_nccl.so for the stand-in of the driver, which loads this library by FAKE_GPU_KERNELS. They run
// the loop of the kernels, thread by thread.
#include <fmt/format.h>

#include "backend/nccl/kernels/compare.hpp"
#include "support/fake_gpu/kernels.hpp"
#include "support/fake_kernels/every_fold.hpp"

namespace {

using col::nccl_backend::Compare;
using col::nccl_backend::CompareArguments;
using col::nccl_backend::CompareResult;
using col::nccl_backend::FoldArguments;
using col::nccl_backend::Results;

template <class Loop, class Arguments>
void run_threads(fake_gpu::Extent grid, fake_gpu::Extent block, const Arguments& arguments) {
  const std::size_t threads = static_cast<std::size_t>(grid.x) * block.x;
  for (std::size_t thread = 0; thread < threads; ++thread) Loop::run(arguments, thread, threads);
}

template <class Loop>
void fold(fake_gpu::Extent grid, fake_gpu::Extent block, void** arguments) {
  auto a = fake_gpu::argument<FoldArguments>(arguments, 0);
  const std::size_t bytes = a.count * Loop::kElementBytes;
  const std::size_t last = a.blocks - 1;
  a.in = fake_gpu::host_view<std::byte>(a.in, last * a.in_stride + bytes);
  a.out = fake_gpu::host_view<std::byte>(a.out, (a.results == Results::whole ? 0 : last * a.out_stride) + bytes);
  if (a.factors != nullptr) a.factors = fake_gpu::host_view<std::uint64_t>(a.factors, a.blocks);
  run_threads<Loop>(grid, block, a);
}

template <class Loop>
void compare(fake_gpu::Extent grid, fake_gpu::Extent block, void** arguments) {
  auto a = fake_gpu::argument<CompareArguments>(arguments, 0);
  a.left = fake_gpu::host_view<std::byte>(a.left, a.count * Loop::kBytes);
  a.right = fake_gpu::host_view<std::byte>(a.right, a.count * Loop::kBytes);
  a.result = fake_gpu::host_view<CompareResult>(a.result, 1);
  run_threads<Loop>(grid, block, a);
}

template <std::size_t kBytes>
void register_comparison() {
  fake_gpu::register_kernel<CompareArguments>(fmt::format("col_compare_{}", kBytes).c_str(), compare<Compare<kBytes>>);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void fake_gpu_kernels() {
  col::test::for_each_fold([]<class Loop>(col::ReduceOp op, col::DType dtype, Loop) {
    const std::string name = fmt::format("col_fold_{}_{}", to_string(op), to_string(dtype));
    fake_gpu::register_kernel<FoldArguments>(name.c_str(), fold<Loop>);
  });
  register_comparison<1>();
  register_comparison<2>();
  register_comparison<4>();
  register_comparison<8>();
}
