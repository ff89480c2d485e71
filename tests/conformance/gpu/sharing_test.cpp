// Several ranks on one GPU: what a group gets there, by the version of NCCL and what NCCL was told. The variants of
// this test differ in both.
#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"
#include "support/fake_gpu/control.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

bool is_new() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess && version >= 23003;
}

bool is_told() {
  const char* const value = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return value != nullptr && std::string(value) == "1";
}

// Two ranks on each of two GPUs.
std::vector<Outcome> run_shared(Backend backend, const GpuBody& body) {
  return run_gpu_ranks({.count = 4, .backend = backend, .gpu = [](int rank) { return rank / 2; }}, body);
}

void check_sum(Group& group, int gpu) {
  const GpuArray<float> data(gpu, std::size_t{1000}, static_cast<float>(group.rank()));
  group.allreduce(data);
  expect(data.values() == std::vector<float>(1000, 6.0f), "the sum");
}

int most_ctas(Group& group) {
  group.barrier();
  const int most = fake_nccl_max_ctas();
  group.barrier();
  return most;
}

TEST_CASE("gpu sharing: a group that names no backend gets nccl where NCCL serves shared GPUs, and copies elsewhere",
          "[gpu]") {
  const std::string wanted = is_new() && is_told() ? "nccl" : "shm";
  check_good(run_shared(Backend::automatic, [&](Group& group, int gpu) {
    expect(group.backend() == wanted, fmt::format("backend {}", group.backend()));
    check_sum(group, gpu);
  }));
}

// Where NCCL takes parts of one GPU for one device. Elsewhere they are devices.
TEST_CASE("gpu parts: ranks on parts of one GPU share it for an older NCCL", "[gpu]") {
  const char* const parts = std::getenv("FAKE_GPU_MIG");
  if (parts == nullptr || std::string(parts) != "1" || is_new()) return;
  check_all(run_gpu_ranks({.count = 2, .backend = Backend::nccl}, [](Group&, int) {}),
            {.code = ErrorCode::unavailable, .says = "ranks 0 and 1 are on one GPU"});
  check_good(run_gpu_ranks({.count = 2, .backend = Backend::automatic},
                           [](Group& group, int) { expect(group.backend() == "shm", "NCCL would refuse them"); }));
}

TEST_CASE("gpu sharing: a group of backend nccl says what NCCL needs", "[gpu]") {
  const auto outcomes = run_shared(Backend::nccl, check_sum);
  if (is_new() && is_told()) return check_good(outcomes);
  // As NCCL tells GPUs apart.
  const std::string says = is_new() ? "(00fafafa-fafa-" : "(0000:01:00.0)";
  check_all(outcomes, {.code = ErrorCode::unavailable, .rank = 1, .says = "ranks 0 and 1 are on one GPU " + says});
  for (const Outcome& outcome : outcomes) {
    CHECK(has(outcome.text, is_new() ? "only with NCCL_MULTI_RANK_GPU_ENABLE=1" : "2.30.3 is the first"));
    CHECK(has(outcome.text, "--gpus-per-rank"));
  }
  CHECK(fake_nccl_alive("communicators") == 0);
}

TEST_CASE("gpu sharing: kernels take little of a GPU that is shared, unless NCCL_MAX_CTAS says how much", "[gpu]") {
  const bool is_set = std::getenv("NCCL_MAX_CTAS") != nullptr;
  check_good(run_gpu_ranks(
      2, [](Group& group, int) { expect(most_ctas(group) == 0, "left to NCCL where each rank has its own"); }));
  if (!is_new() || !is_told()) return;
  check_good(run_shared(Backend::nccl, [&](Group& group, int gpu) {
    expect(most_ctas(group) == (is_set ? 0 : 4), "the group's");
    const GpuArray<float> data(gpu, std::size_t{8}, 1.0f);
    const std::vector<TensorView> tensors{data};
    group.allreduce_multigpu(tensors);
    expect(data.values() == std::vector<float>(8, 4.0f), "the sum over several GPUs");
    expect(most_ctas(group) == (is_set ? 0 : 4), "and those of calls over several GPUs");
  }));
}

}  // namespace
}  // namespace col::test
