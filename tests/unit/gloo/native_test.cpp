// Every native collective against the obvious reference.
#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "unit/gloo/mesh.hpp"
#include "unit/gloo/values.hpp"

namespace {

using namespace col;
using namespace col::test;

constexpr DType kTested[] = {DType::int8,   DType::uint8,   DType::int32,     DType::uint32,  DType::int64,
                             DType::uint64, DType::float16, DType::bfloat16,  DType::float32, DType::float64,
                             DType::int16,  DType::uint16,  DType::complex128};

// One rank in a series of calls that all ranks make alike.
class Series {
 public:
  Series(int rank, int size, GlooChannel& channel, unsigned seed)
      : rank_(rank), size_(size), channel_(channel), random_(seed) {}

  void run(std::size_t count) {
    dtype_ = kTested[random_() % std::size(kTested)];
    count_ = count;
    root_ = static_cast<int>(random_() % static_cast<unsigned>(size_));
    in_place_ = random_() % 2 == 1;
    reductions();
    broadcast();
    allgather();
    allgatherv();
    gather();
    scatter();
    alltoall();
    alltoallv();
    barrier(channel_, ++number_);
  }

 private:
  bool is_root() const { return rank_ == root_; }
  std::size_t n() const { return static_cast<std::size_t>(size_); }
  Bytes input_of(int rank, std::size_t count) const { return pack(dtype_, input_values(rank, number_, count)); }
  Bytes all_inputs(std::size_t count) const {
    Bytes all;
    for (int r = 0; r < size_; ++r) append(all, input_of(r, count));
    return all;
  }
  static void append(Bytes& to, const Bytes& what) { to.insert(to.end(), what.begin(), what.end()); }
  std::size_t bytes(std::size_t count) const { return count * size_of(dtype_); }
  Bytes block(const Bytes& all, int r, std::size_t count) const {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(bytes(count) * static_cast<std::size_t>(r));
    return Bytes(begin, begin + static_cast<std::ptrdiff_t>(bytes(count)));
  }

  void call(Request request) {
    request.fingerprint = core::Hash().add(static_cast<int>(request.collective)).add(number_).add(request.root).value();
    WaitContext wait = wait_for();
    channel_.native(request, wait);
  }
  void check(const Bytes& got, const Bytes& wanted, std::string_view what) const {
    expect(got == wanted, fmt::format("{} {} x {} on rank {} of {}, root {}{}", what, to_string(dtype_), count_, rank_,
                                      size_, root_, in_place_ ? ", in place" : ""));
  }

  void reductions() {
    const auto ops = all_ops();
    for (const std::string_view algorithm : {"gloo_ring", "gloo_bcube", ""}) {
      const Op& op = ops[random_() % ops.size()];
      if (applies_to(op, dtype_)) allreduce(op, algorithm);
    }
    for (int i = 0; i < 2; ++i) {
      const Op& op = ops[random_() % ops.size()];
      if (applies_to(op, dtype_)) reduce(op);
    }
  }

  Bytes reference(const Op& op) const {
    std::vector<Values> inputs;
    for (int r = 0; r < size_; ++r) inputs.push_back(input_values(r, number_, count_));
    return pack(dtype_, reduced(op, dtype_, inputs));
  }

  void allreduce(const Op& op, std::string_view algorithm) {
    ++number_;
    const Bytes original = input_of(rank_, count_);
    Bytes in = original;
    Bytes out = in_place_ ? original : filler(dtype_, count_);
    call({.collective = Collective::allreduce,
          .in = in_place_ ? view_of(out, dtype_) : view_of(in, dtype_),
          .out = view_of(out, dtype_),
          .op = op,
          .algorithm = algorithm});
    check(out, reference(op), fmt::format("allreduce {} {}", op.name(), algorithm));
    check(in, original, "allreduce's input");
  }

  void reduce(const Op& op) {
    ++number_;
    const Bytes original = input_of(rank_, count_);
    Bytes in = original;
    const bool same = in_place_ && is_root();
    Bytes out = same ? original : filler(dtype_, count_);
    call({.collective = Collective::reduce,
          .in = same ? view_of(out, dtype_) : view_of(in, dtype_),
          .out = view_of(out, dtype_),
          .op = op,
          .root = root_});
    check(out, is_root() ? reference(op) : filler(dtype_, count_), fmt::format("reduce {}", op.name()));
    check(in, original, "reduce's input");
  }

  void broadcast() {
    ++number_;
    Bytes out = is_root() ? input_of(root_, count_) : filler(dtype_, count_);
    call({.collective = Collective::broadcast, .out = view_of(out, dtype_), .root = root_});
    check(out, input_of(root_, count_), "broadcast");
  }

