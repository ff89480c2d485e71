// Calls over several GPUs of each rank: what is said of those that are wrong, or that not all ranks make.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/gpu_case.hpp"
#include "conformance/gpu/multi_gpu_calls.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using col::Backend;
using col::ConstTensorView;
using col::Device;
using col::DType;
using col::ErrorCode;
using col::ReduceOp;
using col::TensorView;
using col::test::check_good;
using col::test::cuda;
using col::test::error_of;
using col::test::expect;
using col::test::Gpus;
using col::test::has;
using col::test::IntArrays;
using col::test::Ints;
using col::test::MultiArray;
using col::test::Outcome;
using col::test::run_multi;

namespace {

// A variable of the environment, for as long as it lives. Contexts look when they are made.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Setting() { ::unsetenv(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  const char* name_;
};

// Of a message, whichever of the two saw it first names the other, or nobody when it is about their connection.
constexpr int kEither = -2;

// All ranks report the same, and soon.
void check_all(const std::vector<Outcome>& outcomes, ErrorCode code, int rank, const std::string& part,
               double seconds = 5) {
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == code);
    CHECK((rank == kEither || outcome.error_rank == rank));
    CHECK(has(outcome.text, part));
    CHECK(outcome.seconds < seconds);
  }
}

}  // namespace

GPU_TEST_CASE("multi-gpu: a wrong call is refused before anything moves, and the group goes on", "[gpu]") {
  check_good(run_multi(2, 2, [](col::Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1), wide(gpus, 32, 1), other(gpus, 32, 1), longer(gpus, 9, 1);
    const MultiArray<float> floats(gpus, std::size_t{8}, 1.0f);
    const std::vector<TensorView> good = data.views(), all = wide.views();
    std::vector<std::int32_t> host(8, 1);
    const auto refused = [&](const std::string& part, auto call) {
      const std::string text = error_of(call);
      expect(has(text, "invalid_argument") && has(text, part), fmt::format("'{}' does not say '{}'", text, part));
    };
    const auto reduce = [&](std::vector<TensorView> tensors) {
      return [&group, tensors = std::move(tensors)] { group.allreduce_multigpu(tensors); };
    };
    const int first = gpus.ordinal(0), second = gpus.ordinal(1), peer = 1 - group.rank();

    refused("allreduce_multigpu: the list of tensors is empty", reduce({}));
    refused("tensor 1 is in host memory", reduce({good[0], host}));
    refused("tensor 1 holds 9 int32, tensor 0 8 int32", reduce({good[0], longer.view(1)}));
    refused("tensor 1 holds 8 float32", reduce({good[0], floats.view(1)}));
    refused(fmt::format("tensors 0 and 1 are both on GPU {}", first), reduce({good[0], all[0].slice(0, 8)}));
    refused("tensor 1 has 8 elements but a null pointer",
            reduce({good[0], {nullptr, 8, DType::int32, good[1].device}}));
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

    const std::vector<ConstTensorView> inputs = data.inputs();
    refused("output 0 holds 8 int32, but must hold 32 int32", [&] { group.allgather_multigpu(good, inputs); });
    refused("there are 1 outputs for 2 GPUs",
            [&] { group.allgather_multigpu(std::vector<TensorView>{all[0]}, inputs); });
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
    expect(has(error_of([&] { group.send_multigpu(good[0], peer, 0, {.tag = 1}); }), "have no tags"), "a tag");

    group.allreduce_multigpu(good);
    expect_all(data, std::vector<Ints>(2, Ints(8, 4)), "the sum afterwards");
  }));
}

GPU_TEST_CASE("multi-gpu: what NCCL cannot reduce, or not as asked, is unavailable", "[gpu]") {
  check_good(run_multi(2, 2, [](col::Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    const auto mine = col::Op::user([](const void*, const void*, void*, std::size_t, DType) {}, true, "mine");
    for (const std::string& text : {error_of([&] { group.allreduce_multigpu(data.views(), {.op = ReduceOp::bxor}); }),
                                    error_of([&] { group.reduce_multigpu(data.views(), {.op = mine}); }),
                                    error_of([&] { group.allreduce_multigpu(data.views(), {.deterministic = true}); })})
      expect(has(text, "unavailable"), text);
    group.allreduce_multigpu(data.views());
    expect_all(data, std::vector<Ints>(2, Ints(8, 4)), "the sum afterwards");
  }));
  const Setting strict("COL_NUMERICS", "strict");
  check_good(run_multi(2, 2, [](col::Group& group, const Gpus& gpus) {
    const MultiArray<col::float16> halves(gpus, std::size_t{4}, col::float16(1.0f));
    expect(has(error_of([&] { group.allreduce_multigpu(halves.views()); }), "rounds 16-bit floats"), "16 bits");
    group.broadcast_multigpu(halves.views());
  }));
}

