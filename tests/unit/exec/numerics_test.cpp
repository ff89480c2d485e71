// 16-bit floats, in every algorithm: partial results are float32 and rounded once, unless compressed.
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

constexpr std::uint64_t kNumericsSeed = 20261122;
constexpr std::size_t kBlock = 37;  // not a multiple of what the loops take at once

std::size_t elements(int size) {
  return kBlock * static_cast<std::size_t>(size);
}

template <class T>
void check_rounding(int size) {
  const auto calls = and_in_place(every_algorithm(size));
  const auto no_half = [](int rank) { return 0.3 + 0.7 * rank; };  // a scale that no 16-bit float can hold
  INFO(size << " ranks, seed " << kNumericsSeed);
  check_results<T>("memory", with_ops(calls, {{ReduceOp::sum}, {ReduceOp::avg}, scales(size, no_half)}),
                   random_inputs<T>(size, elements(size), kNumericsSeed, 0, 4), Promise::any);
  check_results<T>("memory", with_ops(calls, {{ReduceOp::product}}),
                   random_inputs<T>(size, elements(size), kNumericsSeed, 0.5, 2), Promise::any);
}

// How many elements of all outputs are other than float32 partial results make them.
template <class T>
std::size_t other_than_wide(const Reduction& call, const PerRank<T>& inputs, const PerRank<T>& outputs) {
  std::size_t others = 0;
  first_problem(call, inputs, outputs, [&](std::size_t i, int ranks, T got) -> std::string {
    others += bits_of(got) != bits_of(left_fold(call, inputs, i, ranks));
    return {};
  });
  return others;
}

// The same for a reference that rounds every partial result.
template <class T>
std::size_t reference_lost(const Reduction& call, const PerRank<T>& inputs) {
  std::size_t others = 0;
  const int size = static_cast<int>(inputs.size());
  for (std::size_t i = 0; i < inputs[0].size(); ++i)
    others += bits_of(left_fold(call, inputs, i, size, true)) != bits_of(left_fold(call, inputs, i, size));
  return others;
}

template <class T>
void check_halves(int size) {
  const auto inputs = beside_a_large_number<T>(size, elements(size), 0.5F);
  const auto calls = with_ops(every_algorithm(size), {{ReduceOp::sum}, {ReduceOp::avg}});
  auto compressed = calls;
  for (Reduction& call : compressed) call.compress = true;
  const auto wide = run_all<T>("memory", calls, inputs);
  const auto narrow = run_all<T>("memory", compressed, inputs);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    INFO(calls[i].text() << ", " << size << " ranks");
    CHECK(reference_lost(calls[i], inputs) > 0);
    // float32 holds every partial sum exactly, so that all orders give what the fold in rank order gives.
    CHECK(differs_from_left_fold(calls[i], inputs, wide[i]) == "");
    CHECK(differs_between_ranks(calls[i], wide[i]) == "");
    CHECK(other_than_wide(compressed[i], inputs, narrow[i]) > 0);
    CHECK(differs_from_promise(compressed[i], inputs, narrow[i]) != "");
    CHECK(differs_between_ranks(compressed[i], narrow[i]) == "");
    if (calls[i].order != col::FoldOrder::rank_order) continue;
    CHECK(first_problem(compressed[i], inputs, narrow[i], [&](std::size_t k, int ranks, T got) {
            const T want = left_fold(compressed[i], inputs, k, ranks, true);
            return bits_of(want) == bits_of(got) ? "" : show(got) + ", not " + show(want);
          }) == "");
  }
}

}  // namespace

TEST_CASE("numerics: 16-bit floats are rounded once, after a float32 fold over all ranks", "[numerics]") {
  register_memory_backend();
  for (const int size : {2, 3, 5, 8}) {
    check_rounding<col::float16>(size);
    check_rounding<col::bfloat16>(size);
  }
}

TEST_CASE("numerics: what rounding at every hop would lose is kept, and is lost when compressed", "[numerics]") {
  register_memory_backend();
  for (const int size : {5, 8}) {
    check_halves<col::bfloat16>(size);
    check_halves<col::float16>(size);
  }
}

TEST_CASE("numerics: 256 and seven halves are 260 in bfloat16, by every allreduce", "[numerics]") {
  register_memory_backend();
  const auto inputs = beside_a_large_number<col::bfloat16>(8, 8, 0.5F);
  const auto calls = every_algorithm(8);
  const auto outputs = run_all<col::bfloat16>("memory", calls, inputs);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].collective != col::Collective::allreduce) continue;
    for (const col::bfloat16 value : outputs[i][3]) CHECK(static_cast<float>(value) == 260.0F);
  }
}
