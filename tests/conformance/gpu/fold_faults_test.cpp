// Kernels that cannot be loaded or started, and memory that is not there for them.
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

void check_no_fold_left() {
  check_none_alive({"contexts", "streams", "events", "device_memory", "modules"}, {});
}

// Each rank of two has the fault when the group is made: the calls that need kernels fail and say why, the others do
// not.
void check_unloaded(const char* entry_point, CUresult fault, ErrorCode expected, const std::string& says) {
  fake_gpu_reset();
  fake_gpu_fail(entry_point, fault, 1);
  fake_gpu_fail(entry_point, fault, 2);
  check_good(run_with_faults(2, [&](Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, gpu + 1));
    for (int i = 0; i < 2; ++i) {
      const Error error = expect_error({.code = expected, .rank = gpu, .says = says},
                                       [&] { group.allreduce(data, {.op = ReduceOp::bxor}); });
      expect(error.message().starts_with("allreduce: ") && error.group() == "g", error.what());
    }
    group.allreduce(data);
    expect(data.values() == std::vector<std::int32_t>(8, 3), "the sum");
  }));
  check_no_fold_left();
}

// On one rank of two: every rank gets the error.
void check_broken(const char* entry_point, CUresult fault, ErrorCode expected, const std::string& says) {
  const auto outcomes = run_with_faults(2, [&](Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, 1));
    group.barrier();
    if (gpu == 1) fake_gpu_fail(entry_point, fault, 1);
    group.scan(data, data);
    group.barrier();
  });
  check_all(outcomes, {.code = expected, .says = says, .promptly = true});
  check_no_fold_left();
}

TEST_CASE("gpu fold faults: a GPU that has no code in the image is named when a kernel is needed, and not before") {
  check_unloaded("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU, ErrorCode::unavailable,
                 "cannot load the kernels of col: CUDA_ERROR_NO_BINARY_FOR_GPU");
  check_unloaded("cuModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::resource, "cannot load the kernels of col");
  check_unloaded("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND, ErrorCode::io,
                 "cannot load the kernel col_fold_sum_int8");
}

TEST_CASE("gpu fold faults: a kernel that does not start, or has no memory, ends the call on every rank") {
  check_broken("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, ErrorCode::io, "cannot start a kernel of col");
  check_broken("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::resource, "cannot allocate memory of the GPU");
}

TEST_CASE("gpu fold faults: a device that is lost ends the call on every rank") {
  fake_gpu_reset();
  const auto outcomes = run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, 1));
    group.barrier();
    if (gpu == 1) fake_gpu_break_context(1, CUDA_ERROR_ECC_UNCORRECTABLE);
    group.exscan(data, data);
    group.barrier();
  });
  fake_gpu_reset();
  check_all(outcomes, {.code = ErrorCode::io, .says = "CUDA_ERROR_ECC_UNCORRECTABLE", .promptly = true});
}

TEST_CASE("gpu fold faults: the second call of a kind allocates nothing, and loads nothing") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, 1));
    expect_made_once(group, {"cuMemAlloc_v2", "cuEventCreate", "cuModuleLoadData", "cuModuleGetFunction"}, {},
                     [&] { group.scan(data, data); });
  }));
  check_no_fold_left();
}

}  // namespace
}  // namespace col::test