GPU_TEST_CASE("multi-gpu: groups of other backends are told which one it takes", "[gpu]") {
  col::test::need_gpus(2);
  check_good(col::test::run_threads(2, [](int rank, col::Context& context) {
    for (const Backend backend : {Backend::shm, Backend::gloo}) {
      col::Group group = context.init_group(
          {.name = std::string(to_string(backend)), .rank = rank, .world_size = 2, .backend = backend});
      const std::vector<TensorView> none;
      const std::string text = error_of([&] { group.allreduce_multigpu(none); });
      expect(has(text, "unavailable") && has(text, "make the group with backend nccl"), text);
      expect(has(error_of([&] { group.send_multigpu({}, 1 - rank, 0); }), "unavailable"), "a message");
      group.barrier();
    }
  }));
}

// ---- Ranks that do not agree

GPU_TEST_CASE("multi-gpu: ranks that call different things are told, and the odd one is named", "[gpu]") {
  using Call = void (*)(col::Group&, const IntArrays&, bool odd);
  struct Difference {
    const char* name;
    Call call;
    const char* says;
  };
  const std::vector<Difference> differences{
      {"another collective",
       [](col::Group& group, const IntArrays& data, bool odd) {
         if (odd)
           group.reduce_multigpu(data.views());
         else
           group.allreduce_multigpu(data.views());
       },
       "rank 1 called reduce_multigpu of 8 int32 on each of 2 GPUs a rank, sum, root 0 tensor 0"},
      {"another operator",
       [](col::Group& group, const IntArrays& data, bool odd) {
         group.allreduce_multigpu(data.views(), {.op = odd ? ReduceOp::max : ReduceOp::sum});
       },
       "max"},
      {"another count",
       [](col::Group& group, const IntArrays& data, bool odd) {
         group.allreduce_multigpu(odd ? data.parts(0, 7) : data.views());
       },
       "rank 1 called allreduce_multigpu of 7 int32"},
      {"another root tensor",
       [](col::Group& group, const IntArrays& data, bool odd) {
         group.reduce_multigpu(data.views(), {}, odd ? 1 : 0);
         group.allreduce_multigpu(data.views());
       },
       "tensor 1"},
      {"one GPU a rank",
       [](col::Group& group, const IntArrays& data, bool odd) {
         if (odd)
           group.allreduce(data.view(0));
         else
           group.allreduce_multigpu(data.views());
       },
       "rank 1 called allreduce of 8 int32"},
  };
  for (const bool strict : {false, true}) {
    const Setting check("COL_CHECK", strict ? "strict" : "lazy");
    for (const Difference& difference : differences) {
      CAPTURE(difference.name, strict);
      const auto outcomes = run_multi(3, 2, [&](col::Group& group, const Gpus& gpus) {
        const IntArrays data(gpus, 8, 1);
        group.allreduce_multigpu(data.views());
        difference.call(group, data, group.rank() == 1);
      });
      check_all(outcomes, ErrorCode::mismatch, 1, difference.says);
    }
  }
}

GPU_TEST_CASE("multi-gpu: a rank that passes another number of tensors is named", "[gpu]") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    const auto outcomes = run_multi(3, 2, [&](col::Group& group, const Gpus& gpus) {
      const IntArrays data(gpus, 8, 1);
      if (before) group.allreduce_multigpu(data.views());
      auto tensors = data.views();
      if (group.rank() == 2) tensors.pop_back();
      group.allreduce_multigpu(tensors);
    });
    check_all(outcomes, ErrorCode::mismatch, 2, "1 GPUs");
  }
}

GPU_TEST_CASE("multi-gpu: a rank that comes with GPUs that are not connected yet, alone, is named", "[gpu]") {
  const auto outcomes = run_multi(3, 2, [&](col::Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    group.allreduce_multigpu(data.views());
    auto tensors = data.views();
    if (group.rank() == 0) std::swap(tensors[0], tensors[1]);
    group.allreduce_multigpu(tensors);
  });
  check_all(outcomes, ErrorCode::mismatch, 0, "over connections 2");
}

GPU_TEST_CASE("multi-gpu: a GPU that two ranks pass is named", "[gpu]") {
  const auto outcomes = run_multi(2, 2, [&](col::Group& group, const Gpus& /*gpus*/) {
    const Gpus same({group.rank() == 0 ? 3 : 2, 1});
    const IntArrays data(same, 8, 1);
    group.allreduce_multigpu(data.views());
  });
  check_all(outcomes, ErrorCode::unavailable, 1, "ranks 0 and 1 are on one GPU");
}

