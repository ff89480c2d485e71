// Kernels that cannot be loaded or started, and memory that is not there for them.
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"

using col::ErrorCode;
using col::ReduceOp;
using col::test::expect;
using col::test::GpuArray;
using col::test::Outcome;
using col::test::run_gpu_ranks;

namespace {

void check_no_fold_left() {
  for (const char* what : {"contexts", "streams", "events", "device_memory", "modules"}) {
    INFO(what);
    CHECK(fake_gpu_alive(what) == 0);
  }
}

// Each rank of two has the fault when the group is made: the calls that need kernels fail and say why, the others do
// not.
void check_unloaded(const char* entry_point, CUresult fault, ErrorCode expected, const std::string& says) {
  fake_gpu_reset();
  fake_gpu_fail(entry_point, fault, 1);
  fake_gpu_fail(entry_point, fault, 2);
  const auto outcomes = run_gpu_ranks(2, [&](col::Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, gpu + 1));
    for (int i = 0; i < 2; ++i) {
      try {
        group.allreduce(data, {.op = ReduceOp::bxor});
        expect(false, "it went well");
      } catch (const col::Error& error) {
        expect(error.code() == expected, error.what());
        expect(error.message().find(says) != std::string::npos, error.what());
        expect(error.message().find("allreduce: ") == 0, error.what());
        expect(error.group() == "g" && error.rank() == gpu, error.what());
      }
    }
    group.allreduce(data);
    expect(data.values() == std::vector<std::int32_t>(8, 3), "the sum");
  });
  fake_gpu_reset();
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  check_no_fold_left();
}

// On one rank of two: every rank gets the error.
void check_broken(const char* entry_point, CUresult fault, ErrorCode expected, const std::string& says) {
  fake_gpu_reset();
  const auto outcomes = run_gpu_ranks(2, [&](col::Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, 1));
    group.barrier();
    if (gpu == 1) fake_gpu_fail(entry_point, fault, 1);
    group.scan(data, data);
    group.barrier();
  });
  fake_gpu_reset();
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == expected);
    CHECK(outcome.text.find(says) != std::string::npos);
    CHECK(outcome.seconds < 15);
  }
  check_no_fold_left();
}

}  // namespace

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
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, 1));
    group.barrier();
    if (gpu == 1) fake_gpu_break_context(1, CUDA_ERROR_ECC_UNCORRECTABLE);
    group.exscan(data, data);
    group.barrier();
  });
  fake_gpu_reset();
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::io);
    CHECK(outcome.text.find("CUDA_ERROR_ECC_UNCORRECTABLE") != std::string::npos);
    CHECK(outcome.seconds < 15);
  }
}

TEST_CASE("gpu fold faults: the second call of a kind allocates nothing, and loads nothing") {
  fake_gpu_reset();
  const auto outcomes = run_gpu_ranks(2, [](col::Group& group, int gpu) {
    const GpuArray<std::int32_t> data(gpu, std::vector<std::int32_t>(8, 1));
    const auto calls = [] {
      return fake_gpu_calls("cuMemAlloc_v2") + fake_gpu_calls("cuEventCreate") + fake_gpu_calls("cuModuleLoadData") +
             fake_gpu_calls("cuModuleGetFunction");
    };
    group.scan(data, data);
    group.barrier();
    const std::size_t before = calls();
    group.barrier();  // nobody is past `before` until all have taken it
    for (int i = 0; i < 10; ++i) group.scan(data, data);
    group.barrier();
    expect(calls() == before, "it allocates, or loads");
    group.barrier();
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  check_no_fold_left();
}
