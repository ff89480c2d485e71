// What <col/group.hpp> promises about numbers, on every backend: by the algorithm that is chosen, and by everything
// that the backend does in its own way. The algorithms themselves are tested over memory, in tests/unit/exec.
#include <thread>
#include <vector>

#include <col/col.hpp>
#include <col/select.hpp>

#include "colcheck/engine/special_inputs.hpp"
#include "conformance/group/backends.hpp"
#include "support/catch.hpp"
#include "support/reductions.hpp"

namespace {

using namespace col::colcheck;
using namespace col::test;
using col::NativeEntry;
using col::Op;
using col::ReduceOp;

constexpr std::uint64_t kSeed = 20261125;
constexpr std::size_t kBlock = 41;

std::size_t elements(int size) {
  return kBlock * static_cast<std::size_t>(size);
}

// The reductions that a backend does in its own way, as it declares them.
std::vector<NativeEntry> native_reductions(const std::string& backend) {
  std::vector<NativeEntry> found;
  std::vector<std::string> problems(2);
  const auto store = col::make_memory_store();
  const auto connect = [&](int rank) {
    try {
      std::vector<col::PeerInfo> peers(2);
      for (int r = 0; r < 2; ++r)
        peers[static_cast<std::size_t>(r)] = {
            .rank = r, .global_rank = r, .pid = 0, .hostname = "here", .boot_id = "b", .network_namespace = "n"};
      col::WaitContext wait(col::Deadline::after(std::chrono::seconds(20)));
      const auto channel = col::find_backend(backend)->connect({.group = "natives",
                                                                .rank = rank,
                                                                .size = 2,
                                                                .store = store,
                                                                .peers = peers,
                                                                .same_host = true,
                                                                .token = 0xc01,
                                                                .socket_ifname = {}},
                                                               wait);
      if (rank != 0) return;
      for (const NativeEntry& entry : channel->native_entries()) {
        if (row_of(entry.collective).reduces()) found.push_back(entry);
      }
    } catch (const std::exception& error) {
      problems[static_cast<std::size_t>(rank)] = error.what();
    }
  };
  {
    std::jthread other(connect, 1);
    connect(0);
  }
  REQUIRE(problems == std::vector<std::string>(2));
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
    if (entry.collective != col::Collective::reduce) continue;
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
  const auto no_half = [](int rank) { return 0.3 + 0.7 * rank; };  // a scale that no 16-bit float can hold
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

}  // namespace

TEST_CASE("numerics: 16-bit floats are rounded once on every backend, and by its own collectives", "[group]") {
  for (const std::string& backend : usable_backends()) {
    for (const int size : {2, 5, 8}) {
      check_halves<col::float16>(backend, size);
      check_halves<col::bfloat16>(backend, size);
    }
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

TEST_CASE("numerics: compressed 16-bit floats are the same on all ranks, and rounded on the way", "[group]") {
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

// Also over memory: so all backends give the same bits.
TEST_CASE("deterministic: the fold in rank order, to the bit, on every backend", "[group]") {
  for (const std::string& backend : usable_backends()) {
    for (const int size : {2, 3, 5, 8}) {
      auto calls = and_in_place(every_default(size, true));
      calls = with_ops(calls, {{ReduceOp::sum}, {ReduceOp::avg}, {ReduceOp::product}, {Op::premul_sum(0.3)}});
      // What many elements show, many slices and segments, they show with three ranks too.
      for (const std::size_t block :
           size == 3 ? std::vector<std::size_t>{1, 7, 300, 9000} : std::vector<std::size_t>{1, 7, 300}) {
        const auto inputs = ill_conditioned_inputs<float>(size, block * static_cast<std::size_t>(size), kSeed + block);
        check_results(backend, calls, inputs, Promise::exact);
      }
    }
  }
}

TEST_CASE("deterministic: nothing that combines in another order, be it an algorithm or a backend's own", "[group]") {
  for (const std::string& backend : usable_backends()) {
    std::vector<Reduction> calls = every_algorithm(3);
    std::erase_if(calls, [](const Reduction& call) { return call.order == col::FoldOrder::rank_order; });
    const std::vector<NativeEntry> natives = native_reductions(backend);
    for (const NativeEntry& entry : natives) {
      if (entry.rank_order) continue;
      calls.emplace_back();
      calls.back().collective = entry.collective;
      calls.back().algorithm = entry.name;
    }
    const auto outcomes = run_threads(3, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 3, .backend_name = backend});
      const std::vector<float> input(6, 1.0F);
      for (Reduction call : calls) {
        call.deterministic = true;
        try {
          output_of(group, call, input);
          expect(false, call.text() + " was not refused");
        } catch (const col::Error& error) {
          expect(error.code() == col::ErrorCode::invalid_argument, error.what());
          expect(error.message().find("rank order") != std::string::npos, error.what());
        }
      }
      for (const Reduction& call : every_default(3, true)) {
        const std::string text = group.explain(call.collective, 1 << 20, col::DType::float32, call.options(rank));
        const auto spec = col::AlgorithmSpec::parse(std::string_view(text).substr(0, text.find(": ")));
        const col::Algorithm* chosen = col::find_algorithm(call.collective, spec.name);
        const bool native = std::any_of(natives.begin(), natives.end(), [&](const NativeEntry& entry) {
          return entry.collective == call.collective && entry.name == spec.name && entry.rank_order;
        });
        expect(native || (chosen != nullptr && chosen->order == col::FoldOrder::rank_order), text);
        output_of(group, call, input);
      }
    });
    INFO(backend << "\n" << show(outcomes));
    CHECK(all_good(outcomes));
  }
}
