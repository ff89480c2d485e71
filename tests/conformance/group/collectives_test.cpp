// Every collective of Group by its method against the reference, on every backend, as threads and as processes. Inputs
// differ by rank and element, so that a block in the wrong place cannot look right.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"
#include "support/collectives.hpp"

namespace col::test {
namespace {

// Small whole numbers: every sum of them is exact in every type.
double small_number(int rank, std::size_t i) {
  return static_cast<double>((static_cast<std::size_t>(rank) * 7 + i * 3) % 11);
}

// The shorter side is this rank's block of the longer one.
template <class T>
void check_in_place(Group& group, const tools::ReferenceCall& call, const Sides<T>& sides, const Options& options) {
  const bool in_is_longer = sides.in.size() >= sides.want.size();
  const auto inner = static_cast<std::ptrdiff_t>(sides.lengths.inner);
  std::vector<T> both = in_is_longer ? sides.in : sides.before;
  if (!in_is_longer) std::copy(sides.in.begin(), sides.in.end(), both.begin() + inner);
  std::vector<T> want = both;
  if (gets_output(call, group.rank()))
    std::copy(sides.want.begin(), sides.want.end(), want.begin() + (in_is_longer ? inner : 0));
  const TensorView all(both);
  const TensorView part = all.slice(sides.lengths.inner, std::min(sides.in.size(), sides.want.size()));
  run_by_name(group,
              {call.collective, in_is_longer ? all : part, in_is_longer ? part : all, sides.lengths.in_counts,
               sides.lengths.out_counts},
              options);
  expect_equal(both, want, fmt::format("{} in place, root {}", to_string(call.collective), call.root));
}

template <class T>
void check_call(Group& group, tools::ReferenceCall call, ReduceOp op) {
  const auto what = fmt::format("{} ({}) of {} {}, root {}", to_string(call.collective), to_string(op), call.count,
                                to_string(dtype_of<T>()), call.root);
  call.ops = {op};
  const Sides<T> sides = sides_of(call, group.rank(), T(99.0F), small_number);
  std::vector<T> in = sides.in, out = sides.before;
  const Options options{.op = op, .root = call.root};
  run_by_name(group, {call.collective, in, out, sides.lengths.in_counts, sides.lengths.out_counts}, options);
  expect_equal(out, sides.want, what);
  expect_equal(in, sides.in, "the input of " + what);
  if (row_of(call.collective).has_in_place() && !row_of(call.collective).has_private_counts())
    check_in_place(group, call, sides, options);
}

template <class T>
void check_all_calls(Group& group) {
  const int n = group.size();
  const auto ranks = static_cast<std::size_t>(n);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, ranks - 1, ranks + 1, std::size_t{131}}) {
    for (const Collective collective : all_collectives()) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min}) {
        if (op != ReduceOp::sum && !row_of(collective).reduces()) continue;
        for (int root = 0; root < (row_of(collective).rooted ? n : 1); ++root)
          check_call<T>(group, reference_call(collective, n, root, count), op);
      }
    }
  }
}

void check_all_types(Group& group) {
  check_all_calls<float>(group);
  check_all_calls<std::int32_t>(group);
  check_all_calls<col::bfloat16>(group);
  check_all_calls<std::uint8_t>(group);
  check_all_calls<double>(group);
}

TEST_CASE("collectives: right on a world of one", "[group]") {
  check_good(run_threads(1, [](int, Context&) {
    Group group = col::init();
    check_all_types(group);
  }));
}

TEST_CASE("collectives: right with ranks as threads", "[group]") {
  for (const int n : {2, 3, 5}) threads_on_each_backend(n, check_all_types);
}

TEST_CASE("collectives: right with ranks as processes", "[group]") {
  for (const int n : {2, 4}) {
    processes_on_each_backend(n, [](Group& group) {
      check_all_calls<float>(group);
      check_all_calls<std::int64_t>(group);
    });
  }
}

