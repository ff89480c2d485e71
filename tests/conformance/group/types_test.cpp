// Element types beside numbers: opaque elements of any size in every call that moves data, users' operators on them,
// and what is refused. colcheck compares booleans, complex numbers and short integers with its reference.
#include <algorithm>
#include <complex>
#include <string>
#include <vector>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"
#include "support/collectives.hpp"

namespace col::test {
namespace {

using Octets = std::vector<unsigned char>;

constexpr int kNoElement = -1;

// The number of element i of what a rank brings.
int number_of_element(int rank, std::size_t i) {
  return 50 * rank + static_cast<int>(i);
}

// Opaque elements of one size, each with a number. Those of two numbers differ in every byte.
struct OpaqueElements {
  explicit OpaqueElements(std::size_t bytes) : size(bytes), tile(bytes + 251) {
    for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = static_cast<unsigned char>(i % 251);
  }

  std::size_t size;
  Octets tile;

  DType dtype() const { return col::opaque(size); }
  Octets of(const std::vector<int>& numbers) const {
    Octets bytes(numbers.size() * size, 0xee);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] != kNoElement)
        std::copy_n(&tile[static_cast<std::size_t>(numbers[i] * 17 % 251)], size, &bytes[i * size]);
    }
    return bytes;
  }
  Octets of_rank(int rank, std::size_t count) const {
    std::vector<int> numbers;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(number_of_element(rank, i));
    return of(numbers);
  }
  Octets none(std::size_t count) const { return Octets(count * size, 0xee); }
  ConstTensorView in(const Octets& bytes) const { return {bytes.data(), bytes.size() / size, dtype()}; }
  TensorView out(Octets& bytes) const { return {bytes.data(), bytes.size() / size, dtype()}; }
};

// Every collective that only moves data, blocking and not by turns.
void check_moves(Group& group, const OpaqueElements& e, std::size_t count) {
  const int n = group.size(), me = group.rank();
  bool is_async = count % 2 == 0;
  for (const Collective collective : all_collectives()) {
    const CollectiveRow& row = row_of(collective);
    if (row.reduces() || collective == Collective::barrier) continue;
    tools::ReferenceCall call{.collective = collective, .size = n, .root = row.rooted ? n - 1 : 0, .count = count};
    for (int r = 0; r < n && row.has_counts() && row.counts != BlockCounts::pairs; ++r)
      call.counts.push_back(static_cast<std::size_t>(r % 3) * 2);
    for (int pair = 0; pair < n * n && row.counts == BlockCounts::pairs; ++pair)
      call.counts.push_back(static_cast<std::size_t>(pair / n + 2 * (pair % n)) % 3);
    const auto sides = sides_of(call, me, kNoElement, number_of_element);
    const Octets in = e.of(sides.in);
    Octets out = e.of(sides.before);
    call_by_name(group, {collective, e.in(in), e.out(out), sides.lengths.in_counts, sides.lengths.out_counts},
                 {.root = call.root}, is_async)
        .wait();
    expect(out == e.of(sides.want), std::string(row.name));
    is_async = !is_async;
  }
}

void check_messages(Group& group, const OpaqueElements& e, std::size_t count) {
  const int n = group.size(), me = group.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
  const Octets sent = e.of_rank(me, count);
  Octets got = e.none(count);
  group.sendrecv(e.in(sent), next, e.out(got), before);
  expect(got == e.of_rank(before, count), "sendrecv");
  got = e.none(count);
  Work receive = group.irecv_any(e.out(got), {.tag = 5});
  group.isend(e.in(sent), next, {.tag = 5}).wait();
  receive.wait();
  expect(got == e.of_rank(before, count), "irecv_any");
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

void check_reductions(Group& group, const OpaqueElements& e, std::size_t count, const std::string& algorithm) {
  const int n = group.size(), me = group.rank();
  const auto total = count * static_cast<std::size_t>(n);
  const auto folded = [&](int ranks) {
    Octets sum = e.of_rank(0, total);
    for (int r = 1; r < ranks; ++r) {
      const Octets next = e.of_rank(r, total);
      add_long(sum.data(), next.data(), sum.data(), total, e.dtype());
    }
    return sum;
  };
  const Octets own = e.of_rank(me, total), all = folded(n);
  Options options{.op = Op::user(&add_long, true, "long addition")};
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

void check_size(Group& group, std::size_t size) {
  const OpaqueElements e(size);
  for (const std::size_t count : {1, 3, 40}) {
    check_moves(group, e, count);
    check_messages(group, e, count);
  }
  if (size > col::kMaxReducedBytes) return;
  check_reductions(group, e, 5, "");
  for (const std::string& algorithm : group.algorithms(Collective::allreduce)) {
    try {
      check_reductions(group, e, 700, algorithm);
    } catch (const Error& error) {  // Gloo's own have elements of a few sizes, and bcube a few numbers of ranks
      if (error.code() != ErrorCode::invalid_argument) throw;
    }
  }
}

TEST_CASE("types: opaque elements move and are never cut", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    for (const std::size_t size : {3, 256, 1000}) check_size(group, size);
  });
}

TEST_CASE("types: opaque elements of any size move and are never cut", "[group][rest]") {
  for (const int n : {1, 2, 5}) {
    threads_on_each_backend(n, [](Group& group) {
      for (const std::size_t size : {1, 3, 16, 255, 256, 1000}) check_size(group, size);
    });
  }
}

TEST_CASE("types: elements that are longer than any buffer of the library", "[group]") {
  processes_on_each_backend(3, check_good, [&](Group& group) {
    const OpaqueElements e((std::size_t{3} << 20) + 1);
    check_moves(group, e, 1);
    check_messages(group, e, 1);
  });
}

TEST_CASE("types: opaque elements of two sizes are a mismatch, though they have as many bytes", "[group]") {
  threads_on_each_backend(2, [&](Group& group) {
    Octets out(24);
    const Octets in(12);
    const std::size_t size = group.rank() == 0 ? 3 : 4;
    const Error error = expect_error(ErrorCode::mismatch, "bytes[3]", [&] {
      group.allgather({in.data(), 12 / size, col::opaque(size)}, {out.data(), 24 / size, col::opaque(size)},
                      {.timeout = std::chrono::seconds(20)});
    });
    expect(has(error.message(), "bytes[4]"), error.what());
  });
}

TEST_CASE("types: what an operator or a call does not take is refused with what to do", "[group]") {
  check_good(run_threads(
      2, rank_body(2, usable_backends().front(), [](Group& group) {
        const auto expect_refused = [](const auto& call, const std::string& why) {
          expect_error(ErrorCode::invalid_argument, why, call);
        };
        bool flags[4] = {true, group.rank() == 0, false, true};
        std::vector<std::complex<float>> waves(4, {1, 2});
        Octets bytes(2 * 257);
        const Op user = Op::user(&add_long, true, "long addition");
        const auto opaque = [&](std::size_t size) { return TensorView(bytes.data(), 2, col::opaque(size)); };
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::avg})
          expect_refused([&] { group.allreduce(flags, {.op = op}); }, "booleans take band, bor, bxor, min and max");
        for (const ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::band})
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
        group.allreduce(flags, {.op = ReduceOp::band});
        expect(flags[0] && !flags[1] && !flags[2] && flags[3], "the logical and");
        group.allreduce(waves);
        expect(waves.front() == std::complex<float>(2, 4), "the sum");
      })));
}

}  // namespace
}  // namespace col::test
