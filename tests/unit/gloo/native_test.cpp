// Every native collective against the obvious reference.
#include <atomic>
#include <complex>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/kernels/reduce.hpp"
#include "support/catch.hpp"
#include "support/host_fold.hpp"
#include "support/native_calls.hpp"
#include "unit/gloo/mesh.hpp"

namespace {

using namespace col;
using namespace col::test;

constexpr DType kTested[] = {DType::int8,       DType::uint8,         DType::int32,      DType::uint32,
                             DType::int64,      DType::uint64,        DType::float16,    DType::bfloat16,
                             DType::float32,    DType::float64,       DType::int16,      DType::uint16,
                             DType::complex128, DType::float8_e4m3fn, DType::float8_e5m2};

// The operators: all built-in ones, premul_sum (by 2), a commutative and a non-commutative function. The last is
// f(a, b) = a; its result is rank 0's input, in rank order only.
std::vector<Op> all_ops() {
  std::vector<Op> ops;
  for (int op = 0; op < kReduceOpCount; ++op) ops.emplace_back(static_cast<ReduceOp>(op));
  ops.push_back(Op::premul_sum(2.0));
  ops.push_back(Op::user([](const void* left, const void* right, void* result, std::size_t count,
                            DType dtype) { core::reduce(ReduceOp::sum, dtype, left, right, result, count); },
                         true, "user_sum"));
  ops.push_back(Op::user([](const void* left, const void*, void* result, std::size_t count,
                            DType dtype) { std::memmove(result, left, count * size_of(dtype)); },
                         false, "first"));
  return ops;
}

// Whole numbers from 0 to 3, different on every rank: sums and products over few ranks are exact in every type,
// whatever their order.
Bytes small_numbers(DType dtype, int rank, std::size_t count) {
  Bytes bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = scattered(rank, i, 1) >> 7 & 3;
    const auto put = [&](auto element) { std::memcpy(bytes.data() + i * size_of(dtype), &element, size_of(dtype)); };
    const auto number = static_cast<float>(value);
    if (row_of(dtype).is_integer()) put(value);
    if (dtype == DType::float16) put(float16(number));
    if (dtype == DType::bfloat16) put(bfloat16(number));
    if (dtype == DType::float8_e4m3fn) put(float8_e4m3fn(number));
    if (dtype == DType::float8_e5m2) put(float8_e5m2(number));
    if (dtype == DType::float32) put(number);
    if (dtype == DType::float64) put(double{number});
    if (dtype == DType::complex128) put(std::complex<double>(number));
  }
  return bytes;
}

// Elements of several types, in calls that all ranks make alike.
void make_any_call(GlooChannel& channel, const NativeCall& call, int rank, int size, std::uint64_t number) {
  switch (number % 6) {
    case 0:
      return make_call<std::int8_t>(channel, call, rank, size, number);
    case 1:
      return make_call<bfloat16>(channel, call, rank, size, number);
    case 2:
      return make_call<float>(channel, call, rank, size, number);
    case 3:
      return make_call<std::int32_t>(channel, call, rank, size, number);
    case 4:
      return make_call<std::int64_t>(channel, call, rank, size, number);
    default:
      return make_call<std::uint32_t>(channel, call, rank, size, number);  // by an operator that does not commute
  }
}

}  // namespace

TEST_CASE("gloo natives: every collective gives what the reference gives", "[gloo]") {
  const unsigned seed = std::random_device{}();
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    const auto p = static_cast<std::size_t>(size);
    INFO("seed " << seed << ", " << size << " ranks");
    require_well(run_ranks(size, [&](int rank, GlooChannel& channel) {
      std::mt19937 random(seed + static_cast<unsigned>(size));  // draws the same on all ranks
      std::uint64_t number = 0;
      const auto call_all = [&](std::size_t count) {
        const bool in_place = random() % 2 == 1;
        for (const NativeEntry& entry : gloo_backend::Native::entries()) {
          const auto calls = calls_of(entry, count, size, in_place);
          make_any_call(channel, calls[random() % calls.size()], rank, size, 6 * number++ + random() % 6);
        }
      };
      for (int repeat = 0; repeat < 6; ++repeat) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, p - 1, p, p + 1, std::size_t{997}})
          call_all(count);
      }
      call_all(100'000);
    }));
  }
}

// A ring has two receives under way. A small message overtakes a large one, and once the ring took its end for that of
// the large one: it added what was not there yet.
TEST_CASE("gloo natives: a ring whose last segment is a small message and whose others are large", "[gloo]") {
  constexpr int kSize = 3;
  constexpr std::size_t kCount = 98'305;  // of float32: six segments, 64 KiB and 4 bytes each but for the last
  require_well(run_ranks(kSize, [](int rank, GlooChannel& channel) {
    for (const NativeEntry& entry : gloo_backend::Native::entries()) {
      if (entry.name != "gloo_ring" || entry.collective != Collective::allreduce) continue;
      const auto calls = calls_of(entry, kCount, kSize, false);
      for (std::uint64_t number = 0; number < 30; ++number)
        make_call<float>(channel, calls.front(), rank, kSize, number);
    }
  }));
}

