// An article's six collection strategies on four processes: reduce, all reduce, scatter, gather, all gather and
// broadcast, through the free functions with lists, as torch.distributed and Ray have them, and through the methods.
// Where the two differ, Ray's rule holds: a reduce leaves the tensors of the others as they are.
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

constexpr int kSize = 4;
using Tensor = std::vector<float>;

// One tensor per rank, and views of all of them.
struct TensorList {
  explicit TensorList(int ranks, const Tensor& each) : tensors(static_cast<std::size_t>(ranks), each) {}
  std::vector<Tensor> tensors;
  std::vector<TensorView> outputs() { return {tensors.begin(), tensors.end()}; }
  std::vector<ConstTensorView> inputs() const { return {tensors.begin(), tensors.end()}; }
};

void do_reduce(Group& group) {
  const int rank = group.rank();
  for (int root = 0; root < kSize; ++root) {
    Tensor tensor{1};
    col::reduce(tensor, {.root = root});
    expect(tensor == Tensor{rank == root ? 4.0f : 1.0f}, fmt::format("data = {}", tensor[0]));
    // Numbers of its own on every rank, and the operators that the article names.
    const std::array ops{std::pair{ReduceOp::sum, 10.0f}, std::pair{ReduceOp::product, 24.0f},
                         std::pair{ReduceOp::max, 4.0f}, std::pair{ReduceOp::min, 1.0f}};
    for (const auto& [op, want] : ops) {
      const Tensor own{static_cast<float>(rank + 1)};
      tensor = own;
      col::reduce(tensor, {.op = op, .root = root});
      expect(tensor == (rank == root ? Tensor{want} : own));
      tensor = own;
      group.reduce(tensor, {.op = op, .root = root});
      expect(tensor == (rank == root ? Tensor{want} : own));
    }
  }
}

void do_all_reduce(Group& group) {
  Tensor tensor{1};
  col::allreduce(tensor);
  expect(tensor == Tensor{4});
  for (const auto& [op, want] : {std::pair{ReduceOp::sum, 6.0f}, std::pair{ReduceOp::max, 3.0f}}) {
    tensor = {static_cast<float>(group.rank())};
    col::allreduce(tensor, {.op = op});
    expect(tensor == Tensor{want});
    tensor = {static_cast<float>(group.rank())};
    group.allreduce(tensor, {.op = op});
    expect(tensor == Tensor{want});
  }
}

void do_scatter(Group& group) {
  for (int root = 0; root < kSize; ++root) {
    const bool is_root = group.rank() == root;
    TensorList list(kSize, {0, 0});
    Tensor flat;
    for (std::size_t r = 0; r < kSize; ++r) {
      list.tensors[r] = {static_cast<float>(r + 1), static_cast<float>(root)};
      flat.insert(flat.end(), list.tensors[r].begin(), list.tensors[r].end());
    }
    const Tensor want{static_cast<float>(group.rank() + 1), static_cast<float>(root)};
    Tensor tensor(2);
    const auto inputs = is_root ? list.inputs() : std::vector<ConstTensorView>();
    col::scatter(tensor, inputs, {.root = root});
    expect(tensor == want);
    tensor = {0, 0};
    group.scatter(is_root ? flat : Tensor(), tensor, {.root = root});
    expect(tensor == want);
  }
}

// Every rank's tensor, as a list.
TensorList all_tensors() {
  TensorList list(kSize, {});
  for (std::size_t r = 0; r < kSize; ++r) list.tensors[r] = {static_cast<float>(r), static_cast<float>(r) * 10};
  return list;
}

void do_gather(Group& group) {
  const TensorList want = all_tensors();
  const Tensor tensor = want.tensors[static_cast<std::size_t>(group.rank())];
  for (int root = 0; root < kSize; ++root) {
    const bool is_root = group.rank() == root;
    TensorList list(is_root ? kSize : 0, {-1, -1});
    const auto outputs = list.outputs();
    col::gather(outputs, tensor, {.root = root});
    if (is_root) expect(list.tensors == want.tensors);
    Tensor flat(is_root ? 2 * kSize : 0);
    group.gather(tensor, flat, {.root = root});
    if (is_root) expect(flat == Tensor{0, 0, 1, 10, 2, 20, 3, 30});
  }
}

void do_all_gather(Group& group) {
  const TensorList want = all_tensors();
  const Tensor tensor = want.tensors[static_cast<std::size_t>(group.rank())];
  TensorList list(kSize, {-1, -1});
  const auto outputs = list.outputs();
  col::allgather(outputs, tensor);
  expect(list.tensors == want.tensors);
  Tensor flat(2 * kSize);
  group.allgather(tensor, flat);
  expect(flat == Tensor{0, 0, 1, 10, 2, 20, 3, 30});
}

void do_broadcast(Group& group) {
  for (int root = 0; root < kSize; ++root) {
    for (const bool by_method : {false, true}) {
      Tensor tensor{group.rank() == root ? static_cast<float>(root) + 0.5f : -1.0f};
      by_method ? group.broadcast(tensor, {.root = root}) : col::broadcast(tensor, {.root = root});
      expect(tensor == Tensor{static_cast<float>(root) + 0.5f});
    }
  }
}

// Not in the article, but in Ray, and with lists.
void do_reducescatter(Group& group) {
  TensorList list(kSize, {});
  for (std::size_t r = 0; r < kSize; ++r)
    list.tensors[r] = {static_cast<float>(r * 100 + static_cast<std::size_t>(group.rank()))};
  Tensor tensor(1);
  const auto inputs = list.inputs();
  col::reducescatter(tensor, inputs);
  expect(tensor == Tensor{static_cast<float>(group.rank() * 400 + 6)});
}

void do_all(Group& group, Context&) {
  expect(col::get_rank() == group.rank() && col::get_collective_group_size() == kSize);
  for (int round = 0; round < 2; ++round) {
    do_reduce(group);
    do_all_reduce(group);
    do_scatter(group);
    do_gather(group);
    do_all_gather(group);
    do_broadcast(group);
    do_reducescatter(group);
    col::barrier();
  }
}

TEST_CASE("article: six strategies on four ranks as threads", "[group]") {
  threads_on_each_backend(kSize, do_all);
}

TEST_CASE("article: six strategies on four ranks as processes", "[group]") {
  processes_on_each_backend(kSize, do_all);
}

}  // namespace
}  // namespace col::test
