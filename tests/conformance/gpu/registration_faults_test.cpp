// Memory that others have allocated, registered with NCCL: col::RegisteredMemory.
#include <nccl.h>

#include <latch>
#include <string>
#include <utility>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "support/catch.hpp"
#include "support/outcomes.hpp"

namespace col::test {
namespace {

using Floats = GpuArray<float>;

RegisteredMemory register_array(const Floats& array, Group& group) {
  const TensorView view = array;
  return RegisteredMemory(view.data, view.bytes(), group);
}

TEST_CASE("gpu registration: NCCL knows the memory until it is released, and calls use it as before", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const Floats data(gpu, std::size_t{1000}, 1.0f), other(gpu, std::size_t{10}, 1.0f);
    RegisteredMemory registered = register_array(data, group), second = register_array(other, group);
    group.barrier();
    expect(registered && fake_nccl_alive("registrations") == 4, "two on each rank");
    group.allreduce(data);
    expect(data.values() == std::vector<float>(1000, 2.0f), "the sum");
    group.barrier();
    registered.release();
    registered.release();
    second = RegisteredMemory();
    group.barrier();
    expect(!registered && fake_nccl_alive("registrations") == 0, "none");
    group.barrier();
    {
      const RegisteredMemory scoped = register_array(data, group);
      RegisteredMemory moved = register_array(other, group);
      second = std::move(moved);
    }
    group.barrier();
    expect(second && fake_nccl_alive("registrations") == 2, "the one that was moved out");
    group.barrier();
  }));
  check_nothing_left();
}

TEST_CASE("gpu registration: one may outlive its group", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const Floats data(gpu, std::size_t{1000}, 1.0f);
    RegisteredMemory registered = register_array(data, group), kept = register_array(data, group);
    group.destroy();
    registered.release();
    expect(!registered && kept);
  }));
  check_nothing_left();
}

TEST_CASE("gpu registration: what an operation in flight uses cannot be released", "[gpu]") {
  std::latch tried(1);
  check_good(run_gpu_ranks(2, [&tried](Group& group, int gpu) {
    const Floats data(gpu, std::size_t{1000}, 1.0f);
    RegisteredMemory registered = register_array(data, group);
    group.barrier();
    if (gpu == 1) tried.wait();
    Work work = group.iallreduce(data, data);
    if (gpu == 0) {  // it cannot end without rank 1
      expect_error(ErrorCode::invalid_argument, "release: allreduce number", [&] { registered.release(); });
      tried.count_down();
    }
    work.wait();
    expect(static_cast<bool>(registered), "still there");
    registered.release();
  }));
}

TEST_CASE("gpu registration: what is no memory of the rank's GPU is refused, and breaks nothing", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const Floats own(gpu, std::size_t{8}, 1.0f), elsewhere(1 - gpu, std::size_t{8}, 1.0f);
    const GpuArray<float> host(kHost, std::size_t{8}, 1.0f);
    const TensorView view = own;
    const auto refused = [&](void* memory, std::size_t bytes, const std::string& says) {
      expect_error(ErrorCode::invalid_argument, says, [&] { const RegisteredMemory one(memory, bytes, group); });
    };
    refused(nullptr, 8, "there is no memory");
    refused(view.data, 0, "there is no memory");
    refused(TensorView(host).data, 32, "no memory of a GPU");
    refused(TensorView(elsewhere).data, 32, "the memory is on GPU");
    refused(view.data, std::size_t{1} << 40, "not to its end");
    group.allreduce(own);
    expect(own.values() == std::vector<float>(8, 2.0f), "the group is usable");
  }));
  check_good(run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    const Floats own(rank, std::size_t{8}, 1.0f);
    Group group = context.init_group({.name = "host", .rank = rank, .world_size = 2, .backend = Backend::gloo});
    expect_error(ErrorCode::unavailable, "the group's backend is gloo, which has no use for it",
                 [&] { register_array(own, group); });
    group.barrier();
  }));
}

TEST_CASE("gpu registration: a release waits for messages that NCCL is taking", "[gpu]") {
  check_good(run_with_faults(2, [](Group& group, int gpu) {
    const Floats out(gpu, std::size_t{1000}, 1.0f), in(gpu, std::size_t{1000}, 0.0f), other(gpu, std::size_t{10}, 1.0f);
    for (int i = 0; i < 20; ++i) {
      RegisteredMemory registered = register_array(other, group);
      Work sent = group.isend(out, 1 - gpu), received = group.irecv(in, 1 - gpu);
      (void)received.test();  // NCCL gets them
      registered.release();
      received.wait();
      sent.wait();
    }
    group.barrier();
    expect(fake_nccl_alive("registrations") == 0, "NCCL has taken every release");
    group.barrier();
  }));
}

TEST_CASE("gpu registration: what NCCL refuses breaks nothing", "[gpu]") {
  for (const ncclResult_t refusal : {ncclInvalidUsage, ncclInvalidArgument}) {
    check_good(run_with_faults(2, [refusal](Group& group, int gpu) {
      const Floats data(gpu, std::size_t{8}, 1.0f);
      group.barrier();
      if (gpu == 0) {
        fake_nccl_fail("ncclCommRegister", refusal, 1);
        expect_error(ErrorCode::unavailable, "cannot register memory", [&] { register_array(data, group); });
        const RegisteredMemory registered = register_array(data, group);
      }
      group.allreduce(data);
      expect(data.values() == std::vector<float>(8, 2.0f), "the group is usable");
    }));
  }
}

TEST_CASE("gpu registration: when NCCL fails to release, the group is broken with what it has said", "[gpu]") {
  const auto outcomes = run_with_faults(2, [](Group& group, int gpu) {
    const Floats data(gpu, std::size_t{8}, 1.0f);
    RegisteredMemory registered = register_array(data, group);
    group.barrier();
    if (gpu == 0) {
      fake_nccl_fail("ncclCommDeregister", ncclSystemError, 1);
      const Error error = error_of([&] { registered.release(); });
      registered.release();  // the group has ended
      expect(!registered);
      throw error;
    }
    group.barrier();
  });
  check_ending(outcomes[0], {.code = ErrorCode::io, .says = "cannot release memory"});
  check_ending(outcomes[1], {.code = ErrorCode::io, .says = "cannot release memory"});
}

TEST_CASE("gpu registration: when NCCL fails, the group is broken with what it has said", "[gpu]") {
  const auto outcomes = run_with_faults(2, [](Group& group, int gpu) {
    const Floats data(gpu, std::size_t{8}, 1.0f);
    group.barrier();
    if (gpu == 0) {
      fake_nccl_fail("ncclCommRegister", ncclSystemError, 1);
      register_array(data, group);
    } else {
      group.barrier();
    }
  });
  check_ending(outcomes[0], {.code = ErrorCode::io, .says = "cannot register memory"});
  check_ending(outcomes[1], {.code = ErrorCode::io, .says = "cannot register memory"});
}

}  // namespace
}  // namespace col::test
