// Calls over several GPUs of each rank: what they compute.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "conformance/gpu/multi_gpu_calls.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

struct Layout {
  int ranks, each;
};

// Those with few GPUs first.
std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int ranks : {1, 2, 4}) {
    for (const int each : {1, 2, 4, 8}) {
      if (ranks * each <= 8) all.push_back({ranks, each});
    }
  }
  std::ranges::stable_sort(all, {}, [](const Layout& layout) { return layout.ranks * layout.each; });
  return all;
}

std::vector<ConstTensorView> as_inputs(const std::vector<TensorView>& views) {
  return {views.begin(), views.end()};
}

GPU_TEST_CASE("multi-gpu: reductions and broadcasts are right on every GPU of every rank", "[gpu]") {
  for (const auto [ranks, each] : layouts()) {
    CAPTURE(ranks, each);
    check_good(run_multi(ranks, each, [](Group& group, const Gpus& gpus) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{1000}}) check_reductions(group, gpus, count);
    }));
  }
}

GPU_TEST_CASE("multi-gpu: gathering and scattering is right, in one tensor, in place, and in lists", "[gpu]") {
  for (const auto [ranks, each] : layouts()) {
    CAPTURE(ranks, each);
    check_good(run_multi(ranks, each, [](Group& group, const Gpus& gpus) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{777}}) {
        check_gathering(group, gpus, count);
        check_scattering(group, gpus, count);
      }
    }));
  }
}

GPU_TEST_CASE("multi-gpu: messages go from any GPU of a rank to any GPU of another", "[gpu]") {
  for (const auto [ranks, each] : layouts()) {
    CAPTURE(ranks, each);
    check_good(run_multi(ranks, each, [](Group& group, const Gpus& gpus) { check_messages(group, gpus, 100); }));
  }
}

GPU_TEST_CASE("multi-gpu: other element types and operators", "[gpu]") {
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    const auto check = [&]<class T>(T one, ReduceOp op, T want) {
      const MultiArray<T> data(gpus, std::size_t{65}, one);
      group.allreduce_multigpu(data.views(), {.op = op});
      for (std::size_t i = 0; i < gpus.size(); ++i) {
        for (const T value : data.values(i)) expect(value == want, "an element");
      }
    };
    check(2.0f, ReduceOp::sum, 8.0f);
    check(2.0, ReduceOp::product, 16.0);
    check(2.0f, ReduceOp::avg, 2.0f);  // over the flat ranks
    check(std::uint8_t{3}, ReduceOp::sum, std::uint8_t{12});
    check(std::int64_t{-3}, ReduceOp::min, std::int64_t{-3});
    const MultiArray<col::bfloat16> narrow(gpus, std::size_t{5}, col::bfloat16(1.0f));
    group.allreduce_multigpu(narrow.views());
    expect(static_cast<float>(narrow.values(1)[4]) == 4.0f, "bfloat16");
  }));
}

GPU_TEST_CASE("multi-gpu: calls of no elements", "[gpu]") {
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    std::vector<TensorView> none;
    for (std::size_t i = 0; i < gpus.size(); ++i)
      none.emplace_back(nullptr, 0, DType::int32, Device{Device::Type::cuda, gpus.ordinal(i)});
    group.allreduce_multigpu(none);
    group.broadcast_multigpu(none, {.root = 1}, 1);
    group.allgather_multigpu(none, as_inputs(none));
    group.reducescatter_multigpu(none, as_inputs(none));
    check_reductions(group, gpus, 3);
  }));
}

