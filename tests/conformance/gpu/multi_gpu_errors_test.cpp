// Calls over several GPUs of each rank: what is said of those that are wrong, or that not all ranks make.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/multi_gpu_calls.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// Of two GPUs on each of some ranks: `call` makes the last of some calls, which not all ranks make alike. They are to
// end as wanted, and soon.
void check_difference(int ranks, Ending want, bool before, void (*call)(Group&, const IntArrays&)) {
  const auto outcomes = run_multi(ranks, 2, [&](Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    if (before) group.allreduce_multigpu(data.views());
    call(group, data);
  });
  want.promptly = true;
  check_all(outcomes, want);
}

// What wrong calls of two ranks with two GPUs each are made of.
struct Wrong {
  Wrong(Group& g, const Gpus& two) : group(g), gpus(two) {}

  Group& group;
  const Gpus& gpus;
  const IntArrays data{gpus, 8, 1}, wide{gpus, 32, 1}, other{gpus, 32, 1}, longer{gpus, 9, 1};
  const MultiArray<float> floats{gpus, std::size_t{8}, 1.0f};
  const std::vector<TensorView> good = data.views(), all = wide.views();
  std::vector<std::int32_t> host = std::vector<std::int32_t>(8, 1);
  const int first = gpus.ordinal(0), second = gpus.ordinal(1), peer = 1 - group.rank();

  void reductions();
  void gathering();
  void messages();
};

template <class Call>
void refused(const std::string& says, Call&& call, CallPlace where = CallPlace::here()) {
  expect_error(ErrorCode::invalid_argument, says, call, where);
}

void Wrong::reductions() {
  const auto reduce = [&](std::vector<TensorView> tensors) {
    return [this, tensors = std::move(tensors)] { group.allreduce_multigpu(tensors); };
  };
  refused("allreduce_multigpu: the list of tensors is empty", reduce({}));
  refused("tensor 1 is in host memory", reduce({good[0], host}));
  refused("tensor 1 holds 9 int32, tensor 0 8 int32", reduce({good[0], longer.view(1)}));
  refused("tensor 1 holds 8 float32", reduce({good[0], floats.view(1)}));
  refused(fmt::format("tensors 0 and 1 are both on GPU {}", first), reduce({good[0], all[0].slice(0, 8)}));
  refused("tensor 1 has 8 elements but a null pointer", reduce({good[0], {nullptr, 8, DType::int32, good[1].device}}));
  refused(fmt::format("should be on GPU {} is in memory of GPU {}", second, first),
          reduce({all[0], {other.view(0).data, 32, DType::int32, good[1].device}}));
  refused("no memory of a GPU", reduce({good[0], {host.data(), 8, DType::int32, good[1].device}}));
  refused("GPU 8 is not there", reduce({good[0], {good[1].data, 8, DType::int32, {Device::Type::cuda, 8}}}));
  refused("GPU -1 is not there", reduce({{good[0].data, 8, DType::int32, {Device::Type::cuda, -1}}}));

  refused("root 2 is not in the group", [&] { group.reduce_multigpu(good, {.root = 2}); });
  refused("root tensor 2 is not in the list", [&] { group.reduce_multigpu(good, {}, 2); });
  refused("root tensor -1 is not in the list", [&] { group.broadcast_multigpu(good, {}, -1); });
  refused("takes no stream", [&] { group.allreduce_multigpu(good, {.stream = {host.data()}}); });
  refused("and not 'ring'", [&] { group.allreduce_multigpu(good, {.algorithm = "ring"}); });
  refused("the options name group 'other'", [&] { group.allreduce_multigpu(good, {.group = "other"}); });
  refused("bitwise", [&] { group.allreduce_multigpu(floats.views(), {.op = ReduceOp::bxor}); });
}

