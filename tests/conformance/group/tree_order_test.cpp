// Order::tree: the bits depend on the contributions alone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/tree_draws.hpp"
#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

std::uint64_t random_seed() {
  return std::random_device()();
}

void draw_on(int ranks, int draws, std::uint64_t seed) {
  INFO("seed " << seed);
  threads_on_each_backend(ranks, [&](Group& group) {
    for (int i = 0; i < draws; ++i) {
      const std::uint64_t own = mixed(seed, static_cast<std::uint64_t>(i), 0);
      const int type = static_cast<int>(own >> 40 & 0xff);
      try_type(group, type, drawn(group.size(), own, type));
    }
  });
}

TEST_CASE("tree: the bits of the definition at every number of ranks, a draw", "[group]") {
  const std::uint64_t seed = random_seed();
  for (const int ranks : {1, 2, 3, 5, 8}) draw_on(ranks, 40, seed);
}

TEST_CASE("tree: the bits of the definition at every number of ranks, all of them", "[group][rest]") {
  const std::uint64_t seed = random_seed();
  for (int ranks = 1; ranks <= 9; ++ranks) draw_on(ranks, 600, seed + static_cast<std::uint64_t>(ranks));
}

// The second call knows what each rank gives: a backend may do it in its own way, and the third is one that comes
// again.
TEST_CASE("tree: one contribution of each rank, by whatever way a backend has", "[group]") {
  const Collective collective = GENERATE(Collective::allreduce, Collective::reduce, Collective::reduce_scatter);
  const std::vector<std::size_t> counts = collective == Collective::allreduce
                                              ? std::vector<std::size_t>{1, 3, 40, 300, 9001, 20000}
                                              : std::vector<std::size_t>{3, 300, 9001};
  for (const int ranks : {2, 4, 5}) {
    threads_on_each_backend(ranks, [&](Group& group) {
      Draw draw{.shares = std::vector<std::size_t>(static_cast<std::size_t>(group.size()), 1)};
      draw.named = draw.shares.size();
      draw.collective = collective;
      draw.root = group.size() - 1;
      for (const std::size_t count : counts) {
        draw.count = count;
        for (int type = 0; type < (count > 3 && count != 300 ? 1 : 7); ++type) {
          for (int i = 0; i < 3; ++i) {
            draw.seed = count + static_cast<std::uint64_t>(i);
            draw.operation = static_cast<Operation>(i == 2 && type == 0 ? 3 : i);
            try_type(group, type, draw);
          }
        }
      }
      std::vector<float> data(draw.collective == Collective::reduce_scatter ? 3 * draw.named : 3), out(3);
      const auto call = [&](std::string_view algorithm, std::size_t contributions) {
        group.run({.collective = collective, .in = data, .out = out},
                  {.root = draw.root, .algorithm = algorithm, .order = Order::tree, .contributions = contributions});
      };
      for (int i = 0; i < 4; ++i) call("", draw.named);
      const bool is_shared = group.explain(collective, 120, DType::float32).starts_with("shared");
      const Options known{.root = draw.root, .order = Order::tree, .contributions = draw.named};
      expect(group.explain(collective, 120, DType::float32, known).starts_with("shared") == is_shared,
             "what it explains");
      if (is_shared) call("shared", draw.named);
      if (!is_shared) expect_error(ErrorCode::invalid_argument, "shared", [&] { call("shared", draw.named); });
      expect_error(ErrorCode::invalid_argument, "shared", [&] { call("shared", 0); });
    });
  }
}

// Another order shows with these values: the cases above would see it.
TEST_CASE("tree: a fold in rank order has other bits", "[group]") {
  threads_on_each_backend(5, [](Group& group) {
    const Draw draw{.seed = 12, .count = 300, .shares = {1, 1, 1, 1, 1}};
    std::vector<float> in;
    for (std::size_t i = 0; i < draw.count; ++i)
      in.push_back(element<float>(draw.seed, static_cast<std::size_t>(group.rank()), i));
    std::vector<float> in_rank_order(draw.count);
    group.allreduce(in, in_rank_order, {.order = Order::rank});
    expect(in_rank_order != expected<float>(draw, 0, draw.count), "the two orders cannot be told apart");
    try_one<float>(group, draw);
  });
}

