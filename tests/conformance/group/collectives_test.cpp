// Every collective of Group against an obvious reference, on every backend, as threads and as processes. Inputs differ
// by rank and element, so that a block in the wrong place cannot look right.
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/backends.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace {

using col::test::expect;

// Small whole numbers: every sum of them is exact in every type.
template <class T>
std::vector<T> block(int rank, std::size_t count, int salt = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(
        static_cast<float>((static_cast<std::size_t>(rank) * 7 + i * 3 + static_cast<std::size_t>(salt)) % 11));
  return values;
}

template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, col::float16> || std::is_same_v<T, col::bfloat16>)
    return static_cast<float>(value);
  else
    return static_cast<double>(value);
}

template <class T>
void expect_equal(const std::vector<T>& got, const std::vector<T>& want, const std::string& what) {
  expect(got.size() == want.size(), what);
  for (std::size_t i = 0; i < got.size(); ++i)
    expect(number(got[i]) == number(want[i]),
           fmt::format("{}: element {} is {}, not {}", what, i, number(got[i]), number(want[i])));
}

template <class T>
std::vector<T> concatenated(int n, std::size_t count, int salt = 0) {
  std::vector<T> all;
  for (int r = 0; r < n; ++r) {
    const auto part = block<T>(r, count, salt);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

template <class T>
std::vector<T> reduced(int n, std::size_t count, col::ReduceOp op) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    double value = number(block<T>(0, count)[i]);
    for (int r = 1; r < n; ++r) {
      const double next = number(block<T>(r, count)[i]);
      if (op == col::ReduceOp::sum) value += next;
      if (op == col::ReduceOp::max) value = std::max(value, next);
      if (op == col::ReduceOp::min) value = std::min(value, next);
    }
    result[i] = static_cast<T>(static_cast<float>(value));
  }
  return result;
}

template <class T>
void reductions(col::Group& group, std::size_t count) {
  const int n = group.size();
  for (const col::ReduceOp op : {col::ReduceOp::sum, col::ReduceOp::max, col::ReduceOp::min}) {
    const auto what = fmt::format("{} of {} {}", to_string(op), count, to_string(col::dtype_of<T>()));
    const auto want = reduced<T>(n, count, op);
    const auto in = block<T>(group.rank(), count);
    auto input = in;
    std::vector<T> out(count);
    group.allreduce(input, out, {.op = op});
    expect_equal(out, want, "allreduce " + what);
    expect_equal(input, in, "the input of allreduce " + what);
    group.allreduce(input, {.op = op});
    expect_equal(input, want, "allreduce in place, " + what);
    for (const int root : {0, n - 1}) {
      input = in;
      std::vector<T> result(count, static_cast<T>(99.0f));
      const auto untouched = result;
      group.reduce(input, result, {.op = op, .root = root});
      expect_equal(result, group.rank() == root ? want : untouched, "reduce " + what);
      expect_equal(input, in, "the input of reduce " + what);
    }
  }
}

template <class T>
void rooted(col::Group& group, std::size_t count) {
  const int n = group.size();
  for (int root = 0; root < n; ++root) {
    const bool is_root = group.rank() == root;
    auto data = is_root ? block<T>(root, count, 5) : std::vector<T>(count);
    group.broadcast(data, {.root = root});
    expect_equal(data, block<T>(root, count, 5), "broadcast");

    std::vector<T> all(is_root ? count * static_cast<std::size_t>(n) : 0);
    group.gather(block<T>(group.rank(), count), all, {.root = root});
    if (is_root) expect_equal(all, concatenated<T>(n, count), "gather");

    const auto source = is_root ? concatenated<T>(n, count, 3) : std::vector<T>();
    std::vector<T> own(count);
    group.scatter(source, own, {.root = root});
    expect_equal(own, block<T>(group.rank(), count, 3), "scatter");
  }
}

template <class T>
void gathering(col::Group& group, std::size_t count) {
  const int n = group.size();
  const auto me = static_cast<std::size_t>(group.rank());
  std::vector<T> all(count * static_cast<std::size_t>(n));
  group.allgather(block<T>(group.rank(), count), all);
  expect_equal(all, concatenated<T>(n, count), "allgather");

  std::fill(all.begin(), all.end(), T{});
  const col::TensorView whole(all);
  const auto own = block<T>(group.rank(), count);
  std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(me * count));
  group.allgather(whole.slice(me * count, count), whole);
  expect_equal(all, concatenated<T>(n, count), "allgather in place");

  std::vector<std::size_t> counts;  // skewed, with a rank that gives nothing
  std::vector<T> want;
  for (int r = 0; r < n; ++r) {
    counts.push_back(r == 1 ? 0 : count + static_cast<std::size_t>(r));
    const auto part = block<T>(r, counts.back());
    want.insert(want.end(), part.begin(), part.end());
  }
  std::vector<T> out(want.size());
  group.allgatherv(block<T>(group.rank(), counts[me]), out, counts);
  expect_equal(out, want, "allgatherv");
}