GPU_TEST_CASE("multi-gpu: the two sides of a message must agree on count, dtype and GPUs", "[gpu]") {
  using Call = void (*)(col::Group&, const IntArrays&);
  struct Difference {
    const char* name;
    Call receive;
    const char* says;
  };
  const std::vector<Difference> differences{
      {"count", [](col::Group& group, const IntArrays& data) { group.recv_multigpu(data.view(0), 0, 0, {}, 7); },
       "message of 7 int32 from GPU 0 of rank 0 to GPU 2 of rank 1"},
      {"dtype",
       [](col::Group& group, const IntArrays& data) {
         TensorView view = data.view(0);
         view.dtype = DType::float32;
         group.recv_multigpu(view, 0, 0);
       },
       "message of 8 float32"},
      {"the GPU that it comes from",
       [](col::Group& group, const IntArrays& data) { group.recv_multigpu(data.view(0), 0, 1); }, "GPU 1 of rank 0"},
      {"the GPU that it goes to",
       [](col::Group& group, const IntArrays& data) { group.recv_multigpu(data.view(1), 0, 0); }, "GPU 3 of rank 1"},
  };
  for (const bool strict : {false, true}) {
    const Setting check("COL_CHECK", strict ? "strict" : "lazy");
    for (const bool before : {false, true}) {
      for (const Difference& difference : differences) {
        CAPTURE(difference.name, strict, before);
        const auto outcomes = run_multi(2, 2, [&](col::Group& group, const Gpus& gpus) {
          const IntArrays data(gpus, 8, 1);
          const auto exchange = [&](auto receive) {
            if (group.rank() == 0) group.send_multigpu(data.view(0), 1, 2);
            if (group.rank() == 1) receive(group, data);
          };
          if (before) exchange([](col::Group& g, const IntArrays& to) { g.recv_multigpu(to.view(0), 0, 0); });
          exchange(difference.receive);
        });
        check_all(outcomes, ErrorCode::mismatch, kEither, difference.says);
      }
    }
  }
}

GPU_TEST_CASE("multi-gpu: COL_CHECK=strict says nothing of calls that match", "[gpu]") {
  const Setting check("COL_CHECK", "strict");
  check_good(run_multi(2, 2, [](col::Group& group, const Gpus& gpus) {
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
    col::test::Company company;
    const auto outcomes = run_multi(2, 2, [&](col::Group& group, const Gpus& gpus) {
      const IntArrays data(gpus, 8, 1);
      if (before) group.allreduce_multigpu(data.views());
      if (group.rank() == 1) return company.stay();
      const std::string error = error_of([&] { group.allreduce_multigpu(data.views(), {.timeout = 500ms}); });
      company.end();
      expect(has(error, "timeout") && has(error, "rank 1 did not enter it"), error);
    });
    check_good(outcomes);
    CHECK(outcomes[0].seconds < 10);
  }
}

GPU_TEST_CASE("multi-gpu: a message that nobody receives ends at its deadline", "[gpu]") {
  const auto outcomes = run_multi(2, 2, [&](col::Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    if (group.rank() == 0) group.send_multigpu(data.view(1), 1, 2, {.timeout = 500ms});
  });
  INFO(col::test::show(outcomes));
  CHECK(outcomes[0].code == ErrorCode::timeout);
  CHECK(outcomes[0].error_rank == 1);
  CHECK(has(outcomes[0].text, "from GPU 1 of rank 0 to GPU 2 of rank 1"));
  CHECK(outcomes[0].seconds < 10);
}

GPU_TEST_CASE("multi-gpu: a job that is aborted ends the call, wherever it waits", "[gpu]") {
  for (const bool before : {false, true}) {
    CAPTURE(before);
    const auto outcomes = run_multi(2, 2, [&](col::Group& group, const Gpus& gpus) {
      const IntArrays data(gpus, 8, 1);
      if (before) group.allreduce_multigpu(data.views());
      if (group.rank() == 1) {
        col::Context::current().spec().control->abort({ErrorCode::aborted, 1, "the test says so"});
        throw col::Error(ErrorCode::aborted, "the test says so");
      }
      group.allreduce_multigpu(data.views());
    });
    INFO(col::test::show(outcomes));
    CHECK(outcomes[0].code == ErrorCode::aborted);
    CHECK(has(outcomes[0].text, "the test says so"));
    CHECK(outcomes[0].seconds < 10);
  }
}

GPU_TEST_CASE("multi-gpu: after a failure the group says what the first one was", "[gpu]") {
  col::test::Company company;
  check_good(run_multi(2, 2, [&](col::Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 8, 1);
    if (group.rank() == 1) return company.stay();
    expect(has(error_of([&] { group.allreduce_multigpu(data.views(), {.timeout = 300ms}); }), "timeout"), "the first");
    expect(has(error_of([&] { group.allreduce_multigpu(data.views()); }), "the group broke before (timeout"), "again");
    expect(has(error_of([&] { group.send_multigpu(data.view(0), 1, 2); }), "the group broke before"), "a message");
    expect(has(error_of([&] { group.allreduce(data.view(0)); }), "the group broke before"), "another call");
    company.end();
  }));
}

// ---- synchronize
