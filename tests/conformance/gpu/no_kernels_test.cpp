// A build without nvcc: what needs a kernel is unavailable, and the rest goes on.
#include <cstdint>
#include <functional>
#include <vector>

#include <col/channel.hpp>

#include "conformance/gpu/gpu_ranks.hpp"

namespace col::test {
namespace {

GPU_TEST_CASE("gpu: without kernels, what needs them is unavailable", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, 1)), out(gpu, std::size_t{8});
    const auto is_unavailable = [](const std::function<void()>& call) {
      try {
        call();
      } catch (const Error& error) {
        return error.code() == ErrorCode::unavailable;
      }
      return false;
    };
    expect(is_unavailable([&] { group.allreduce(data, {.op = ReduceOp::bxor}); }), "bxor");
    expect(is_unavailable([&] { group.allreduce(data, {.deterministic = true}); }), "a deterministic call");
    expect(is_unavailable([&] { group.scan(data, out); }), "scan");
    expect(is_unavailable([&] { (void)group.iexscan(data, out); }), "iexscan");
    const void* const memory = ConstTensorView(data).data;
    expect(col::find_backend("nccl")->device_memory().compare(memory, memory, 8, 4, gpu, {}) == nullptr, "compare");
    group.allreduce(data);
    expect(data.values() == std::vector<std::int32_t>(8, 2), "the sum");
  }));
}

}  // namespace
}  // namespace col::test
