// Options::deterministic and COL_NUMERICS: the same bits whatever the count, because elements are added in rank order.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"

using col::ErrorCode;
using col::Group;
using col::test::error_of;
using col::test::expect;
using col::test::Setting;
using col::test::threads_on_each_backend;

namespace {

// Sums of these differ with the order of adding.
float rough(int rank, std::size_t i) {
  const auto k = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 29);
  return (rank % 2 == 0 ? 1.0f : -1.0f) * (1.0e8f / (k + 1.0f)) + 1.0f / (3.0f + k);
}

// ((x0 + x1) + x2) + ...
float in_rank_order(int ranks, std::size_t i) {
  float sum = rough(0, i);
  for (int r = 1; r < ranks; ++r) sum += rough(r, i);
  return sum;
}

void expect_rank_order(Group& group, const col::Options& options) {
  const int n = group.size(), me = group.rank();
  const auto ranks = static_cast<std::size_t>(n);
  // The same elements in vectors of any length have the same bits.
  for (const std::size_t count : {1u, 2u, 5u, 100u, 3001u, 40000u}) {
    std::vector<float> in(count), out(count), want(count);
    for (std::size_t i = 0; i < count; ++i) {
      in[i] = rough(me, i);
      want[i] = in_rank_order(n, i);
    }
    const auto same_bits = [&](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    group.allreduce(in, out, options);
    expect(same_bits(out, want), fmt::format("allreduce of {}", count));
    std::fill(out.begin(), out.end(), 0.0f);
    group.iallreduce(in, out, options).wait();
    expect(same_bits(out, want));
    group.reduce(in, out, options);
    if (me == options.root) expect(same_bits(out, want));
    if (count % ranks == 0) {
      std::vector<float> block(count / ranks);
      group.reduce_scatter(in, block, options);
      const auto begin = want.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(me) * block.size());
      expect(same_bits(block, {begin, begin + static_cast<std::ptrdiff_t>(block.size())}));
    }
    std::vector<float> prefix(count);
    group.scan(in, prefix, options);
    for (std::size_t i = 0; i < count; ++i) want[i] = in_rank_order(me + 1, i);
    expect(same_bits(prefix, want));
  }
}

void expect_ring_refused(Group& group, const col::Options& options) {
  std::vector<float> data(8, 1.0f);
  const col::Error error = error_of([&] { group.allreduce(data, options); });
  expect(error.code() == ErrorCode::invalid_argument, error.what());
  expect(error.message().find("rank order") != std::string::npos, error.what());
  group.barrier();
}

}  // namespace

TEST_CASE("rank order: deterministic calls add in rank order, whatever the count", "[group]") {
  for (const int n : {2, 3, 4, 5}) {
    threads_on_each_backend(n, [](Group& group, col::Context&) {
      expect_rank_order(group, {.deterministic = true});
      expect_ring_refused(group, {.algorithm = "ring", .deterministic = true});
    });
  }
}

TEST_CASE("rank order: COL_NUMERICS=deterministic makes all calls so", "[group]") {
  const Setting setting("COL_NUMERICS", "deterministic");
  threads_on_each_backend(5, [](Group& group, col::Context&) {
    expect_rank_order(group, {});
    expect_ring_refused(group, {.algorithm = "ring"});
    expect_ring_refused(group, {.algorithm = "mst"});
  });
}

TEST_CASE("rank order: without it, the order is the algorithm's own", "[group]") {
  // What the two cases above would see if nothing kept to rank order.
  threads_on_each_backend(5, [](Group& group, col::Context&) {
    std::vector<float> in(3000), out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = rough(group.rank(), i);
    group.allreduce(in, out, {.algorithm = "ring"});
    std::size_t different = 0;
    for (std::size_t i = 0; i < in.size(); ++i) different += out[i] != in_rank_order(5, i) ? 1 : 0;
    expect(different > 0);
  });
}

TEST_CASE("rank order: COL_NUMERICS=strict loses no NaN and rounds 16-bit floats once", "[group]") {
  const Setting setting("COL_NUMERICS", "strict");
  threads_on_each_backend(3, [](Group& group, col::Context&) {
    std::vector<float> data{group.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1.0f};
    for (const col::ReduceOp op : {col::ReduceOp::min, col::ReduceOp::max}) {
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
