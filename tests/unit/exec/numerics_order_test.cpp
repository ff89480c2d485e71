// The order of the fold: rank order where it is asked for, and the same one in every run.
#include <numeric>
#include <vector>

#include <col/col.hpp>
#include <col/select.hpp>

#include "colcheck/engine/number_inputs.hpp"
#include "support/catch.hpp"
#include "support/memory_channel.hpp"
#include "support/reductions.hpp"

namespace {

using namespace col::colcheck;
using namespace col::test;
using col::Op;
using col::ReduceOp;

constexpr std::uint64_t kOrderSeed = 20261124;

const std::vector<std::vector<Op>> kOrderedOps = {
    {ReduceOp::sum}, {ReduceOp::avg}, {ReduceOp::product}, {Op::premul_sum(0.3)}};

// How many elements another order gives other bits: from right to left.
template <class T>
std::size_t depends_on_order(PerRank<T> inputs) {
  const Reduction call;
  const PerRank<T> reversed(inputs.rbegin(), inputs.rend());
  std::size_t others = 0;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const int size = static_cast<int>(inputs.size());
    others += bits_of(left_fold(call, inputs, i, size)) != bits_of(left_fold(call, reversed, i, size));
  }
  return others;
}

template <class T>
void check_left_fold(const std::vector<Reduction>& calls, int size, std::size_t block) {
  const auto inputs = ill_conditioned_inputs<T>(size, block * static_cast<std::size_t>(size), kOrderSeed + block);
  // Two numbers have one sum; and of narrow floats the rounding at the end leaves little to see.
  if (size > 2 && block > 10 && !is_narrow_v<T>) CHECK(depends_on_order(inputs) > inputs[0].size() / 8);
  check_results<T>("memory", calls, inputs, Promise::exact);
}

}  // namespace

TEST_CASE("deterministic: every reduction is the fold in rank order, to the bit", "[numerics]") {
  register_memory_backend();
  for (const int size : {2, 3, 4, 5, 7, 8, 9}) {
    auto calls = and_in_place(every_default(size, true));
    calls = with_ops(calls, kOrderedOps);
    for (const std::size_t block : {1, 2, 13, 64, 1500}) {
      INFO(size << " ranks, blocks of " << block << ", seed " << kOrderSeed + block);
      check_left_fold<float>(calls, size, block);
    }
    check_left_fold<double>(calls, size, 13);
    check_left_fold<col::bfloat16>(calls, size, 13);
  }
}

TEST_CASE("deterministic: so is every algorithm that says so, by name", "[numerics]") {
  register_memory_backend();
  for (const int size : {3, 5, 8}) {
    auto calls = every_algorithm(size);
    std::erase_if(calls, [](const Reduction& call) { return call.order != col::FoldOrder::rank_order; });
    REQUIRE(calls.size() >= 6);
    for (Reduction& call : calls) call.deterministic = call.root == 0;
    check_left_fold<float>(with_ops(calls, kOrderedOps), size, 37);
  }
}

TEST_CASE("deterministic: explain says which algorithm in rank order is chosen, whatever the size", "[numerics]") {
  register_memory_backend();
  for (const int size : {2, 4, 6, 9}) {
    const auto outcomes = run_threads(size, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = size, .backend_name = "memory"});
      for (const col::Collective collective : reductions()) {
        for (const std::size_t bytes : {0UL, 4UL, 4000UL, 400'000UL, 40'000'000UL}) {
          const auto name = [&](const std::string& text) {
            return col::AlgorithmSpec::parse(std::string_view(text).substr(0, text.find(": "))).name;
          };
          const std::string free = group.explain(collective, bytes);
          const std::string ordered = group.explain(collective, bytes, col::DType::float32, {.deterministic = true});
          const col::Algorithm* chosen = col::find_algorithm(collective, name(ordered));
          expect(chosen != nullptr && chosen->order == col::FoldOrder::rank_order, ordered);
          const col::Algorithm* otherwise = col::find_algorithm(collective, name(free));
          if (otherwise != nullptr && otherwise->order == col::FoldOrder::rank_order) continue;
          expect(ordered.find("rank order") != std::string::npos, "no reason: " + ordered);
        }
      }
    });
    INFO(show(outcomes));
    CHECK(all_good(outcomes));
  }
}

TEST_CASE("deterministic: an algorithm in another order is refused by name, and the group goes on", "[numerics]") {
  register_memory_backend();
  const auto outcomes = run_threads(4, [](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 4, .backend_name = "memory"});
    const std::vector<float> input(8, 1.0F);
    int refused = 0;
    for (Reduction call : every_algorithm(4)) {
      if (call.order == col::FoldOrder::rank_order) continue;
      call.deterministic = true;
      try {
        output_of(group, call, input);
        expect(false, call.text() + " was not refused");
      } catch (const col::Error& error) {
        expect(error.code() == col::ErrorCode::invalid_argument, error.what());
        expect(error.message().find("rank order") != std::string::npos, error.what());
        ++refused;
      }
    }
    expect(refused >= 10);
    expect(output_of(group, Reduction{}, input) == std::vector<float>(8, 4.0F));
  });
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

TEST_CASE("numerics: the same inputs give the same bits in every run, however messages arrive", "[numerics]") {
  for (const int size : {3, 5, 8}) {
    const auto calls = with_ops(every_algorithm(size), {{ReduceOp::sum}, {ReduceOp::product}});
    const std::size_t elements = 29 * static_cast<std::size_t>(size);
    const auto floats = ill_conditioned_inputs<float>(size, elements, kOrderSeed);
    const auto halves = ill_conditioned_inputs<col::float16>(size, elements, kOrderSeed);
    std::vector<PerRank<float>> first_floats;
    std::vector<PerRank<col::float16>> first_halves;
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      const MemoryOptions late{.name = fmt::format("late_{}", seed),
                               .longest_delay = std::chrono::microseconds(100 * (seed - 1)),
                               .seed = seed,
                               .rendezvous = seed % 2 == 0};
      register_memory_backend(late);
      auto some_floats = run_all<float>(late.name, calls, floats);
      auto some_halves = run_all<col::float16>(late.name, calls, halves);
      if (seed == 1) {
        first_floats = some_floats;
        first_halves = some_halves;
      }
      for (std::size_t i = 0; i < calls.size(); ++i) {
        INFO(calls[i].text() << ", " << size << " ranks, seeds " << kOrderSeed << " and " << seed);
        for (std::size_t r = 0; r < floats.size(); ++r) {
          CHECK(same_bits(some_floats[i][r], first_floats[i][r]));
          CHECK(same_bits(some_halves[i][r], first_halves[i][r]));
        }
      }
    }
  }
}
