// Element types beside numbers: opaque elements of any size in every call that moves data, users' operators on them,
// and what is refused. colcheck compares booleans, complex numbers and short integers with its reference.
#include <complex>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/backends.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace {

using col::ConstTensorView;
using col::DType;
using col::TensorView;
using col::test::expect;
using col::test::run_processes;
using col::test::run_threads;
using col::test::usable_backends;
using Octets = std::vector<unsigned char>;
using BlockLengths = std::vector<std::size_t>;

// OpaqueElements of one size. Those that `from` gives to `to` differ from all others, in every byte that they have.
struct OpaqueElements {
  std::size_t size;

  DType dtype() const { return col::opaque(size); }
  Octets block(int from, int to, std::size_t count) const {
    Octets bytes(count * size);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] =
          static_cast<unsigned char>(i % 251 + static_cast<std::size_t>(from) * 17 + static_cast<std::size_t>(to) * 59);
    return bytes;
  }
  Octets none(std::size_t count) const { return Octets(count * size, 0xee); }
  ConstTensorView in(const Octets& bytes) const { return {bytes.data(), bytes.size() / size, dtype()}; }
  TensorView out(Octets& bytes) const { return {bytes.data(), bytes.size() / size, dtype()}; }
};

void append(Octets& bytes, const Octets& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

BlockLengths lengths_of(int ranks) {
  BlockLengths counts;
  for (int r = 0; r < ranks; ++r) counts.push_back(static_cast<std::size_t>(r % 3) * 2);
  return counts;
}

void check_gathering(col::Group& group, const OpaqueElements& e, std::size_t count) {
  const int n = group.size(), me = group.rank(), root = n - 1;
  const BlockLengths counts = lengths_of(n);
  Octets equal, uneven;
  for (int r = 0; r < n; ++r) {
    append(equal, e.block(r, 0, count));
    append(uneven, e.block(r, 0, counts[static_cast<std::size_t>(r)]));
  }
  const Octets own = e.block(me, 0, count), own_uneven = e.block(me, 0, counts[static_cast<std::size_t>(me)]);
  Octets all = e.none(count * static_cast<std::size_t>(n)), all_uneven(uneven.size());
  group.allgather(e.in(own), e.out(all));
  expect(all == equal, "allgather");
  group.allgatherv(e.in(own_uneven), e.out(all_uneven), counts);
  expect(all_uneven == uneven, "allgatherv");
  all = e.none(count * static_cast<std::size_t>(n));
  all_uneven.assign(uneven.size(), 0);
  group.igather(e.in(own), e.out(all), {.root = root}).wait();
  group.gatherv(e.in(own_uneven), e.out(all_uneven), counts, {.root = root});
  if (me == root) expect(all == equal && all_uneven == uneven, "gather");
}

void check_spreading(col::Group& group, const OpaqueElements& e, std::size_t count) {
  const int n = group.size(), me = group.rank();
  const BlockLengths counts = lengths_of(n);
  Octets equal, uneven, to_all, from_all, to_all_v, from_all_v;
  BlockLengths sent, received;
  for (int r = 0; r < n; ++r) {
    append(equal, e.block(0, r, count));
    append(uneven, e.block(0, r, counts[static_cast<std::size_t>(r)]));
    append(to_all, e.block(me, r, count));
    append(from_all, e.block(r, me, count));
    sent.push_back(static_cast<std::size_t>((me + 2 * r) % 3));
    received.push_back(static_cast<std::size_t>((r + 2 * me) % 3));
    append(to_all_v, e.block(me, r, sent.back()));
    append(from_all_v, e.block(r, me, received.back()));
  }
  Octets out = e.none(count), out_uneven(counts[static_cast<std::size_t>(me)] * e.size);
  group.scatter(e.in(equal), e.out(out));
  expect(out == e.block(0, me, count), "scatter");
  group.iscatterv(e.in(uneven), counts, e.out(out_uneven)).wait();
  expect(out_uneven == e.block(0, me, counts[static_cast<std::size_t>(me)]), "scatterv");
  Octets exchanged(from_all.size()), exchanged_v(from_all_v.size());
  group.alltoall(e.in(to_all), e.out(exchanged));
  expect(exchanged == from_all, "alltoall");
  group.alltoallv(e.in(to_all_v), sent, e.out(exchanged_v), received);
  expect(exchanged_v == from_all_v, "alltoallv");
  Octets shared = me == 1 % n ? e.block(7, 7, count) : e.none(count);
  group.broadcast(e.out(shared), {.root = 1 % n});
  expect(shared == e.block(7, 7, count), "broadcast");
}

void check_messages(col::Group& group, const OpaqueElements& e, std::size_t count) {
  const int n = group.size(), me = group.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
  const Octets sent = e.block(me, next, count);
  Octets got = e.none(count);
  group.sendrecv(e.in(sent), next, e.out(got), before);
  expect(got == e.block(before, me, count), "sendrecv");
  got = e.none(count);
  col::Work receive = group.irecv_any(e.out(got), {.tag = 5});
  group.isend(e.in(sent), next, {.tag = 5}).wait();
  receive.wait();
  expect(got == e.block(before, me, count), "irecv_any");
}

// Numbers of as many bytes as an element has, added with their carries: a cut anywhere would show.
void add_long(const void* left, const void* right, void* result, std::size_t count, DType dtype) {
  const std::size_t size = size_of(dtype);
  const auto *a = static_cast<const unsigned char*>(left), *b = static_cast<const unsigned char*>(right);
  auto* const to = static_cast<unsigned char*>(result);
  for (std::size_t i = 0; i < count; ++i) {
    unsigned carry = 0;
    for (std::size_t byte = i * size; byte < (i + 1) * size; ++byte) {
      carry += static_cast<unsigned>(a[byte]) + b[byte];
      to[byte] = static_cast<unsigned char>(carry);
      carry >>= 8;
    }
  }
}

void check_reductions(col::Group& group, const OpaqueElements& e, std::size_t count, const std::string& algorithm) {
  const int n = group.size(), me = group.rank();
  const auto total = count * static_cast<std::size_t>(n);
  const auto folded = [&](int ranks) {
    Octets sum = e.block(0, 0, total);
    for (int r = 1; r < ranks; ++r) {
      const Octets next = e.block(r, 0, total);
      add_long(sum.data(), next.data(), sum.data(), total, e.dtype());
    }
    return sum;
  };
  const Octets own = e.block(me, 0, total), all = folded(n);
  col::Options options{.op = col::Op::user(&add_long, true, "long addition")};
  options.algorithm = algorithm;
  Octets out = e.none(total);
  group.allreduce(e.in(own), e.out(out), options);
  expect(out == all, "allreduce by " + algorithm);
  if (!algorithm.empty()) return;
  out = e.none(total);
  group.iscan(e.in(own), e.out(out), options).wait();
  expect(out == folded(me + 1), "scan");
  out = e.none(total);
  group.reduce(e.in(own), e.out(out), options);
  if (me == 0) expect(out == all, "reduce");
  Octets block = e.none(count);
  group.reduce_scatter(e.in(own), e.out(block), options);
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(me) * block.size());
  expect(std::equal(block.begin(), block.end(), begin), "reduce_scatter");
}

