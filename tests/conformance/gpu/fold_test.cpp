// Reductions by our own kernels: bitwise operators, scans, reduce_scatterv, and what has to be combined in rank order.
// Every result must be the fold in rank order, to the bit.
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/special_inputs.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/graphs.hpp"
#include "support/catch.hpp"
#include "support/reductions.hpp"

namespace col::test {
namespace {

using col::colcheck::PerRank;
using col::colcheck::Reduction;
using col::colcheck::same_bits;

const std::vector<Op> kBitwise = {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor};
const std::vector<Op> kArithmetic = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::avg};

// This rank's output. Throws when an input was changed, or an output that nothing was for.
template <class T>
std::vector<T> output_of(Group& group, int gpu, const Reduction& call, const std::vector<T>& input) {
  const auto mine = covered(call, group.rank(), group.size(), input.size());
  const bool scatters = call.collective == Collective::reduce_scatter || call.collective == Collective::reduce_scatterv;
  const std::vector<T> before = call.in_place ? input : std::vector<T>(scatters ? mine.count : input.size(), T(77));
  const GpuArray<T> in(gpu, input), out(gpu, before);
  if (scatters && call.in_place)
    make_call(group, call, out, out.part(mine.begin, mine.count));
  else
    make_call(group, call, call.in_place ? out : in, out);
  expect(same_bits(in.values(), input), call.text() + " changed its input");
  std::vector<T> values = out.values();
  if (mine.count == 0 && !scatters) expect(same_bits(values, before), call.text() + " wrote to another rank's output");
  if (scatters && !call.in_place) return values;
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(scatters ? mine.begin : 0);
  return {begin, begin + static_cast<std::ptrdiff_t>(mine.count)};
}

// Makes the calls in one group, and judges what they gave.
template <class T>
void check_calls(const std::vector<Reduction>& calls, const PerRank<T>& inputs) {
  const int ranks = static_cast<int>(inputs.size());
  need_own_gpus(ranks);  // processes would leave their outputs behind
  std::vector<PerRank<T>> outputs(calls.size(), PerRank<T>(inputs.size()));
  const auto outcomes = run_gpu_ranks(ranks, [&](Group& group, int gpu) {
    const auto r = static_cast<std::size_t>(gpu);
    for (std::size_t i = 0; i < calls.size(); ++i) outputs[i][r] = output_of(group, gpu, calls[i], inputs[r]);
  });
  INFO(show(outcomes));
  REQUIRE(all_good(outcomes));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CHECK(differs_from_left_fold(calls[i], inputs, outputs[i]) == "");
    CHECK(differs_between_ranks(calls[i], outputs[i]) == "");
  }
}

// A call of each collective with each operator, every other one in place.
std::vector<Reduction> calls_of(const std::vector<Collective>& collectives, const std::vector<Op>& ops, int ranks,
                                const std::string& algorithm = "") {
  std::vector<Reduction> calls;
  for (const Collective collective : collectives) {
    for (const Op& op : ops) {
      Reduction call;
      call.collective = collective;
      call.algorithm = algorithm;
      call.ops = {op};
      call.root = ranks - 1;
      call.in_place = calls.size() % 2 == 1;
      calls.push_back(call);
    }
  }
  return calls;
}

template <class T>
void check_bitwise(int ranks, std::size_t per_rank) {
  const auto inputs = col::colcheck::random_integers<T>(ranks, per_rank * static_cast<std::size_t>(ranks), per_rank);
  check_calls(calls_of(reductions(), kBitwise, ranks), inputs);
}

// Each rank with a factor of its own.
std::vector<Op> scaled(int ranks, bool whole) {
  std::vector<Op> ops;
  for (int r = 0; r < ranks; ++r) ops.push_back(Op::premul_sum(whole ? 3 - 2 * r : 0.3 - 0.7 * r));
  return ops;
}

template <class T>
void check_arithmetic(const std::vector<Collective>& collectives, const PerRank<T>& inputs) {
  const int ranks = static_cast<int>(inputs.size());
  auto calls = calls_of(collectives, kArithmetic, ranks, "fold");
  for (Reduction call : calls_of(collectives, {ReduceOp::sum}, ranks, "fold")) {
    call.ops = scaled(ranks, std::is_integral_v<T>);
    calls.push_back(call);
  }
  check_calls(calls, inputs);
}

