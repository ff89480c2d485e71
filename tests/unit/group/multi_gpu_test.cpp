// Calls over several GPUs of each rank, as far as no GPU is needed: what is refused, and the words that ranks compare.
#include <string>
#include <vector>

#include <col/col.hpp>

#include "group/gpu/multi_gpu.hpp"
#include "support/catch.hpp"

namespace {

using col::Collective;
using col::Device;
using col::DType;
using col::ErrorCode;
using col::TensorView;
using col::group::MultiGpuCall;
using col::group::MultiGpuMessage;
using col::group::Shape;

constexpr Shape kGpuShape{"g", 1, 2, Device::Type::cuda};  // rank 1 of 2

// Nobody reads it.
TensorView on(int gpu, std::size_t offset, std::size_t count) {
  return {reinterpret_cast<void*>(0x10000000U * static_cast<unsigned>(gpu + 1) + 4 * offset), count, DType::float32,
          Device{Device::Type::cuda, gpu}};
}

MultiGpuCall reduce_of(std::vector<TensorView> tensors, int root_tensor = 0) {
  return {.name = "reduce_multigpu",
          .collective = Collective::reduce,
          .in = {tensors.begin(), tensors.end()},
          .out = tensors,
          .root_tensor = root_tensor};
}

template <class What>
std::string refusal(const What& what, const col::Options& options = {}) {
  try {
    if constexpr (std::is_same_v<What, MultiGpuCall>)
      check(what, options, kGpuShape);
    else
      check(what, kGpuShape);
  } catch (const col::Error& error) {
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK(error.group() == "g");
    return error.message();
  }
  return "";
}

}  // namespace

TEST_CASE("multi-gpu checks: one tensor on each GPU, all alike", "[group]") {
  CHECK(refusal(reduce_of({on(0, 0, 8), on(1, 0, 8)})).empty());
  CHECK(refusal(reduce_of({on(1, 0, 8), on(0, 0, 8)}, 1), {.root = 1}).empty());
  CHECK(refusal(reduce_of({on(0, 0, 0)})).empty());
  CHECK(refusal(reduce_of({})) ==
        "reduce_multigpu: the list of tensors is empty; pass one tensor for each GPU of this "
        "rank");
  CHECK(refusal(reduce_of({on(2, 0, 8), on(0, 0, 8), on(2, 8, 8)})) ==
        "reduce_multigpu: tensors 0 and 2 are both on GPU 2; each is on a GPU of its own");
  CHECK(refusal(reduce_of({on(0, 0, 8), on(1, 0, 7)})).find("tensor 1 holds 7 float32, tensor 0 8") !=
        std::string::npos);
  CHECK(refusal(reduce_of({on(0, 0, 8)}, 1)).find("root tensor 1 is not in the list") != std::string::npos);
  CHECK(refusal(reduce_of({on(0, 0, 8)}), {.root = 2}).find("root 2 is not in the group") != std::string::npos);
  CHECK(refusal(reduce_of({on(0, 0, 8)}), {.op = col::ReduceOp::bor}).find("bitwise") != std::string::npos);
}

TEST_CASE("multi-gpu checks: an input may be exactly its own block, and nothing else of the output", "[group]") {
  // One GPU on each of two ranks, this one the second.
  const auto gathering = [](TensorView in, TensorView out) {
    return MultiGpuCall{.name = "allgather_multigpu", .collective = Collective::allgather, .in = {in}, .out = {out}};
  };
  CHECK(refusal(gathering(on(0, 100, 4), on(0, 0, 8))).empty());
  CHECK(refusal(gathering(on(0, 4, 4), on(0, 0, 8))).empty());
  CHECK(refusal(gathering(on(0, 8, 4), on(0, 0, 8))).empty());
  for (const std::size_t offset : {0U, 1U, 3U, 5U, 7U})
    CHECK(refusal(gathering(on(0, offset, 4), on(0, 0, 8))).find("overlap other than in place") != std::string::npos);
  const auto into_list = [](TensorView in, TensorView first, TensorView second) {
    return MultiGpuCall{.name = "allgather_multigpu",
                        .collective = Collective::allgather,
                        .in = {in},
                        .out = {first, second},
                        .lists = true,
                        .list_lengths = {2}};
  };
  CHECK(refusal(into_list(on(0, 0, 4), on(0, 50, 4), on(0, 20, 4))).empty());
  CHECK(refusal(into_list(on(0, 0, 4), on(0, 50, 4), on(0, 0, 4))).empty());
  CHECK(refusal(into_list(on(0, 0, 4), on(0, 0, 4), on(0, 50, 4))).find("overlap other than") != std::string::npos);
  CHECK(refusal(into_list(on(0, 0, 4), on(0, 52, 4), on(0, 50, 4))).find("two outputs of GPU 0 share memory") !=
        std::string::npos);
  // What is read may be read twice.
  CHECK(refusal(MultiGpuCall{.name = "reducescatter_multigpu",
                             .collective = Collective::reduce_scatter,
                             .in = {on(0, 50, 4), on(0, 50, 4)},
                             .out = {on(0, 0, 4)},
                             .lists = true,
                             .list_lengths = {2}})
            .empty());
}