  void allgather() {
    ++number_;
    const Bytes original = input_of(rank_, count_);
    Bytes in = original;
    Bytes out = filler(dtype_, count_ * n());
    TensorView own = view_of(out, dtype_).slice(static_cast<std::size_t>(rank_) * count_, count_);
    if (in_place_ && count_ > 0) std::memcpy(own.data, in.data(), in.size());
    call({.collective = Collective::allgather,
          .in = in_place_ ? ConstTensorView(own) : view_of(in, dtype_),
          .out = view_of(out, dtype_)});
    check(out, all_inputs(count_), "allgather");
    check(in, original, "allgather's input");
  }

  void allgatherv() {
    ++number_;
    std::vector<std::size_t> counts;
    Bytes wanted;
    for (int r = 0; r < size_; ++r) {
      counts.push_back(r == root_ ? 0 : count_ + static_cast<std::size_t>(r));  // one rank gives nothing
      append(wanted, input_of(r, counts.back()));
    }
    Bytes in = input_of(rank_, counts[static_cast<std::size_t>(rank_)]);
    Bytes out(wanted.size(), std::byte{0xa5});
    call({.collective = Collective::allgatherv,
          .in = view_of(in, dtype_),
          .out = view_of(out, dtype_),
          .out_counts = counts});
    check(out, wanted, "allgatherv");
  }

  void gather() {
    ++number_;
    const Bytes original = input_of(rank_, count_);
    Bytes in = original;
    Bytes out = filler(dtype_, count_ * n());
    TensorView own = view_of(out, dtype_).slice(static_cast<std::size_t>(rank_) * count_, count_);
    const bool same = in_place_ && is_root();
    if (same && count_ > 0) std::memcpy(own.data, in.data(), in.size());
    call({.collective = Collective::gather,
          .in = same ? ConstTensorView(own) : view_of(in, dtype_),
          .out = view_of(out, dtype_),
          .root = root_});
    check(out, is_root() ? all_inputs(count_) : filler(dtype_, count_ * n()), "gather");
    check(in, original, "gather's input");
  }

  void scatter() {
    ++number_;
    const Bytes original = all_inputs(count_);
    Bytes in = is_root() ? original : Bytes();
    Bytes out = filler(dtype_, count_);
    const TensorView own = view_of(in, dtype_).slice(static_cast<std::size_t>(rank_) * count_, count_);
    const bool same = in_place_ && is_root();
    call({.collective = Collective::scatter,
          .in = view_of(in, dtype_),
          .out = same ? own : view_of(out, dtype_),
          .root = root_});
    if (!same) check(out, block(original, rank_, count_), "scatter");
    if (is_root()) check(in, original, "scatter's input");
  }

  void alltoall() {
    ++number_;
    const Bytes original = input_of(rank_, count_ * n());
    Bytes in = original;
    Bytes out = in_place_ ? original : filler(dtype_, count_ * n());
    call({.collective = Collective::alltoall,
          .in = in_place_ ? view_of(out, dtype_) : view_of(in, dtype_),
          .out = view_of(out, dtype_)});
    Bytes wanted;
    for (int r = 0; r < size_; ++r) append(wanted, block(input_of(r, count_ * n()), rank_, count_));
    check(out, wanted, "alltoall");
    check(in, original, "alltoall's input");
  }

  // Rank a sends (a + 2b) % 3 * count elements to rank b.
  std::size_t traffic(int a, int b) const { return static_cast<std::size_t>((a + 2 * b) % 3) * count_; }

  void alltoallv() {
    ++number_;
    std::vector<std::size_t> in_counts, out_counts;
    Bytes in, wanted;
    for (int r = 0; r < size_; ++r) {
      in_counts.push_back(traffic(rank_, r));
      out_counts.push_back(traffic(r, rank_));
      append(in, input_of(rank_ * size_ + r, in_counts.back()));
      append(wanted, input_of(r * size_ + rank_, out_counts.back()));
    }
    const Bytes original = in;
    Bytes out(wanted.size(), std::byte{0xa5});
    call({.collective = Collective::alltoallv,
          .in = view_of(in, dtype_),
          .out = view_of(out, dtype_),
          .in_counts = in_counts,
          .out_counts = out_counts});
    check(out, wanted, "alltoallv");
    check(in, original, "alltoallv's input");
  }

  const int rank_;
  const int size_;
  GlooChannel& channel_;
  std::mt19937 random_;
  std::size_t number_ = 0;
  DType dtype_ = DType::int8;
  std::size_t count_ = 0;
  int root_ = 0;
  bool in_place_ = false;
};

}  // namespace

TEST_CASE("gloo natives: every collective gives what the reference gives", "[gloo]") {
  const unsigned seed = std::random_device{}();
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    const auto p = static_cast<std::size_t>(size);
    const auto endings = run_ranks(size, [&](int rank, GlooChannel& channel) {
      Series series(rank, size, channel, seed + static_cast<unsigned>(size));
      for (int repeat = 0; repeat < 6; ++repeat) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, p - 1, p, p + 1, std::size_t{997}}) {
          series.run(count);
        }
      }
      series.run(100'000);
    });
    INFO("seed " << seed << ", " << size << " ranks\n" << show(endings));
    REQUIRE(all_well(endings));
  }
}