void Wrong::gathering() {
  const std::vector<ConstTensorView> inputs = data.inputs();
  refused("output 0 holds 8 int32, but must hold 32 int32", [&] { group.allgather_multigpu(good, inputs); });
  refused("there are 1 outputs for 2 GPUs", [&] { group.allgather_multigpu(std::vector<TensorView>{all[0]}, inputs); });
  refused("belongs to the tensor on GPU", [&] {
    group.allgather_multigpu(std::vector<TensorView>{all[1], all[0]}, inputs);
  });
  refused("the list of tensors is empty",
          [&] { group.allgather_multigpu(std::vector<TensorView>{}, std::vector<ConstTensorView>{}); });
  refused("overlap other than in place", [&] {
    group.allgather_multigpu(all, std::vector<ConstTensorView>{all[0].slice(1, 8), all[1].slice(1, 8)});
  });
  refused("overlap other than in place", [&] {
    group.reducescatter_multigpu(std::vector<TensorView>{all[0].slice(1, 8), all[1].slice(1, 8)}, wide.inputs());
  });
  std::vector<std::vector<TensorView>> lists(2);
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t f = 0; f < 4; ++f) lists[i].push_back(all[i].slice(f * 8, 8));
  }
  auto wrong = lists;
  wrong[1].pop_back();
  refused("the list of outputs 1 has 3 tensors; 2 GPUs on each of 2 ranks make 4",
          [&] { group.allgather_multigpu(wrong, inputs); });
  wrong = lists;
  wrong[0][2] = wrong[0][1];
  refused("two outputs of GPU", [&] { group.allgather_multigpu(wrong, inputs); });
  wrong = lists;
  wrong[0][2].count = 7;
  refused("output 2 of GPU 0 holds 7 int32, but must hold 8 int32", [&] { group.allgather_multigpu(wrong, inputs); });
  refused("there are 1 lists of outputs for 2 GPUs",
          [&] { group.allgather_multigpu(std::vector<std::vector<TensorView>>{lists[0]}, inputs); });
  std::vector<std::vector<ConstTensorView>> in_lists{{all[0]}, {all[1]}};
  refused("the list of inputs 0 has 1 tensors", [&] { group.reducescatter_multigpu(good, in_lists); });
}

void Wrong::messages() {
  const auto both = [&](const std::string& part, int rank, int gpu, std::int64_t n, TensorView tensor) {
    refused(part, [&] { group.send_multigpu(tensor, rank, gpu, {}, n); });
    refused(part, [&] { group.recv_multigpu(tensor, rank, gpu, {}, n); });
  };
  both("2 is not in the group", 2, 0, 0, good[0]);
  both("-1 is not in the group", -1, 0, 0, good[0]);
  both("this rank itself; copy from GPU to GPU", group.rank(), second, 0, good[0]);
  both("this rank itself, and the GPU the tensor's own", group.rank(), first, 0, good[0]);
  both("there is no GPU 8 on rank", peer, 8, 0, good[0]);
  both("there is no GPU -1 on rank", peer, -1, 0, good[0]);
  both("n_elements is -1", peer, 0, -1, good[0]);
  both("n_elements is 9, and the tensor has 8", peer, 0, 9, good[0]);
  both("the tensor is in host memory", peer, 0, 0, host);
  both("no memory of a GPU", peer, 0, 0, {host.data(), 8, DType::int32, good[0].device});
  expect_error("have no tags", [&] { group.send_multigpu(good[0], peer, 0, {.tag = 1}); });
}

GPU_TEST_CASE("multi-gpu: a wrong call is refused before anything moves, and the group goes on", "[gpu]") {
  for (void (Wrong::*const calls)() : {&Wrong::reductions, &Wrong::gathering, &Wrong::messages}) {
    check_good(run_multi(2, 2, [&](Group& group, const Gpus& gpus) {
      Wrong wrong(group, gpus);
      (wrong.*calls)();
      group.allreduce_multigpu(wrong.good);
      expect_all(wrong.data, std::vector<Ints>(2, Ints(8, 4)), "the sum afterwards");
    }));
  }
}

GPU_TEST_CASE("multi-gpu: what NCCL cannot reduce, or not as asked, is unavailable", "[gpu]") {
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    const auto mine = Op::user([](const void*, const void*, void*, std::size_t, DType) {}, true, "mine");
    expect_error("unavailable", [&] { group.allreduce_multigpu(data.views(), {.op = ReduceOp::bxor}); });
    expect_error("unavailable", [&] { group.reduce_multigpu(data.views(), {.op = mine}); });
    expect_error("unavailable", [&] { group.allreduce_multigpu(data.views(), {.deterministic = true}); });
    const MultiArray<col::float8_e5m2> small(gpus, std::size_t{8}, col::float8_e5m2(1.0f));
    expect_error("does not combine float8_e5m2", [&] { group.allreduce_multigpu(small.views()); });
    expect_error("does not combine float8_e5m2",
                 [&] { group.allreduce_multigpu(small.views(), {.op = Op::premul_sum(2)}); });
    group.broadcast_multigpu(small.views());
    group.allreduce_multigpu(data.views());
    expect_all(data, std::vector<Ints>(2, Ints(8, 4)), "the sum afterwards");
  }));
  const Setting strict("COL_NUMERICS", "strict");
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    const MultiArray<col::float16> halves(gpus, std::size_t{4}, col::float16(1.0f));
    expect_error("rounds float16 at every hop", [&] { group.allreduce_multigpu(halves.views()); });
    group.broadcast_multigpu(halves.views());
  }));
}