template <class T>
void check_integers(const std::vector<Collective>& collectives) {
  check_arithmetic(collectives, col::colcheck::random_integers<T>(3, 3 * 70, 3));
}

template <class T>
void check_floats(const std::vector<Collective>& collectives, int ranks = 3) {
  check_arithmetic(collectives, col::colcheck::special_inputs<T>(ranks));
  check_arithmetic(collectives,
                   col::colcheck::ill_conditioned_inputs<T>(ranks, 50 * static_cast<std::size_t>(ranks), 5));
}

GPU_TEST_CASE("gpu fold: bitwise reductions of every integer type", "[gpu]") {
  check_bitwise<std::int8_t>(2, 257);
  check_bitwise<std::uint8_t>(2, 257);
  check_bitwise<std::int32_t>(2, 257);
  check_bitwise<std::uint32_t>(2, 257);
  check_bitwise<std::int64_t>(2, 257);
  check_bitwise<std::uint64_t>(2, 257);
}

GPU_TEST_CASE("gpu fold: bitwise reductions of few and many elements on few and many ranks", "[gpu]") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const std::size_t per_rank : {0, 1, 999}) check_bitwise<std::int32_t>(ranks, per_rank);
  }
  check_bitwise<std::uint8_t>(4, 33);
}

GPU_TEST_CASE("gpu fold: vectors that no number of ranks divides", "[gpu]") {
  const std::vector<Collective> whole = {Collective::allreduce, Collective::reduce, Collective::scan,
                                         Collective::exscan};
  for (const std::size_t count : {1, 2, 5, 1001}) {
    check_calls(calls_of(whole, kBitwise, 4), col::colcheck::random_integers<std::uint64_t>(4, count, count));
    check_calls(calls_of(whole, kBitwise, 3), col::colcheck::random_integers<std::int8_t>(3, count, count));
  }
}

GPU_TEST_CASE("gpu fold: every operator on every type is the fold in rank order, rounded once", "[gpu]") {
  const std::vector<Collective> some = {Collective::allreduce, Collective::scan, Collective::exscan};
  check_integers<std::int8_t>(some);
  check_integers<std::uint8_t>(some);
  check_integers<std::int32_t>(reductions());
  check_integers<std::uint32_t>(some);
  check_integers<std::int64_t>(some);
  check_integers<std::uint64_t>(some);
  check_floats<col::float16>(reductions());
  check_floats<col::bfloat16>(some);
  check_floats<col::float8_e4m3fn>(some);
  check_floats<col::float8_e5m2>(reductions());
  check_floats<float>(some);
  check_floats<double>(some);
  check_floats<col::bfloat16>(some, 1);
  check_floats<float>(some, 8);
}

GPU_TEST_CASE("gpu fold: it is chosen where NCCL cannot serve, and NCCL elsewhere", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int) {
    const auto chosen = [&](Collective collective, const Options& options, DType dtype = DType::int32) {
      const std::string text = group.explain(collective, 1 << 20, dtype, options);
      return text.substr(0, text.find(':'));
    };
    expect(chosen(Collective::allreduce, {}) == "nccl", "a sum");
    expect(chosen(Collective::allreduce, {.op = ReduceOp::bxor}) == "fold", "bxor");
    expect(chosen(Collective::allreduce, {.deterministic = true}, DType::float16) == "fold", "deterministic");
    expect(chosen(Collective::reduce_scatter, {.op = Op::premul_sum(2), .deterministic = true}) == "fold", "scaled");
    expect(chosen(Collective::reduce_scatterv, {}) == "fold", "reduce_scatterv");
    expect(chosen(Collective::allreduce, {}, DType::float8_e5m2) == "fold", "8 bits");
    expect(chosen(Collective::allgather, {}, DType::float8_e5m2) == "nccl", "8 bits, moved");
    expect(chosen(Collective::scan, {}) == "fold", "scan");
    expect(chosen(Collective::exscan, {}) == "fold", "exscan");
  }));
}

GPU_TEST_CASE("gpu fold: deterministic calls are the fold in rank order", "[gpu]") {
  const auto inputs = col::colcheck::ill_conditioned_inputs<col::float16>(4, 4 * 300, 11);
  auto calls = calls_of(reductions(), {ReduceOp::sum, ReduceOp::avg}, 4);
  for (Reduction& call : calls) call.deterministic = true;
  check_calls(calls, inputs);
}