TEST_CASE("multi-gpu checks: a message names another rank, and no more than its tensor holds", "[group]") {
  const auto message = [](int peer, std::int64_t elements, int peer_device = 3) {
    return MultiGpuMessage{.name = "send_multigpu",
                           .sending = true,
                           .view = on(0, 0, 8),
                           .peer = peer,
                           .peer_device = peer_device,
                           .elements = elements};
  };
  CHECK(refusal(message(0, 0)).empty());
  CHECK(refusal(message(0, 8)).empty());
  CHECK(refusal(message(0, 9)) == "send_multigpu: n_elements is 9, and the tensor has 8");
  CHECK(refusal(message(0, -1)).find("n_elements is -1") != std::string::npos);
  CHECK(refusal(message(2, 0)).find("destination 2 is not in the group") != std::string::npos);
  CHECK(refusal(message(1, 0)).find("rank 1 is this rank itself;") != std::string::npos);
  CHECK(refusal(message(1, 0, 0)).find("itself, and the GPU the tensor's own;") != std::string::npos);
}

TEST_CASE("multi-gpu words: whatever ranks can disagree about is in them", "[group]") {
  const auto words = [](const MultiGpuCall& call, const col::Options& options = {}, std::uint64_t connections = 1) {
    return describe(call, options, connections);
  };
  const MultiGpuCall call = reduce_of({on(0, 0, 8), on(1, 0, 8)});
  const std::string usual = words(call);
  CHECK(usual == "reduce_multigpu of 8 float32 on each of 2 GPUs a rank, sum, root 0 tensor 0, over connections 1");
  CHECK(words(reduce_of({on(4, 0, 8), on(5, 0, 8)})) == usual);  // ranks have GPUs of their own
  CHECK(words(reduce_of({on(0, 0, 8), on(1, 0, 8)}, 1)) != usual);
  CHECK(words(reduce_of({on(0, 0, 8)})) != usual);
  CHECK(words(call, {.root = 1}) != usual);
  CHECK(words(call, {.op = col::ReduceOp::max}) != usual);
  CHECK(words(call, {}, 2) != usual);
  MultiGpuCall other = call;
  other.lists = true;
  CHECK(words(other) != usual);
}

TEST_CASE("multi-gpu calls of a group without GPUs are unavailable, and say what helps", "[group]") {
  col::Context context{col::ContextSpec{}};
  const col::Context::Scope scope(context);
  col::Group group = col::init();
  const std::vector<TensorView> none;
  const auto unavailable = [](auto call) {
    try {
      call();
    } catch (const col::Error& error) {
      return error.code() == ErrorCode::unavailable && error.message().find("nccl") != std::string::npos;
    }
    return false;
  };
  CHECK(unavailable([&] { group.allreduce_multigpu(none); }));
  CHECK(unavailable([&] { col::broadcast_multigpu(none); }));
  CHECK(unavailable([&] { col::send_multigpu(TensorView(), 0, 0); }));
  try {
    col::synchronize(0);
  } catch (const col::Error& error) {  // where there is no CUDA
    CHECK(error.code() == ErrorCode::unavailable);
    CHECK(error.message().starts_with("synchronize: "));
  }
}