GPU_TEST_CASE("multi-gpu: groups of other backends are told which one it takes", "[gpu]") {
  need_gpus(2);
  check_good(run_threads(2, [](int rank, Context& context) {
    for (const Backend backend : {Backend::shm, Backend::gloo}) {
      Group group = context.init_group(
          {.name = std::string(to_string(backend)), .rank = rank, .world_size = 2, .backend = backend});
      const std::vector<TensorView> none;
      expect_error(ErrorCode::unavailable, "make the group with backend nccl", [&] { group.allreduce_multigpu(none); });
      expect_error("unavailable", [&] { group.send_multigpu({}, 1 - rank, 0); });
      group.barrier();
    }
  }));
}

// ---- Ranks that do not agree

GPU_TEST_CASE("multi-gpu: ranks that call different things are told, and the odd one is named", "[gpu]") {
  struct Difference {
    const char* says;
    void (*call)(Group&, const IntArrays&);
  };
  const Difference differences[] = {
      {"rank 1 called reduce_multigpu of 8 int32 on each of 2 GPUs a rank, sum, root 0 tensor 0",
       [](Group& group, const IntArrays& data) {
         group.rank() == 1 ? group.reduce_multigpu(data.views()) : group.allreduce_multigpu(data.views());
       }},
      {"max",
       [](Group& group, const IntArrays& data) {
         group.allreduce_multigpu(data.views(), {.op = group.rank() == 1 ? ReduceOp::max : ReduceOp::sum});
       }},
      {"rank 1 called allreduce_multigpu of 7 int32",
       [](Group& group, const IntArrays& data) {
         group.allreduce_multigpu(group.rank() == 1 ? data.parts(0, 7) : data.views());
       }},
      {"tensor 1",
       [](Group& group, const IntArrays& data) {
         group.reduce_multigpu(data.views(), {}, group.rank() == 1 ? 1 : 0);
         group.allreduce_multigpu(data.views());
       }},
      {"rank 1 called allreduce of 8 int32",
       [](Group& group, const IntArrays& data) {
         group.rank() == 1 ? group.allreduce(data.view(0)) : group.allreduce_multigpu(data.views());
       }},
  };
  for (const bool strict : {false, true}) {
    const Setting check("COL_CHECK", strict ? "strict" : "lazy");
    for (const Difference& difference : differences) {
      CAPTURE(difference.says, strict);
      check_difference(3, {.code = ErrorCode::mismatch, .rank = 1, .says = difference.says}, true, difference.call);
    }
  }
}

GPU_TEST_CASE("multi-gpu: a rank that passes another number of tensors is named", "[gpu]") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    check_difference(3, {.code = ErrorCode::mismatch, .rank = 2, .says = "1 GPUs"}, before,
                     [](Group& group, const IntArrays& data) {
                       auto tensors = data.views();
                       if (group.rank() == 2) tensors.pop_back();
                       group.allreduce_multigpu(tensors);
                     });
  }
}

GPU_TEST_CASE("multi-gpu: a rank that comes with GPUs that are not connected yet, alone, is named", "[gpu]") {
  check_difference(3, {.code = ErrorCode::mismatch, .rank = 0, .says = "over connections 2"}, true,
                   [](Group& group, const IntArrays& data) {
                     auto tensors = data.views();
                     if (group.rank() == 0) std::swap(tensors[0], tensors[1]);
                     group.allreduce_multigpu(tensors);
                   });
}

GPU_TEST_CASE("multi-gpu: a GPU that two ranks pass is named", "[gpu]") {
  check_difference(2, {.code = ErrorCode::unavailable, .rank = 1, .says = "ranks 0 and 1 are on one GPU"}, false,
                   [](Group& group, const IntArrays&) {
                     const Gpus same({group.rank() == 0 ? 3 : 2, 1});
                     const IntArrays data(same, 8, 1);
                     group.allreduce_multigpu(data.views());
                   });
}

