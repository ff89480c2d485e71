// Calls that differ between ranks, and that NCCL brings to an end all the same: when the host is told.
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"

namespace col::test {
namespace {

using nccl_backend::GpuStream;
using Array = GpuArray<std::int32_t>;

// A call of three ranks, of which rank 1 calls something else; no host waits for it.
struct DifferingCall {
  std::string says;
  Work (*call)(Group& group, const Array& data, bool is_odd);
};

const std::vector<DifferingCall>& differing_calls() {
  static const std::vector<DifferingCall> kAll{
      {"rank 1 called iallreduce of 8 int32, max",
       [](Group& group, const Array& data, bool is_odd) {
         return group.iallreduce(data, data, {.op = is_odd ? ReduceOp::max : ReduceOp::sum});
       }},
      {"rank 1 called iallreduce of 7 int32",
       [](Group& group, const Array& data, bool is_odd) {
         const TensorView part = data.part(0, is_odd ? 7 : 8);
         return group.iallreduce(part, part);
       }},
      {"rank 1 called ibroadcast of 8 int32, root 1",
       [](Group& group, const Array& data, bool is_odd) { return group.ibroadcast(data, {.root = is_odd ? 1 : 0}); }},
  };
  return kAll;
}

void check_named(void (*wait)(Group& group, const Array& data)) {
  for (const DifferingCall& differing : differing_calls()) {
    INFO(differing.says);
    const auto outcomes = run_gpu_ranks(3, [&](Group& group, int gpu) {
      const GpuStream reader(cuda());
      const Array data(gpu, std::vector<std::int32_t>(8, 1));
      group.allreduce(data);
      differing.call(group, data, gpu == 1).wait(Stream{reader.get()});
      wait(group, data);
    });
    check_all(outcomes, {.code = ErrorCode::mismatch, .rank = 1, .says = differing.says, .promptly = true});
  }
}

GPU_TEST_CASE("gpu differing calls: the next wait of the host names the rank, whatever it waits for", "[gpu]") {
  check_named([](Group& group, const Array&) { group.barrier(); });
  check_named([](Group& group, const Array& data) { group.iallreduce(data, data).wait(); });
  check_named([](Group& group, const Array& data) {
    Work work = group.iallreduce(data, data);
    expect_soon("the call does not end", [&] { return work.test(); });
  });
}

GPU_TEST_CASE("gpu differing calls: the end of the group is a wait, too", "[gpu]") {
  check_named([](Group&, const Array&) { Context::current().destroy_group("g"); });
}

GPU_TEST_CASE("gpu differing calls: the two sides of a message are told that they differ", "[gpu]") {
  const auto outcomes = run_gpu_ranks(2, [](Group& group, int gpu) {
    const Array data(gpu, std::vector<std::int32_t>(8, 1));
    group.sendrecv(data, 1 - gpu, data.part(0, 0), 1 - gpu);
  });
  check_all(outcomes, {.code = ErrorCode::mismatch, .says = "message of 8 int32", .promptly = true});
  const auto others = run_gpu_ranks(2, [](Group& group, int gpu) {
    const Array data(gpu, std::vector<std::int32_t>(8, 1));
    if (gpu == 0)
      group.send(data, 1);
    else
      group.recv(data.part(0, 7), 0);
    group.barrier();
  });
  check_all(others, {.code = ErrorCode::mismatch, .says = "message of ", .promptly = true});
}

GPU_TEST_CASE("gpu differing calls: calls that match are left alone, however far ranks are apart", "[gpu]") {
  check_good(run_gpu_ranks(3, [](Group& group, int gpu) {
    const Array data(gpu, std::vector<std::int32_t>(8, 1)), other(gpu, std::vector<std::int32_t>(8, 1));
    for (int i = 0; i < 100; ++i) (void)group.ibroadcast(data);  // whose root may be far ahead
    for (int i = 0; i < 100; ++i) {
      Work sent = group.isend(data, (gpu + 1) % 3), received = group.irecv(other, (gpu + 2) % 3);
      if (i % 7 == gpu) sent.wait();
      if (i % 7 == 3) received.wait();
    }
    group.barrier();
  }));
}

}  // namespace
}  // namespace col::test