// What rank `from` sends to rank `to`.
template <class T>
std::vector<T> letter(int from, int to, std::size_t count) {
  return block<T>(from * 5 + to, count, 1);
}

template <class T>
void personalised(col::Group& group, std::size_t count) {
  const int n = group.size();
  const auto correspondence = [&](auto counts_of) {
    std::vector<T> in, want;
    std::vector<std::size_t> in_counts, out_counts;
    for (int r = 0; r < n; ++r) {
      in_counts.push_back(counts_of(group.rank(), r));
      out_counts.push_back(counts_of(r, group.rank()));
      const auto sent = letter<T>(group.rank(), r, in_counts.back());
      const auto received = letter<T>(r, group.rank(), out_counts.back());
      in.insert(in.end(), sent.begin(), sent.end());
      want.insert(want.end(), received.begin(), received.end());
    }
    return std::tuple(in, want, in_counts, out_counts);
  };
  auto [in, want, unused1, unused2] = correspondence([&](int, int) { return count; });
  std::vector<T> out(want.size());
  group.alltoall(in, out);
  expect_equal(out, want, "alltoall");
  group.alltoall(in, in);
  expect_equal(in, want, "alltoall in place");

  auto [vin, vwant, in_counts, out_counts] = correspondence(
      [&](int from, int to) { return from == to ? 0 : count + static_cast<std::size_t>(from + 2 * to); });
  std::vector<T> vout(vwant.size());
  group.alltoallv(vin, in_counts, vout, out_counts);
  expect_equal(vout, vwant, "alltoallv");
}

template <class T>
void everything(col::Group& group) {
  const auto n = static_cast<std::size_t>(group.size());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n - 1, n + 1, std::size_t{131}}) {
    reductions<T>(group, count);
    rooted<T>(group, count);
    gathering<T>(group, count);
    personalised<T>(group, count);
    group.barrier();
  }
}

void all_types(col::Group& group) {
  everything<float>(group);
  everything<std::int32_t>(group);
  everything<col::bfloat16>(group);
  everything<std::uint8_t>(group);
  everything<double>(group);
}

}  // namespace

TEST_CASE("collectives: right on a world of one", "[group]") {
  const auto outcomes = col::test::run_threads(1, [](int, col::Context&) {
    col::Group group = col::init();
    all_types(group);
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
}

TEST_CASE("collectives: right with ranks as threads", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    for (const int n : {2, 3, 5}) {
      const auto outcomes = col::test::run_threads(n, [&](int rank, col::Context& context) {
        col::Group group = context.init_group({.rank = rank, .world_size = n, .backend_name = backend});
        all_types(group);
      });
      INFO(backend << " with " << n << " ranks\n" << col::test::show(outcomes));
      CHECK(col::test::all_good(outcomes));
    }
  }
}

TEST_CASE("collectives: right with ranks as processes", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    for (const int n : {2, 4}) {
      const auto outcomes = col::test::run_processes(n, [&](int rank, col::Context& context) {
        col::Group group = context.init_group({.rank = rank, .world_size = n, .backend_name = backend});
        everything<float>(group);
        everything<std::int64_t>(group);
        context.finalize();
      });
      INFO(backend << " with " << n << " ranks\n" << col::test::show(outcomes));
      CHECK(col::test::all_good(outcomes));
    }
  }
}

TEST_CASE("collectives: all ranks hold the same bits, and the same call gives the same bits again", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    constexpr int kRanks = 5;
    std::array<std::vector<float>, kRanks> results;
    const auto outcomes = col::test::run_threads(kRanks, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.rank = rank, .world_size = kRanks, .backend_name = backend});
      std::vector<float> in(1013), first(in.size()), second(in.size());
      for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = 1.0f / static_cast<float>(1 + i + static_cast<std::size_t>(rank) * 17);
      group.allreduce(in, first);
      group.allreduce(in, second);
      expect(first == second, "two runs differ");
      results[static_cast<std::size_t>(rank)] = first;
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
    for (const auto& result : results) CHECK(result == results.front());
  }
}

