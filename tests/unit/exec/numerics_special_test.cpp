// NaN, infinities, zeros of both signs and denormals, in every algorithm.
#include <vector>

#include <col/col.hpp>

#include "colcheck/engine/special_inputs.hpp"
#include "support/catch.hpp"
#include "support/memory_channel.hpp"
#include "support/reductions.hpp"

namespace {

using namespace col::colcheck;
using namespace col::test;
using col::ReduceOp;

const std::vector<std::vector<col::Op>> kOps = {
    {ReduceOp::sum}, {ReduceOp::product}, {ReduceOp::min}, {ReduceOp::max}, {ReduceOp::avg}};

std::vector<Reduction> compressed(std::vector<Reduction> calls) {
  for (Reduction& call : calls) call.compress = true;
  return calls;
}

// All results are exact, so they are those of the fold in rank order whatever the order, and whether or not partial
// results are rounded.
template <class T>
void check_specials(int size) {
  const auto inputs = special_inputs<T>(size);
  auto calls = and_in_place(every_algorithm(size));
  calls = with_ops(calls, kOps);
  if (is_half_v<T>) {
    const auto narrow = compressed(calls);
    calls.insert(calls.end(), narrow.begin(), narrow.end());
  }
  check_results<T>("memory", calls, inputs, Promise::exact);
}

}  // namespace

TEST_CASE("numerics: NaN, infinities, zeros and denormals come out alike in every algorithm", "[numerics]") {
  register_memory_backend();
  for (const int size : {2, 3, 5}) {
    INFO(size << " ranks");
    check_specials<col::float16>(size);
    check_specials<col::bfloat16>(size);
    check_specials<float>(size);
    check_specials<double>(size);
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