TEST_CASE("tree: a thread that rounds up and flushes denormals changes no bit, and goes on as it was", "[group]") {
  for (const int ranks : {1, 2, 4}) {
    threads_on_each_backend(ranks, [](Group& group) {
      const auto n = static_cast<std::size_t>(group.size());
      for (const std::size_t count : {1u, 300u}) {
        for (std::size_t share = 1; share <= 2; ++share) {
          Draw draw{.count = count, .shares = std::vector<std::size_t>(n, share), .is_unusual = true};
          for (int form = 0; form < 3; ++form) {
            draw.form = static_cast<Draw::Form>(form);
            draw.seed = 2 * (100 * count + 10 * share + static_cast<unsigned>(form)) + share % 2;
            draw.named = form == 0 ? n * share : 0;
            draw.collective = form == 1 ? Collective::reduce_scatter : Collective::allreduce;
            for (const Operation operation : {Operation::sum, Operation::avg, Operation::user}) {
              draw.operation = operation;
              draw.shift = -140;
              for (int i = 0; i < 2; ++i) try_one<float>(group, draw);
              draw.shift = 0;
              try_one<float>(group, draw);
              if (operation == Operation::user) continue;
              try_one<float16>(group, draw);
              draw.shift = -1060;
              try_one<double>(group, draw);
            }
          }
        }
      }
      // Half of an odd number of the smallest denormals is rounded to even; upwards, or flushed, it is another number.
      const UnusualFloats unusual(group.rank() % 2 == 1);
      const std::vector<float> in(2, 0x1p-149f * 5);
      std::vector<float> out(1);
      group.allreduce(in, out, {.op = Op::premul_sum(0.5), .order = Order::tree});
      unusual.end();
      expect(out[0] == 0x1p-149f * static_cast<float>(4 * group.size()), fmt::format("{}", out[0]));
    });
  }
}

TEST_CASE("tree: a vector in buckets of any size, one after the other or at once, has the bits of the whole",
          "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    const auto own = static_cast<std::size_t>(group.rank());
    const Draw draw{.seed = 52, .count = 1000, .shares = {2, 0, 3}};
    const std::size_t first = own == 0 ? 0 : 2, share = draw.shares[own];
    const std::vector<float> right = expected<float>(draw, 0, draw.count);
    for (const std::size_t bucket : {1000u, 999u, 64u, 7u}) {
      std::vector<float> in, out(draw.count);  // in: bucket by bucket, and there contribution by contribution
      std::vector<std::size_t> begins;
      for (std::size_t begin = 0; begin < draw.count; begin += bucket) {
        begins.push_back(begin);
        for (std::size_t v = 0; v < share; ++v) {
          for (std::size_t i = begin; i < std::min(begin + bucket, draw.count); ++i)
            in.push_back(element<float>(draw.seed, first + v, i));
        }
      }
      for (const bool at_once : {false, true}) {
        std::ranges::fill(out, 0.0f);
        std::vector<Work> works;
        for (const std::size_t begin : begins) {
          const std::size_t count = std::min(bucket, draw.count - begin);
          const ConstTensorView from = ConstTensorView(in).slice(share * begin, share * count);
          const TensorView to = TensorView(out).slice(begin, count);
          const Options options{.order = Order::tree, .contributions = at_once ? 0u : 5u};
          if (at_once)
            works.push_back(group.iallreduce(from, to, options));
          else
            group.allreduce(from, to, options);
        }
        for (Work& work : works) work.wait();
        expect(std::memcmp(out.data(), right.data(), draw.count * sizeof(float)) == 0,
               fmt::format("buckets of {}, at once: {}", bucket, at_once));
      }
    }
  });
}

TEST_CASE("tree: of premul_sum, every contribution of a rank has the factor of that rank", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    const std::vector<float> in(static_cast<std::size_t>(group.rank() + 1), 1.0f);
    std::vector<float> out(1);
    group.allreduce(in, out, {.op = Op::premul_sum(group.rank() + 1.0), .order = Order::tree});
    expect(out[0] == 1 + 2 * 2 + 3 * 3, "factors");
  });
}

TEST_CASE("tree: an average divides by the contributions, not by the ranks", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    const std::vector<int> in(group.rank() == 0 ? 7u : 0u, 6);
    std::vector<int> out(1);
    group.allreduce(in, out, {.op = ReduceOp::avg, .order = Order::tree});
    expect(out[0] == 6, fmt::format("{}", out[0]));
  });
}

}  // namespace
}  // namespace col::test