void check_size(col::Group& group, std::size_t size) {
  const OpaqueElements e{size};
  for (const std::size_t count : {1, 3, 40}) {
    check_gathering(group, e, count);
    check_spreading(group, e, count);
    check_messages(group, e, count);
  }
  if (size > col::kMaxReducedBytes) return;
  check_reductions(group, e, 5, "");
  for (const std::string& algorithm : group.algorithms(col::Collective::allreduce)) {
    try {
      check_reductions(group, e, 700, algorithm);
    } catch (const col::Error& error) {  // Gloo's own have elements of a few sizes, and bcube a few numbers of ranks
      if (error.code() != col::ErrorCode::invalid_argument) throw;
    }
  }
}

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const col::Error& error) {
    return fmt::format("{}: {}", to_string(error.code()), error.message());
  }
  return "nothing";
}

void expect_refused(const std::function<void()>& call, const std::string& why) {
  const std::string said = refusal_of(call);
  expect(said.starts_with("invalid_argument") && said.find(why) != std::string::npos, said + ", not " + why);
}

void check_outcomes(const std::vector<col::test::Outcome>& outcomes) {
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

col::Group join_group(col::Context& context, int rank, int size, const std::string& backend) {
  return context.init_group({.name = "g", .rank = rank, .world_size = size, .backend_name = backend});
}

}  // namespace