TEST_CASE("collectives: an algorithm that the backend does not have is refused, naming those it has", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
      std::vector<float> data(3);
      try {
        group.allreduce(data, {.algorithm = "magic"});
        expect(false, "no error");
      } catch (const col::Error& error) {
        expect(error.code() == col::ErrorCode::invalid_argument, error.what());
        expect(error.message().find("choose from '") != std::string::npos, error.what());
      }
      group.allreduce(data);  // the group is as good as before
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("collectives: ranks that are not the root of a scatter give no input", "[group]") {
  constexpr int kRanks = 3;
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(kRanks, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.rank = rank, .world_size = kRanks, .backend_name = backend});
      for (const std::size_t count : {4u, 300'000u}) {
        const std::vector<std::size_t> counts = {count, 2 * count, 3};
        for (int root = 0; root < kRanks; ++root) {
          std::vector<float> all(3 * count + 3), mine(counts[static_cast<std::size_t>(rank)]);
          std::iota(all.begin(), all.end(), static_cast<float>(root));
          const std::array<std::size_t, kRanks> begins = {0, count, 3 * count};
          const std::size_t begin = begins[static_cast<std::size_t>(rank)];
          if (rank == root)
            group.scatterv(all, counts, mine, {.root = root});
          else
            group.scatterv({}, {}, mine, {.root = root});
          for (std::size_t i = 0; i < mine.size(); ++i)
            expect(mine[i] == static_cast<float>(begin + i) + static_cast<float>(root), fmt::format("scatterv {}", i));
          std::vector<float> equal(count);
          if (rank == root)
            group.scatter(std::span(all).first(kRanks * count), equal, {.root = root});
          else
            group.scatter({}, equal, {.root = root});
          for (std::size_t i = 0; i < count; ++i)
            expect(equal[i] == all[static_cast<std::size_t>(rank) * count + i], fmt::format("scatter {}", i));
        }
      }
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("collectives: a root means nothing to calls that have none", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
      const std::vector<float, col::Allocator<float>> in(100'000, 1.0F, col::Allocator<float>(group));
      std::vector<float, col::Allocator<float>> out(100'000, col::Allocator<float>(group));
      group.allreduce(in, out, {.root = 7});
      expect(std::count(out.begin(), out.end(), 2.0F) == 100'000, "the sum");
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("collectives: a number is a tensor of one element", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
      col::Group world = context.init_group({.rank = rank, .world_size = 3, .backend_name = backend});
      double residual = rank + 0.5, largest = 0;
      world.allreduce(residual, largest, {.op = col::ReduceOp::max});
      expect(largest == 2.5 && residual == rank + 0.5);
      world.allreduce(residual);
      expect(residual == 4.5);
      int number = rank == 2 ? 7 : 0;
      world.broadcast(number, {.root = 2});
      expect(number == 7);
      world.reduce(number, {.root = 1});
      expect(rank != 1 || number == 21);
      std::vector<int> all(3);
      world.allgather(rank, all);
      expect(all == std::vector{0, 1, 2});
      if (rank == 0) world.send(3, 1);
      int got = 0;
      if (rank == 1) world.recv(got, 0);
      expect(rank != 1 || got == 3);
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("collectives: a call as data is the method of its name, and a message is none", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
      col::Group world = context.init_group({.rank = rank, .world_size = 3, .backend_name = backend});
      const std::vector<std::size_t> counts = {1, 0, 2};
      const std::vector<int> own(counts[static_cast<std::size_t>(rank)], rank), all = {7, 8, 9};
      std::vector<int> sums(3), gathered(3), part(own.size());
      const col::Call sum{col::Collective::allreduce, all, sums};
      world.run(sum, {.op = col::ReduceOp::max});
      expect(sums == all);
      world.start(sum).wait();
      expect(sums == std::vector{21, 24, 27});
      world.run({.collective = col::Collective::allgatherv, .in = own, .out = gathered, .out_counts = counts});
      expect(gathered == std::vector{0, 2, 2});
      world.run({.collective = col::Collective::scatterv, .in = all, .out = part, .in_counts = counts}, {.root = 1});
      expect(part == (rank == 0 ? std::vector{7} : rank == 1 ? std::vector<int>() : std::vector{8, 9}));
      world.start({.collective = col::Collective::broadcast, .out = sums}, {.root = 2}).wait();
      world.run({.collective = col::Collective::barrier});
      for (const col::Collective message : {col::Collective::send, col::Collective::recv, col::Collective{99}}) {
        try {
          world.run({.collective = message, .in = all, .out = sums});
          expect(false, "it ran");
        } catch (const col::Error& error) {
          expect(error.code() == col::ErrorCode::invalid_argument, error.what());
        }
      }
      world.barrier();
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}