GPU_TEST_CASE("multi-gpu: the free functions find the group by name", "[gpu]") {
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    const Flat flat(group, gpus);
    const Options here{.group = "g"};
    const Flat::Parts sum = flat.parts(Collective::allreduce, 4);
    const std::vector<Ints>& own = sum.in;
    const std::vector<Ints>& sums = sum.want;
    const IntArrays data(gpus, own);
    col::allreduce_multigpu(data.views(), here);
    expect_all(data, sums, "allreduce");
    col::broadcast_multigpu(data.views(), {.group = "g", .root = 1}, 1);
    col::reduce_multigpu(data.views(), {.group = "g", .op = ReduceOp::max});
    expect_all(data, sums, "broadcast and reduce of what is alike");

    const IntArrays inputs(gpus, own), outputs(gpus, 16), lists(gpus, 16), parts(gpus, 1);
    col::allgather_multigpu(outputs.views(), inputs.inputs(), here);
    std::vector<std::vector<TensorView>> out(2);
    std::vector<std::vector<ConstTensorView>> in(2);
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t f = 0; f < 4; ++f) {
        out[i].push_back(lists.view(i).slice(f * 4, 4));
        in[i].emplace_back(inputs.view(i).slice(f, 1));
      }
    }
    col::allgather_multigpu(out, inputs.inputs(), here);
    expect_all(lists, outputs.values(), "the two forms of allgather");
    col::reducescatter_multigpu(parts.views(), inputs.inputs(), here);
    const IntArrays same(gpus, 1);
    col::reducescatter_multigpu(same.views(), in, here);
    expect_all(same, parts.values(), "the two forms of reducescatter");

    if (group.rank() == 0) col::send_multigpu(inputs.view(1), 1, 2, here);
    if (group.rank() == 1) {
      col::recv_multigpu(data.view(0), 0, 1, here);
      expect(data.values(0) == letter_of(1, 0, 4), "a message");
    }
    col::synchronize(gpus.ordinal(0));
  }));
}

GPU_TEST_CASE("multi-gpu: a message of the first elements of a tensor", "[gpu]") {
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, std::vector<Ints>(2, group.rank() == 0 ? Ints{1, 2, 3, 4} : Ints{-1, -1, -1, -1}));
    if (group.rank() == 0) group.send_multigpu(data.view(0), 1, 3, {}, 3);
    if (group.rank() == 1) {
      group.recv_multigpu(data.view(1), 0, 0, {}, 3);
      expect(data.values(1) == Ints{1, 2, 3, -1}, "the first three");
    }
  }));
}

GPU_TEST_CASE("multi-gpu: calls of one GPU a rank and of several take turns in one group", "[gpu]") {
  check_good(run_multi(2, 2, [](Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 100, 1);
    std::vector<Work> works;
    const IntArrays other(gpus, 100, 1);
    works.push_back(group.iallreduce(other.view(0), other.view(0)));
    group.allreduce_multigpu(data.views());
    group.allreduce(data.view(0));
    for (Work& work : works) work.wait();
    expect(data.values(0) == Ints(100, 8), "the GPU of the group");
    expect(data.values(1) == Ints(100, 4), "the other");
    expect(other.values(0) == Ints(100, 2), "what was started before");
  }));
}

GPU_TEST_CASE("multi-gpu: lists of GPUs in another order, and of others, are connected anew, and kept", "[gpu]") {
  check_good(run_multi(2, 4, [](Group& group, const Gpus& gpus) {
    const auto of = [&](std::vector<std::size_t> order) {
      std::vector<int> ordinals;
      for (const std::size_t i : order) ordinals.push_back(gpus.ordinal(i));
      return Gpus(ordinals);
    };
    // More lists than are kept, and again.
    for (int round = 0; round < 2; ++round) {
      for (const auto& order : std::vector<std::vector<std::size_t>>{
               {0, 1}, {1, 0}, {2, 3}, {3, 2}, {0, 2}, {1, 3}, {0}, {3}, {0, 1, 2, 3}, {3, 1, 2}, {0, 1}})
        check_gathering(group, of(order), 5);
    }
  }));
}

GPU_TEST_CASE("gpu: waiting for all work of a GPU", "[gpu]") {
  if (cuda().version < 12050) {
    const std::string text = error_of([] { col::synchronize(0); }).what();
    CHECK(has(text, "unavailable"));
    CHECK(has(text, "12.5 is the oldest"));
    CHECK(has(text, "cudaDeviceSynchronize"));
    return;
  }
  check_good(run_multi(2, 1, [](Group& group, const Gpus& gpus) {
    const IntArrays data(gpus, 1000, 1);
    Work work = group.iallreduce(data.view(0), data.view(0));
    col::synchronize(gpus.ordinal(0));
    expect(work.test(), "what was started has ended");
    expect(data.values(0) == Ints(1000, 2), "the sum");
    for (const int wrong : {-1, 8}) {
      expect_error(ErrorCode::invalid_argument, fmt::format("synchronize: GPU {} is not there", wrong),
                   [&] { col::synchronize(wrong); });
    }
  }));
}

}  // namespace
}  // namespace col::test