TEST_CASE("types: opaque elements of any size move and are never cut", "[group]") {
  for (const auto& backend : usable_backends()) {
    for (const int n : {1, 2, 5}) {
      INFO(backend << ", " << n << " ranks");
      check_outcomes(run_threads(n, [&](int rank, col::Context& context) {
        col::Group group = join_group(context, rank, n, backend);
        for (const std::size_t size : {1, 3, 16, 255, 256, 1000}) check_size(group, size);
      }));
    }
  }
}

TEST_CASE("types: elements that are longer than any buffer of the library", "[group]") {
  for (const auto& backend : usable_backends()) {
    INFO(backend);
    check_outcomes(run_processes(3, [&](int rank, col::Context& context) {
      col::Group group = join_group(context, rank, 3, backend);
      const OpaqueElements e{(std::size_t{3} << 20) + 1};
      check_gathering(group, e, 2);
      check_spreading(group, e, 1);
      check_messages(group, e, 1);
    }));
  }
}

TEST_CASE("types: opaque elements of two sizes are a mismatch, though they have as many bytes", "[group]") {
  for (const auto& backend : usable_backends()) {
    INFO(backend);
    check_outcomes(run_threads(2, [&](int rank, col::Context& context) {
      col::Group group = join_group(context, rank, 2, backend);
      Octets out(24);
      const Octets in(12);
      const std::size_t size = rank == 0 ? 3 : 4;
      const std::string said = refusal_of([&] {
        group.allgather({in.data(), 12 / size, col::opaque(size)}, {out.data(), 24 / size, col::opaque(size)},
                        {.timeout = std::chrono::seconds(20)});
      });
      expect(said.starts_with("mismatch") && said.find("bytes[3]") != std::string::npos &&
                 said.find("bytes[4]") != std::string::npos,
             said);
    }));
  }
}

TEST_CASE("types: what an operator or a call does not take is refused with what to do", "[group]") {
  check_outcomes(run_threads(2, [&](int rank, col::Context& context) {
    col::Group group = join_group(context, rank, 2, usable_backends().front());
    bool flags[4] = {true, rank == 0, false, true};
    std::vector<std::complex<float>> waves(4, {1, 2});
    Octets bytes(2 * 257);
    const col::Op user = col::Op::user(&add_long, true, "long addition");
    const auto opaque = [&](std::size_t size) { return TensorView(bytes.data(), 2, col::opaque(size)); };
    for (const col::ReduceOp op : {col::ReduceOp::sum, col::ReduceOp::product, col::ReduceOp::avg})
      expect_refused([&] { group.allreduce(flags, {.op = op}); }, "booleans take band, bor, bxor, min and max");
    for (const col::ReduceOp op : {col::ReduceOp::min, col::ReduceOp::max, col::ReduceOp::band})
      expect_refused([&] { group.allreduce(waves, {.op = op}); }, "complex numbers take sum, product, avg");
    expect_refused([&] { group.allreduce(opaque(3)); }, "opaque elements take a user's function");
    expect_refused([&] { group.allreduce(opaque(257), {.op = user}); }, "up to 256 bytes, not bytes[257]");
    expect_refused([&] { group.broadcast({bytes.data(), 2, DType::bytes}); }, "write col::opaque(bytes)");
    expect_refused([&] { group.broadcast({bytes.data(), 2, col::opaque(0)}); }, "write col::opaque(bytes)");
    expect_refused(
        [&] {
          group.broadcast({bytes.data(), ~std::size_t{0} / 1000, col::opaque(1 << 20)});
        },
        "more than memory can hold");
    group.allreduce(flags, {.op = col::ReduceOp::band});
    expect(flags[0] && !flags[1] && !flags[2] && flags[3], "the logical and");
    group.allreduce(waves);
    expect(waves.front() == std::complex<float>(2, 4), "the sum");
  }));
}