GPU_TEST_CASE("multi-gpu: the two sides of a message must agree on count, dtype and GPUs", "[gpu]") {
  struct Difference {
    const char* says;
    void (*receive)(Group&, const IntArrays&);
  };
  const Difference differences[] = {
      {"message of 7 int32 from GPU 0 of rank 0 to GPU 2 of rank 1",
       [](Group& group, const IntArrays& data) { group.recv_multigpu(data.view(0), 0, 0, {}, 7); }},
      {"message of 8 float32",
       [](Group& group, const IntArrays& data) {
         TensorView view = data.view(0);
         view.dtype = DType::float32;
         group.recv_multigpu(view, 0, 0);
       }},
      {"GPU 1 of rank 0", [](Group& group, const IntArrays& data) { group.recv_multigpu(data.view(0), 0, 1); }},
      {"GPU 3 of rank 1", [](Group& group, const IntArrays& data) { group.recv_multigpu(data.view(1), 0, 0); }},
  };
  for (const bool strict : {false, true}) {
    const Setting check("COL_CHECK", strict ? "strict" : "lazy");
    for (const bool before : {false, true}) {
      for (const Difference& difference : differences) {
        CAPTURE(difference.says, strict, before);
        const auto outcomes = run_multi(2, 2, [&](Group& group, const Gpus& gpus) {
          const IntArrays data(gpus, 8, 1);
          const auto exchange = [&](auto receive) {
            group.rank() == 0 ? group.send_multigpu(data.view(0), 1, 2) : receive(group, data);
          };
          if (before) exchange([](Group& g, const IntArrays& to) { g.recv_multigpu(to.view(0), 0, 0); });
          exchange(difference.receive);
        });
        // Whichever of the two saw it first names the other, or nobody when it is about their connection.
        check_all(outcomes, {.code = ErrorCode::mismatch, .says = difference.says, .promptly = true});
      }
    }
  }
}

GPU_TEST_CASE("multi-gpu: COL_CHECK=strict says nothing of calls that match", "[gpu]") {
  const Setting check("COL_CHECK", "strict");
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    check_reductions(group, gpus, 5);
    check_messages(group, gpus, 5);
    check_gathering(group, gpus, 5);
  }));
}

// ---- Ranks that do not come

GPU_TEST_CASE("multi-gpu: a rank that never calls is named by the timeout, before and after GPUs are connected",
              "[gpu]") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    Company company;
    const auto outcomes = run_multi(2, 2, [&](Group& group, const Gpus& gpus) {
      const IntArrays data(gpus, 8, 1);
      if (before) group.allreduce_multigpu(data.views());
      if (group.rank() == 1) return company.stay();
      company.call_in_vain([&] { group.allreduce_multigpu(data.views(), {.timeout = 500ms}); });
    });
    check_good_soon(outcomes);
  }
}

GPU_TEST_CASE("multi-gpu: a message that nobody receives ends at its deadline", "[gpu]") {
  const auto outcomes = run_multi(2, 2, [&](Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    if (group.rank() == 0) group.send_multigpu(data.view(1), 1, 2, {.timeout = 500ms});
  });
  const char* const which = "from GPU 1 of rank 0 to GPU 2 of rank 1";
  check_all(outcomes, {.code = ErrorCode::timeout, .rank = 1, .says = which, .promptly = true}, 1);
}

GPU_TEST_CASE("multi-gpu: a job that is aborted ends the call, wherever it waits", "[gpu]") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    const auto outcomes = run_multi(2, 2, [&](Group& group, const Gpus& gpus) {
      const IntArrays data(gpus, 8, 1);
      if (before) group.allreduce_multigpu(data.views());
      if (group.rank() == 1) {
        Context::current().spec().control->abort({ErrorCode::aborted, 1, "the test says so"});
        throw Error(ErrorCode::aborted, "the test says so");
      }
      group.allreduce_multigpu(data.views());
    });
    check_all(outcomes, {.code = ErrorCode::aborted, .says = "the test says so", .promptly = true}, 1);
  }
}

GPU_TEST_CASE("multi-gpu: after a failure the group says what the first one was", "[gpu]") {
  Company company;
  check_good(run_multi(2, 2, [&](Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    if (group.rank() == 1) return company.stay();
    expect_error("timeout", [&] { group.allreduce_multigpu(data.views(), {.timeout = 300ms}); });
    expect_error("the group broke before (timeout", [&] { group.allreduce_multigpu(data.views()); });
    expect_error("the group broke before", [&] { group.send_multigpu(data.view(0), 1, 2); });
    expect_error("the group broke before", [&] { group.allreduce(data.view(0)); });
    company.end();
  }));
}

}  // namespace
}  // namespace col::test