TEST_CASE("collectives: all ranks hold the same bits, and the same call gives the same bits again", "[group]") {
  std::array<std::vector<float>, 5> results;
  const auto are_the_same = [&](const std::vector<Outcome>& outcomes) {
    check_good(outcomes);
    for (const auto& result : results) CHECK(result == results.front());
  };
  threads_on_each_backend(5, are_the_same, [&](Group& group) {
    std::vector<float> in(1013), first(in.size()), second(in.size());
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = 1.0f / static_cast<float>(1 + i + static_cast<std::size_t>(group.rank()) * 17);
    group.allreduce(in, first);
    group.allreduce(in, second);
    expect(first == second, "two runs differ");
    results[static_cast<std::size_t>(group.rank())] = first;
  });
}

TEST_CASE("collectives: an algorithm that the backend does not have is refused, naming those it has", "[group]") {
  threads_on_each_backend(2, [](Group& group) {
    std::vector<float> data(3);
    expect_error(ErrorCode::invalid_argument, "choose from '", [&] { group.allreduce(data, {.algorithm = "magic"}); });
    group.allreduce(data);  // the group is as good as before
  });
}

TEST_CASE("collectives: ranks that are not the root of a scatter give no input", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    for (const std::size_t count : {4u, 300'000u}) {
      for (int root = 0; root < 3; ++root) {
        tools::ReferenceCall call{.collective = Collective::scatter, .size = 3, .root = root, .count = count};
        const auto begins_with_root = [&](int, std::size_t i) {
          return static_cast<float>(i) + static_cast<float>(root);
        };
        const auto equal = sides_of(call, group.rank(), -1.0f, begins_with_root);
        call.collective = Collective::scatterv;
        call.counts = {count, 2 * count, 3};
        const auto uneven = sides_of(call, group.rank(), -1.0f, begins_with_root);
        std::vector<float> out = equal.before, out_uneven = uneven.before;
        if (group.rank() == root) {
          group.scatterv(uneven.in, call.counts, out_uneven, {.root = root});
          group.scatter(equal.in, out, {.root = root});
        } else {
          group.scatterv({}, {}, out_uneven, {.root = root});
          group.scatter({}, out, {.root = root});
        }
        expect_equal(out_uneven, uneven.want, "scatterv");
        expect_equal(out, equal.want, "scatter");
      }
    }
  });
}

TEST_CASE("collectives: a root means nothing to calls that have none", "[group]") {
  threads_on_each_backend(2, [&](Group& group) {
    const std::vector<float, Allocator<float>> in(100'000, 1.0F, Allocator<float>(group));
    std::vector<float, Allocator<float>> out(100'000, Allocator<float>(group));
    group.allreduce(in, out, {.root = 7});
    expect(std::count(out.begin(), out.end(), 2.0F) == 100'000, "the sum");
  });
}

TEST_CASE("collectives: a number is a tensor of one element", "[group]") {
  threads_on_each_backend(3, [&](Group& world) {
    const int rank = world.rank();
    double residual = rank + 0.5, largest = 0;
    world.allreduce(residual, largest, {.op = ReduceOp::max});
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
}

TEST_CASE("collectives: a call as data is the method of its name, and a message is none", "[group]") {
  threads_on_each_backend(3, [&](Group& world) {
    const int rank = world.rank();
    const std::vector<std::size_t> counts = {1, 0, 2};
    const std::vector<int> own(counts[static_cast<std::size_t>(rank)], rank), all = {7, 8, 9};
    std::vector<int> sums(3), gathered(3), part(own.size());
    const col::Call sum{Collective::allreduce, all, sums};
    world.run(sum, {.op = ReduceOp::max});
    expect(sums == all);
    world.start(sum).wait();
    expect(sums == std::vector{21, 24, 27});
    world.run({.collective = Collective::allgatherv, .in = own, .out = gathered, .out_counts = counts});
    expect(gathered == std::vector{0, 2, 2});
    world.run({.collective = Collective::scatterv, .in = all, .out = part, .in_counts = counts}, {.root = 1});
    expect(part == (rank == 0 ? std::vector{7} : rank == 1 ? std::vector<int>() : std::vector{8, 9}));
    world.start({.collective = Collective::broadcast, .out = sums}, {.root = 2}).wait();
    world.run({.collective = Collective::barrier});
    for (const Collective message : {Collective::send, Collective::recv, Collective{99}}) {
      expect_error(ErrorCode::invalid_argument, "",
                   [&] { world.run({.collective = message, .in = all, .out = sums}); });
    }
    world.barrier();
  });
}

}  // namespace
}  // namespace col::test