TEST_CASE("gloo natives: every operator on every type", "[gloo]") {
  constexpr int kSize = 3;
  constexpr std::size_t kCount = 50;
  const auto endings = run_ranks(kSize, [](int rank, GlooChannel& channel) {
    std::uint64_t number = 0;
    for (const DType dtype : kTested) {
      for (const Op& op : all_ops()) {
        if (!applies_to(op, dtype)) continue;
        std::vector<Values> inputs;
        for (int r = 0; r < kSize; ++r) inputs.push_back(input_values(r, 1, kCount));
        const Bytes wanted = pack(dtype, reduced(op, dtype, inputs));
        for (const std::string_view algorithm : {"gloo_ring", "gloo_bcube"}) {
          const Bytes in = pack(dtype, inputs[static_cast<std::size_t>(rank)]);
          Bytes out = filler(dtype, kCount);
          Request request = request_for(Collective::allreduce, ++number, kCount);
          request.in = view_of(in, dtype);
          request.out = view_of(out, dtype);
          request.op = op;
          request.algorithm = algorithm;
          WaitContext wait = wait_for();
          channel.native(request, wait);
          expect(out == wanted, fmt::format("{} on {}, {}", op.name(), to_string(dtype), algorithm));
        }
      }
    }
  });
  INFO(show(endings));
  REQUIRE(all_well(endings));
}

TEST_CASE("gloo natives: 16-bit floats are summed in float32 and rounded once", "[gloo]") {
  // 2048 + 7 * 1: float16 cannot hold 2049, so rounding at every hop would lose all the ones.
  constexpr int kSize = 8;
  const auto endings = run_ranks(kSize, [](int rank, GlooChannel& channel) {
    for (const std::string_view algorithm : {"gloo_ring", "gloo_bcube"}) {
      const std::vector<float16> in(33, float16(rank == 3 ? 2048.0F : 1.0F));
      std::vector<float16> out(33);
      Request request = request_for(Collective::allreduce, algorithm.size(), 33);
      request.in = in;
      request.out = out;
      request.algorithm = algorithm;
      WaitContext wait = wait_for();
      channel.native(request, wait);
      for (const float16 value : out) expect(value.bits == float16(2055.0F).bits, "rounded once");
    }
  });
  INFO(show(endings));
  REQUIRE(all_well(endings));
}

TEST_CASE("gloo natives: inexact sums have the same bits on all ranks and on every run", "[gloo]") {
  constexpr int kSize = 5;
  constexpr std::size_t kCount = 70'001;
  for (const std::string_view algorithm : {"gloo_ring", "gloo_bcube"}) {
    std::vector<std::vector<float>> results(kSize);
    const auto endings = run_ranks(kSize, [&](int rank, GlooChannel& channel) {
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
        WaitContext wait = wait_for();
        channel.native(request, wait);
        if (run == 0) first = out;
        expect(std::memcmp(first.data(), out.data(), kCount * sizeof(float)) == 0, "the same on every run");
      }
      results[static_cast<std::size_t>(rank)] = first;
    });
    INFO(show(endings));
    REQUIRE(all_well(endings));
    for (const auto& result : results) {
      CHECK(std::memcmp(result.data(), results[0].data(), kCount * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("gloo natives: sums of more segments than ranks come out right", "[gloo]") {
  // Gloo cuts transfers at 1 MiB; its reduce forwards more segments than it needs beyond 2 per rank.
  constexpr std::size_t kCount = 5 * 1024 * 1024 / 2 + 3;  // 20 MiB of doubles over 2 ranks
  const auto endings = run_ranks(2, [](int rank, GlooChannel& channel) {
    for (const Collective collective : {Collective::allreduce, Collective::reduce}) {
      const std::vector<double> in(kCount, rank + 1.0);
      std::vector<double> out(kCount);
      Request request = request_for(collective, 1, kCount);
      request.in = in;
      request.out = out;
      request.root = 1;
      WaitContext wait = wait_for();
      channel.native(request, wait);
      if (collective == Collective::reduce && rank != 1) continue;
      for (const double value : out) {
        if (value != 3.0) throw std::runtime_error("wrong sum");
      }
    }
    barrier(channel, 9);
  });
  INFO(show(endings));
  REQUIRE(all_well(endings));
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
        WaitContext wait = wait_for();
        channel.wait(channel.post_recv(0, 77, token), wait);
        second_entered = true;
      }
      Request request = request_for(collective, 1, 0);
      request.in.dtype = request.out.dtype = DType::float32;
      std::vector<std::int32_t> token(1);
      Ticket sent;
      if (rank == 0) sent = channel.post_send(1, 77, token);
      WaitContext wait = wait_for();
      channel.native(request, wait);
      expect(second_entered, "returned before the other rank had entered");
      if (rank == 0) channel.wait(sent, wait);
    });
    INFO(to_string(collective) << "\n" << show(endings));
    REQUIRE(all_well(endings));
  }
}