TEST_CASE("gloo natives: every operator on every type", "[gloo]") {
  constexpr int kSize = 3;
  constexpr std::size_t kCount = 50;
  require_well(run_ranks(kSize, [](int rank, GlooChannel& channel) {
    std::uint64_t number = 0;
    for (const DType dtype : kTested) {
      std::vector<Bytes> inputs;
      for (int r = 0; r < kSize; ++r) inputs.push_back(small_numbers(dtype, r, kCount));
      const Bytes& in = inputs[static_cast<std::size_t>(rank)];
      for (const Op& op : all_ops()) {
        if (!core::is_reducible(op, dtype)) continue;
        const Bytes wanted = host_folds(std::vector<Op>(kSize, op), dtype, kCount,
                                        {inputs[0].data(), inputs[1].data(), inputs[2].data()})
                                 .back();
        for (const auto& [collective, algorithm] :
             {std::pair(Collective::allreduce, "gloo_ring"), std::pair(Collective::allreduce, "gloo_bcube"),
              std::pair(Collective::reduce, "gloo_ring")}) {
          Bytes out(in.size(), std::byte{0xa5});
          const Bytes untouched = out, before = in;
          Request request = request_for(collective, ++number, kCount);
          request.in = {in.data(), kCount, dtype};
          request.out = {out.data(), kCount, dtype};
          request.op = op;
          request.root = 1;
          request.algorithm = algorithm;
          run_native(channel, request);
          const std::string what =
              fmt::format("{} {} on {}, {}", to_string(collective), op.name(), to_string(dtype), algorithm);
          expect(out == (collective == Collective::allreduce || rank == 1 ? wanted : untouched), what);
          expect(in == before, what + ": the input");
        }
      }
    }
  }));
}

TEST_CASE("gloo natives: narrow floats are summed in float32 and rounded once", "[gloo]") {
  // 2048 + 7 * 1: float16 cannot hold 2049, so rounding at every hop would lose all the ones.
  constexpr int kSize = 8;
  require_well(run_ranks(kSize, [](int rank, GlooChannel& channel) {
    for (const std::string_view algorithm : {"gloo_ring", "gloo_bcube"}) {
      const std::vector<float16> in(33, float16(rank == 3 ? 2048.0F : 1.0F));
      std::vector<float16> out(33);
      Request request = request_for(Collective::allreduce, algorithm.size(), 33);
      request.in = in;
      request.out = out;
      request.algorithm = algorithm;
      run_native(channel, request);
      for (const float16 value : out) expect(value.bits == float16(2055.0F).bits, "rounded once");
    }
  }));
}

TEST_CASE("gloo natives: inexact sums have the same bits on all ranks and on every run", "[gloo]") {
  constexpr int kSize = 5;
  constexpr std::size_t kCount = 70'001;
  for (const std::string_view algorithm : {"gloo_ring", "gloo_bcube"}) {
    std::vector<std::vector<float>> results(kSize);
    require_well(run_ranks(kSize, [&](int rank, GlooChannel& channel) {
      std::vector<float> in(kCount);
      for (std::size_t i = 0; i < kCount; ++i)
        in[i] = 0.1F * static_cast<float>(rank + 1) + static_cast<float>(i) * 1e-5F;
      std::vector<float> first(kCount);
      for (std::uint64_t run = 0; run < 3; ++run) {
        std::vector<float> out(kCount);
        Request request = request_for(Collective::allreduce, run, kCount);
        request.in = in;
        request.out = out;
        request.algorithm = algorithm;
        run_native(channel, request);
        if (run == 0) first = out;
        expect(std::memcmp(first.data(), out.data(), kCount * sizeof(float)) == 0, "the same on every run");
      }
      results[static_cast<std::size_t>(rank)] = first;
    }));
    for (const auto& result : results) {
      CHECK(std::memcmp(result.data(), results[0].data(), kCount * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("gloo natives: sums of more segments than ranks come out right", "[gloo]") {
  // Gloo cuts transfers at 1 MiB; its reduce forwards more segments than it needs beyond 2 per rank.
  constexpr std::size_t kCount = 5 * 1024 * 1024 / 2 + 3;  // 20 MiB of doubles over 2 ranks
  require_well(run_ranks(2, [](int rank, GlooChannel& channel) {
    for (const Collective collective : {Collective::allreduce, Collective::reduce}) {
      const std::vector<double> in(kCount, rank + 1.0);
      std::vector<double> out(kCount);
      Request request = request_for(collective, 1, kCount);
      request.in = in;
      request.out = out;
      request.root = 1;
      run_native(channel, request);
      if (collective == Collective::reduce && rank != 1) continue;
      for (const double value : out) {
        if (value != 3.0) throw std::runtime_error("wrong sum");
      }
    }
    barrier(channel, 9);
  }));
}

TEST_CASE("gloo natives: nothing to move still makes all ranks meet", "[gloo]") {
  // Gloo divides by zero in allgather, and returns at once from allreduce.
  for (const Collective collective :
       {Collective::allreduce, Collective::reduce, Collective::allgather, Collective::gather, Collective::scatter,
        Collective::alltoall, Collective::broadcast}) {
    std::atomic<bool> second_entered{false};
    const auto endings = run_ranks(2, [&](int rank, GlooChannel& channel) {
      if (rank == 1) {
        std::vector<std::int32_t> token(1);
        wait_for(channel, channel.post_recv(0, 77, token));
        second_entered = true;
      }
      Request request = request_for(collective, 1, 0);
      request.in.dtype = request.out.dtype = DType::float32;
      std::vector<std::int32_t> token(1);
      Ticket sent;
      if (rank == 0) sent = channel.post_send(1, 77, token);
      run_native(channel, request);
      expect(second_entered, "returned before the other rank had entered");
      if (rank == 0) wait_for(channel, sent);
    });
    INFO(to_string(collective) << "\n" << show(endings));
    REQUIRE(all_well(endings));
  }
}
