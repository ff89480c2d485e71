// Integers in every algorithm: they wrap, whatever the order, and their averages round toward zero.
#include <vector>

#include <col/col.hpp>

#include "colcheck/engine/number_inputs.hpp"
#include "support/catch.hpp"
#include "support/memory_channel.hpp"
#include "support/reductions.hpp"

namespace {

using namespace col::colcheck;
using namespace col::test;
using col::Op;
using col::ReduceOp;

constexpr std::uint64_t kIntegerSeed = 20261123;

std::vector<std::vector<Op>> all_operators(int size) {
  std::vector<std::vector<Op>> ops;
  for (int i = 0; i < col::kReduceOpCount; ++i) ops.push_back({static_cast<ReduceOp>(i)});
  ops.push_back(scales(
      size, [](int r) { return std::vector<double>{3, -7, 0, 1e9 + 7, -1, 0x1p40}[static_cast<std::size_t>(r) % 6]; }));
  return ops;
}

template <class T>
void check_wrapping(int size) {
  const auto inputs = random_integers<T>(size, 19 * static_cast<std::size_t>(size), kIntegerSeed);
  auto calls = and_in_place(every_algorithm(size));
  check_results<T>("memory", with_ops(calls, all_operators(size)), inputs, Promise::exact);
}

}  // namespace

TEST_CASE("numerics: integers wrap in every algorithm, type and operator", "[numerics]") {
  register_memory_backend();
  for (const int size : {2, 3, 5, 8}) {
    INFO(size << " ranks, seed " << kIntegerSeed);
    check_wrapping<std::int8_t>(size);
    check_wrapping<std::uint8_t>(size);
    check_wrapping<std::int32_t>(size);
    check_wrapping<std::uint32_t>(size);
    check_wrapping<std::int64_t>(size);
    check_wrapping<std::uint64_t>(size);
  }
}

TEST_CASE("numerics: the average of integers rounds toward zero", "[numerics]") {
  register_memory_backend();
  // Sums over three ranks, and their averages.
  const std::vector<std::pair<std::int32_t, std::int32_t>> known = {{-7, -2}, {-2, 0}, {-1, 0}, {0, 0},  {1, 0},
                                                                    {2, 0},   {7, 2},  {8, 2},  {-9, -3}};
  const auto inputs = make_inputs<std::int32_t>(3, known.size(), [&](int r, std::size_t i) {
    return r == 0 ? known[i].first - 5 : r == 1 ? 9 : -4;
  });
  for (Reduction call : every_algorithm(3)) {
    if (call.collective != col::Collective::allreduce) continue;
    call.ops = {ReduceOp::avg};
    INFO(call.text());
    const auto outputs = run_all<std::int32_t>("memory", {call}, inputs)[0];
    for (std::size_t i = 0; i < known.size(); ++i) CHECK(outputs[2][i] == known[i].second);
  }
}

TEST_CASE("numerics: premul_sum scales every rank's floats by its own number", "[numerics]") {
  register_memory_backend();
  for (const int size : {2, 3, 5, 8}) {
    const auto calls =
        with_ops(every_algorithm(size), {scales(size, [](int r) { return r == 1 ? -2.5 : 0.1 * (r + 1); })});
    INFO(size << " ranks, seed " << kIntegerSeed);
    const std::size_t count = 21 * static_cast<std::size_t>(size);
    check_results("memory", calls, random_inputs<float>(size, count, kIntegerSeed, 0, 10), Promise::any);
    check_results("memory", calls, random_inputs<double>(size, count, kIntegerSeed, 0, 10), Promise::any);
  }
}

TEST_CASE("numerics: premul_sum of integers refuses a scale that is no whole number", "[numerics]") {
  register_memory_backend();
  const auto outcomes = run_threads(2, [](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 2, .backend_name = "memory"});
    std::vector<std::int32_t> data(4, 1);
    group.allreduce(data, {.op = Op::premul_sum(0.5)});
  });
  for (const Outcome& outcome : outcomes) CHECK(outcome.code == col::ErrorCode::invalid_argument);
}
