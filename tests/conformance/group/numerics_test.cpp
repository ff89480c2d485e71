// What <col/group.hpp> promises about numbers, on every backend: by the algorithm that is chosen, and by everything
// that the backend does in its own way. The algorithms themselves are tested over memory, in tests/unit/exec.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <col/col.hpp>
#include <col/select.hpp>

#include "colcheck/engine/special_inputs.hpp"
#include "conformance/backend/backend_ranks.hpp"
#include "conformance/group/worlds.hpp"
#include "support/reductions.hpp"

namespace col::test {
namespace {

using namespace colcheck;

constexpr std::uint64_t kSeed = 20261125;
constexpr std::size_t kBlock = 41;

std::size_t elements(int size) {
  return kBlock * static_cast<std::size_t>(size);
}

// The reductions that a backend does in its own way, as it declares them.
std::vector<NativeEntry> native_reductions(const std::string& backend) {
  std::vector<NativeEntry> found;
  const auto outcomes = run_threads(2, [&](int rank, Context& context) {
    const auto channel = connect_rank(*col::find_backend(backend), context.spec().store, rank, 2);
    if (rank != 0) return;
    for (const NativeEntry& entry : channel->native_entries()) {
      if (row_of(entry.collective).reduces()) found.push_back(entry);
    }
  });
  INFO(show(outcomes));
  REQUIRE(all_good(outcomes));
  REQUIRE((backend != "gloo" || !found.empty()));  // or the cases below would test nothing of it
  return found;
}

// The chosen algorithm of every reduction, and the backend's own that are declared to keep what the case is about.
template <class Keeps>
std::vector<Reduction> calls_on(const std::string& backend, int size, Keeps keeps) {
  std::vector<Reduction> calls = every_default(size);
  for (const NativeEntry& entry : native_reductions(backend)) {
    if (!keeps(entry)) continue;
    Reduction call;
    call.collective = entry.collective;
    call.algorithm = entry.name;
    calls.push_back(call);
    if (entry.collective != Collective::reduce) continue;
    call.root = size - 1;
    calls.push_back(call);
  }
  return and_in_place(calls);
}

bool rounds_once(const NativeEntry& entry) {
  return !entry.rounds_per_hop;
}
bool keeps_nan(const NativeEntry& entry) {
  return !entry.drops_nan;
}

template <class T>
void check_halves(const std::string& backend, int size) {
  const auto calls = calls_on(backend, size, rounds_once);
  const auto no_half = [](int rank) { return 0.3 + 0.7 * rank; };  // a scale that no narrow float can hold
  check_results(backend, with_ops(calls, {{ReduceOp::sum}, {ReduceOp::avg}, scales(size, no_half)}),
                random_inputs<T>(size, elements(size), kSeed, 0, 4), Promise::any);
  check_results(backend, with_ops(calls, {{ReduceOp::product}}), random_inputs<T>(size, elements(size), kSeed, 0.5, 2),
                Promise::any);
  // Rounding at any hop would show.
  check_results(backend, with_ops(calls, {{ReduceOp::sum}, {ReduceOp::avg}}),
                beside_a_large_number<T>(size, elements(size), 0.5F), Promise::exact);
}

template <class T>
void check_specials(const std::string& backend, int size) {
  const std::vector<std::vector<Op>> ops = {
      {ReduceOp::sum}, {ReduceOp::product}, {ReduceOp::min}, {ReduceOp::max}, {ReduceOp::avg}};
  check_results(backend, with_ops(calls_on(backend, size, keeps_nan), ops), special_inputs<T>(size), Promise::exact);
}

template <class T>
void check_integers(const std::string& backend, int size) {
  std::vector<std::vector<Op>> ops;
  for (int i = 0; i < col::kReduceOpCount; ++i) ops.push_back({static_cast<ReduceOp>(i)});
  ops.push_back(scales(size, [](int r) { return 5 - 3 * r; }));
  const auto any = [](const NativeEntry&) { return true; };
  check_results(backend, with_ops(calls_on(backend, size, any), ops), random_integers<T>(size, elements(size), kSeed),
                Promise::exact);
}

TEST_CASE("numerics: narrow floats are rounded once on every backend, and by its own collectives", "[group]") {
  for (const std::string& backend : usable_backends()) {
    for (const int size : {2, 5, 8}) {
      check_halves<col::float16>(backend, size);
      check_halves<col::bfloat16>(backend, size);
    }
    check_halves<col::float8_e4m3fn>(backend, 5);
    check_halves<col::float8_e5m2>(backend, 4);
  }
}

TEST_CASE("numerics: NaN, infinities, zeros and denormals come out alike on every backend", "[group]") {
  for (const std::string& backend : usable_backends()) {
    for (const int size : {2, 3, 5}) {
      check_specials<col::float16>(backend, size);
      check_specials<col::bfloat16>(backend, size);
      check_specials<float>(backend, size);
      check_specials<double>(backend, size);
    }
    check_specials<col::float8_e4m3fn>(backend, 3);
    check_specials<col::float8_e5m2>(backend, 2);
  }
}

TEST_CASE("numerics: integers wrap and are averaged toward zero on every backend", "[group]") {
  for (const std::string& backend : usable_backends()) {
    for (const int size : {2, 5}) {
      check_integers<std::int8_t>(backend, size);
      check_integers<std::uint8_t>(backend, size);
      check_integers<std::int32_t>(backend, size);
      check_integers<std::uint64_t>(backend, size);
    }
  }
}

TEST_CASE("numerics: two runs with the same inputs give the same bits, on every backend", "[group]") {
  for (const std::string& backend : usable_backends()) {
    for (const int size : {3, 8}) {
      const auto calls = with_ops(calls_on(backend, size, rounds_once), {{ReduceOp::sum}, {ReduceOp::product}});
      const auto inputs = ill_conditioned_inputs<float>(size, elements(size), kSeed);
      const auto first = run_all<float>(backend, calls, inputs);
      const auto second = run_all<float>(backend, calls, inputs);
      for (std::size_t i = 0; i < calls.size(); ++i) {
        INFO(backend << ", " << calls[i].text() << ", " << size << " ranks, seed " << kSeed);
        for (std::size_t r = 0; r < inputs.size(); ++r) CHECK(same_bits(first[i][r], second[i][r]));
      }
    }
  }
}

TEST_CASE("numerics: compressed narrow floats are the same on all ranks, and rounded on the way", "[group]") {
  for (const std::string& backend : usable_backends()) {
    const auto inputs = beside_a_large_number<col::bfloat16>(8, elements(8), 0.5F);
    std::vector<Reduction> calls = every_default(8);
    for (Reduction& call : calls) call.compress = true;
    const auto outputs = run_all<col::bfloat16>(backend, calls, inputs);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      INFO(backend << ", " << calls[i].text());
      CHECK(differs_between_ranks(calls[i], outputs[i]) == "");
      // Shared memory's own collectives have nothing to compress, and so lose nothing.
      if (backend == "shm")
        CHECK(differs_from_left_fold(calls[i], inputs, outputs[i]) == "");
      else
        CHECK(differs_from_left_fold(calls[i], inputs, outputs[i]) != "");
    }
  }
}

// The calls that are chosen give the fold in rank order, to the bit.
void check_rank_order(const std::string& backend, int size, bool deterministic) {
  auto calls = and_in_place(every_default(size, deterministic));
  calls = with_ops(calls, {{ReduceOp::sum}, {ReduceOp::avg}, {ReduceOp::product}, {Op::premul_sum(0.3)}});
  // What many elements show, many slices and segments, they show with three ranks too.
  for (const std::size_t block :
       size == 3 ? std::vector<std::size_t>{1, 7, 300, 9000} : std::vector<std::size_t>{1, 7, 300}) {
    const auto inputs = ill_conditioned_inputs<float>(size, block * static_cast<std::size_t>(size), kSeed + block);
    check_results(backend, calls, inputs, Promise::exact);
  }
  // Lengths that no number of ranks divides.
  calls = every_default(size, deterministic);
  std::erase_if(calls, [](const Reduction& call) { return row_of(call.collective).in == Extent::blocks; });
  for (const bool asynchronous : {false, true}) {
    for (Reduction& call : calls) call.asynchronous = asynchronous;
    for (const std::size_t count : {1, 2, 5, 3001})
      check_results(backend, calls, ill_conditioned_inputs<float>(size, count, kSeed + count), Promise::exact);
  }
}

// Also over memory: so all backends give the same bits.
TEST_CASE("deterministic: the fold in rank order, to the bit, on every backend", "[group]") {
  for (const std::string& backend : usable_backends()) {
    for (const int size : {2, 3, 4, 5, 8}) check_rank_order(backend, size, true);
  }
}

TEST_CASE("deterministic: COL_NUMERICS=deterministic makes all calls so", "[group]") {
  const Setting setting("COL_NUMERICS", "deterministic");
  for (const std::string& backend : usable_backends()) check_rank_order(backend, 5, false);
  threads_on_each_backend(5, [](Group& group) {
    std::vector<float> data(8, 1.0f);
    for (const char* algorithm : {"ring", "mst"})
      expect_error(ErrorCode::invalid_argument, "rank order", [&] { group.allreduce(data, {.algorithm = algorithm}); });
    group.barrier();
  });
}

TEST_CASE("deterministic: without it, the order is the algorithm's own", "[group]") {
  // What the cases above would see if nothing kept to rank order.
  const std::vector<Reduction> ring(1, {.algorithm = "ring"});
  const auto inputs = ill_conditioned_inputs<float>(5, 3000, kSeed);
  for (const std::string& backend : usable_backends())
    CHECK(differs_from_left_fold(ring[0], inputs, run_all<float>(backend, ring, inputs)[0]) != "");
}

TEST_CASE("deterministic: nothing that combines in another order, be it an algorithm or a backend's own", "[group]") {
  for (const std::string& backend : usable_backends()) {
    std::vector<Reduction> calls = every_algorithm(3);
    std::erase_if(calls, [](const Reduction& call) { return call.order == FoldOrder::rank_order; });
    const std::vector<NativeEntry> natives = native_reductions(backend);
    for (const NativeEntry& entry : natives) {
      if (entry.rank_order) continue;
      calls.emplace_back();
      calls.back().collective = entry.collective;
      calls.back().algorithm = entry.name;
    }
    const auto outcomes =
        run_threads(3, rank_body(3, backend, [&](Group& group) {
                      const std::vector<float> input(6, 1.0F);
                      for (Reduction call : calls) {
                        call.deterministic = true;
                        expect_error(ErrorCode::invalid_argument, "rank order", [&] { output_of(group, call, input); });
                      }
                      for (const Reduction& call : every_default(3, true)) {
                        const std::string text =
                            group.explain(call.collective, 1 << 20, DType::float32, call.options(group.rank()));
                        const auto spec = AlgorithmSpec::parse(std::string_view(text).substr(0, text.find(": ")));
                        const Algorithm* chosen = col::find_algorithm(call.collective, spec.name);
                        const bool native = std::any_of(natives.begin(), natives.end(), [&](const NativeEntry& entry) {
                          return entry.collective == call.collective && entry.name == spec.name && entry.rank_order;
                        });
                        expect(native || (chosen != nullptr && chosen->order == FoldOrder::rank_order), text);
                        output_of(group, call, input);
                      }
                    }));
    INFO(backend);
    check_good(outcomes);
  }
}

TEST_CASE("numerics: COL_NUMERICS=strict loses no NaN and rounds narrow floats once", "[group]") {
  const Setting setting("COL_NUMERICS", "strict");
  threads_on_each_backend(3, [](Group& group) {
    std::vector<float> data{group.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0f};
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      std::vector<float> out(1);
      group.allreduce(data, out, {.op = op});
      expect(out[0] != out[0]);
    }
    // 256 + 1 + 1: rounded at every hop it stays 256.
    std::vector<col::bfloat16> in{col::bfloat16(group.rank() == 0 ? 256.0f : 1.0f)}, out(1);
    group.allreduce(in, out);
    expect(static_cast<float>(out[0]) == 258.0f);
  });
}

}  // namespace
}  // namespace col::test