GPU_TEST_CASE("gpu fold: asynchronous calls give the same", "[gpu]") {
  auto calls = calls_of(reductions(), {ReduceOp::bxor, ReduceOp::avg}, 4);
  for (Reduction& call : calls) call.asynchronous = true;
  for (Reduction& call : calls) call.deterministic = true;
  check_calls(calls, col::colcheck::random_integers<std::int32_t>(4, 4 * 100, 2));
}

GPU_TEST_CASE("gpu fold: it is refused while its stream is captured, and the group goes on", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const nccl_backend::GpuStream stream(cuda());
    const Options options{.op = ReduceOp::bor, .stream = {stream.get()}};
    const GpuArray<std::int32_t> in(gpu, std::vector<std::int32_t>(100, 1 << gpu)), out(gpu, std::size_t{100});
    const auto refused = [&](const Options& asked) {
      try {
        group.allreduce(in, out, asked);
        return std::string("it was captured");
      } catch (const Error& error) {
        return error.code() == ErrorCode::unavailable ? error.message() : std::string("another error");
      }
    };
    group.allreduce(in, out, options);
    group.allreduce(in, out, {.stream = options.stream});
    Capture capture(stream.get());
    expect(refused(options).find("outside of the capture") != std::string::npos, "a call as before");
    expect(refused({.stream = options.stream, .deterministic = true}).find("outside") != std::string::npos,
           "a deterministic one");
    group.allreduce(in, out, {.stream = options.stream});
    capture.end();
    group.allreduce(in, out, options);
    expect(out.values() == std::vector<std::int32_t>(100, 3), "the bits");
    capture.replay();
    expect(out.values() == std::vector<std::int32_t>(100, 3), "the sum");
  }));
}

GPU_TEST_CASE("gpu fold: calls in two streams share the memory that it takes", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const nccl_backend::GpuStream first(cuda()), second(cuda());
    for (int round = 0; round < 5; ++round) {
      const GpuArray<std::int32_t> one(gpu, std::vector<std::int32_t>(400, 1 << gpu)),
          other(gpu, std::vector<std::int32_t>(300, 4 << gpu));
      const GpuArray<std::int32_t> one_out(gpu, std::size_t{400}), other_out(gpu, std::size_t{300});
      auto a = group.iallreduce(one, one_out, {.op = ReduceOp::bor, .stream = {first.get()}});
      auto b = group.iscan(other, other_out, {.stream = {second.get()}});
      b.wait();
      a.wait();
      expect(one_out.values() == std::vector<std::int32_t>(400, 3), "the bits");
      expect(other_out.values() == std::vector<std::int32_t>(300, gpu == 0 ? 4 : 12), "the sums");
    }
  }));
}

// The memory that it takes is bounded: more than that is done in pieces.
GPU_TEST_CASE("gpu fold: a vector that is longer than one piece", "[gpu]") {
  constexpr std::size_t kCount = (std::size_t{64} << 20) / sizeof(std::uint64_t) + 12345;
  const auto element = [](int rank, std::size_t i) { return (static_cast<std::uint64_t>(rank) + 3) * (i + 1); };
  check_good(run_gpu_ranks(2, [&](Group& group, int gpu) {
    std::vector<std::uint64_t> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) values[i] = element(gpu, i);
    const GpuArray<std::uint64_t> data(gpu, values);
    const auto equals = [&](auto want, std::size_t begin) {
      const auto got = data.values();
      for (std::size_t i = 0; i < kCount; ++i) {
        if (i < begin || got[i] == want(i)) continue;
        expect(false, fmt::format("element {} is {}, not {}", i, got[i], want(i)));
      }
    };
    group.allreduce(data, {.op = ReduceOp::bxor});
    equals([&](std::size_t i) { return element(0, i) ^ element(1, i); }, 0);
    data.set(values);
    group.scan(data, data);
    equals([&](std::size_t i) { return gpu == 0 ? element(0, i) : element(0, i) + element(1, i); }, 0);
    // Nothing for rank 0, so that the other's block is longer than a piece of it.
    data.set(values);
    const std::vector<std::size_t> counts = {0, kCount};
    group.reduce_scatterv(data, data.part(0, gpu == 0 ? 0 : kCount), counts, {.op = ReduceOp::max});
    if (gpu == 1) equals([&](std::size_t i) { return element(1, i); }, 0);
  }));
}

}  // namespace
}  // namespace col::test
