// Numbers in every algorithm. Narrow floats: partial results are float32 and rounded once, unless compressed. NaN,
// infinities, zeros of both signs and denormals come out alike. Integers wrap, whatever the order, and their averages
// round toward zero.
#include <vector>

#include <col/col.hpp>

#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/engine/special_inputs.hpp"
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
  const auto no_half = [](int rank) { return 0.3 + 0.7 * rank; };  // a scale that no narrow float can hold
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
    others += bits_of(left_fold(call, inputs, i, size, EveryHopRounds())) != bits_of(left_fold(call, inputs, i, size));
  return others;
}

std::vector<Reduction> compressed(std::vector<Reduction> calls) {
  for (Reduction& call : calls) call.compress = true;
  return calls;
}

template <class T>
void check_halves(int size) {
  const auto inputs = beside_a_large_number<T>(size, elements(size), 0.5F);
  const auto calls = with_ops(every_algorithm(size), {{ReduceOp::sum}, {ReduceOp::avg}});
  const auto narrowed = compressed(calls);
  const auto wide = run_all<T>("memory", calls, inputs);
  const auto narrow = run_all<T>("memory", narrowed, inputs);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    INFO(calls[i].text() << ", " << size << " ranks");
    CHECK(reference_lost(calls[i], inputs) > 0);
    // float32 holds every partial sum exactly, so that all orders give what the fold in rank order gives.
    CHECK(differs_from_left_fold(calls[i], inputs, wide[i]) == "");
    CHECK(differs_between_ranks(calls[i], wide[i]) == "");
    CHECK(other_than_wide(narrowed[i], inputs, narrow[i]) > 0);
    CHECK(differs_from_promise(narrowed[i], inputs, narrow[i]) != "");
    CHECK(differs_between_ranks(narrowed[i], narrow[i]) == "");
    if (calls[i].order != col::FoldOrder::rank_order) continue;
    CHECK(first_problem(narrowed[i], inputs, narrow[i], [&](std::size_t k, int ranks, T got) {
            const T want = left_fold(narrowed[i], inputs, k, ranks, EveryHopRounds());
            return bits_of(want) == bits_of(got) ? "" : show(got) + ", not " + show(want);
          }) == "");
  }
}

const std::vector<std::vector<col::Op>> kOps = {
    {ReduceOp::sum}, {ReduceOp::product}, {ReduceOp::min}, {ReduceOp::max}, {ReduceOp::avg}};

// All results are exact, so they are those of the fold in rank order whatever the order, and whether or not partial
// results are rounded, unless to 8 bits.
template <class T>
void check_specials(int size) {
  const auto inputs = special_inputs<T>(size);
  auto calls = and_in_place(every_algorithm(size));
  calls = with_ops(calls, kOps);
  if (is_narrow_v<T> && !is_float8_v<T>) {
    const auto narrow = compressed(calls);
    calls.insert(calls.end(), narrow.begin(), narrow.end());
  }
  check_results<T>("memory", calls, inputs, Promise::exact);
}

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

TEST_CASE("numerics: narrow floats are rounded once, after a float32 fold over all ranks", "[numerics]") {
  register_memory_backend();
  for (const int size : {2, 3, 5, 8}) {
    check_rounding<col::float16>(size);
    check_rounding<col::bfloat16>(size);
  }
  check_rounding<col::float8_e4m3fn>(5);
  check_rounding<col::float8_e5m2>(3);
}

TEST_CASE("numerics: what rounding at every hop would lose is kept, and is lost when compressed", "[numerics]") {
  register_memory_backend();
  for (const int size : {5, 8}) {
    check_halves<col::bfloat16>(size);
    check_halves<col::float16>(size);
  }
  check_halves<col::float8_e4m3fn>(5);
  check_halves<col::float8_e5m2>(8);
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

TEST_CASE("numerics: NaN, infinities, zeros and denormals come out alike in every algorithm", "[numerics]") {
  register_memory_backend();
  for (const int size : {2, 3, 5}) {
    INFO(size << " ranks");
    check_specials<col::float16>(size);
    check_specials<col::bfloat16>(size);
    check_specials<float>(size);
    check_specials<double>(size);
    if (size == 2) check_specials<col::float8_e4m3fn>(size);
    if (size == 3) check_specials<col::float8_e5m2>(size);
  }
}

TEST_CASE("numerics: a NaN of any one rank reaches all ranks through min and max", "[numerics]") {
  register_memory_backend();
  constexpr int kRanks = 7;
  // Element i is a NaN on rank i % 7 and nowhere else.
  const auto inputs = make_inputs<float>(kRanks, 10 * kRanks, [](int r, std::size_t i) {
    return i % kRanks == static_cast<std::size_t>(r) ? Encoding<float>::nan(r) : static_cast<float>(r);
  });
  const auto calls = with_ops(every_algorithm(kRanks), {{ReduceOp::min}, {ReduceOp::max}});
  const auto outputs = run_all<float>("memory", calls, inputs);
  for (std::size_t c = 0; c < calls.size(); ++c) {
    CHECK(differs_between_ranks(calls[c], outputs[c]) == "");
    CHECK(first_problem(calls[c], inputs, outputs[c], [](std::size_t i, int ranks, float got) -> std::string {
            const bool covers = i % kRanks < static_cast<std::size_t>(ranks);  // a scan may end before that rank
            return covers == std::isnan(got) ? "" : show(got);
          }) == "");
  }
}

TEST_CASE("numerics: denormals are not flushed to zero", "[numerics]") {
  register_memory_backend();
  const auto inputs = make_inputs<col::bfloat16>(4, 64, [](int r, std::size_t) {
    return r == 2 ? Encoding<col::bfloat16>::least_denormal() : col::bfloat16(0.0F);
  });
  const auto calls = with_ops(every_algorithm(4), {{ReduceOp::sum}, {ReduceOp::max}});
  const auto outputs = run_all<col::bfloat16>("memory", calls, inputs);
  for (std::size_t c = 0; c < calls.size(); ++c) {
    CHECK(first_problem(calls[c], inputs, outputs[c], [](std::size_t, int ranks, col::bfloat16 got) -> std::string {
            return got.bits == (ranks > 2 ? 1 : 0) ? "" : show(got);
          }) == "");
  }
}

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
