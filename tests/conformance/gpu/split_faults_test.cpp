// Groups that are made from groups of GPUs: by NCCL's split where the parent shares its connections (split_share=1),
// and by a meeting of their own otherwise.
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <latch>
#include <string>
#include <vector>

#include "conformance/gpu/faults.hpp"
#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/graphs.hpp"
#include "support/catch.hpp"

namespace col::test {
namespace {

using Floats = GpuArray<float>;

Group join_sharing(Context& context, int rank, int size, bool shares = true) {
  return context.init_group({.name = "g",
                             .rank = rank,
                             .world_size = size,
                             .backend = Backend::nccl,
                             .nccl_settings = shares ? "split_share=1" : ""});
}

void expect_sum(Group& group, int gpu, const char* what) {
  const Floats data(gpu, std::size_t{100}, 1.0f);
  group.allreduce(data);
  expect(data.values() == std::vector<float>(100, static_cast<float>(group.size())), what);
}

TEST_CASE("gpu split: groups that share are made by one split, and are groups like others", "[gpu]") {
  forget_faults();
  check_good(run_threads(4, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_sharing(context, rank, 4);
    group.barrier();
    const std::size_t made = fake_nccl_calls("ncclCommInitRankConfig");
    group.barrier();
    Group pair = group.split(rank % 2, -rank);
    expect(pair.size() == 2 && pair.rank() == (rank < 2 ? 1 : 0), "by color and key");
    expect_sum(pair, rank, "in a pair");
    expect_sum(group, rank, "in the parent");
    Group of_pair = pair.dup();  // shares as well
    expect_sum(of_pair, rank, "in a child of the pair");
    Group some = group.subgroup(std::vector<int>{3, 0, 2}, "some");
    expect(static_cast<bool>(some) == (rank != 1), "those that are listed");
    if (some) expect_sum(some, rank, "in a subgroup");
    Group lonely = group.split(rank == 3 ? -1 : 0);
    if (lonely) expect_sum(lonely, rank, "without the last");
    group.barrier();
    expect(fake_nccl_calls("ncclCommInitRankConfig") == made, "no communicator has met by itself");
    group.barrier();
    const Floats own(rank, std::size_t{8}, 1.0f);
    const std::vector<TensorView> of_pairs{own};
    pair.allreduce_multigpu(of_pairs);
    expect(own.values() == std::vector<float>(8, 2.0f), "over several GPUs");
    group.destroy();  // before its children
    expect_sum(pair, rank, "in a pair whose parent has gone");
  }));
  check_nothing_left();
}

TEST_CASE("gpu split: groups that do not share are made without NCCL's split", "[gpu]") {
  forget_faults();
  check_good(run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_sharing(context, rank, 2, false);
    Group child = group.dup();
    expect_sum(child, rank, "in the child");
    expect(fake_nccl_calls("ncclCommSplit") == 0, "a meeting of its own");
  }));
  check_nothing_left();
}

TEST_CASE("gpu split: what one rank has in flight, or in a graph, is not in the way", "[gpu]") {
  forget_faults();
  check_good(run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_sharing(context, rank, 2);
    const Floats data(rank, std::size_t{100}, 1.0f);
    group.allreduce(data);
    Work work = group.iallreduce(data, data);
    if (rank == 1) work.wait();
    Group child = group.dup();
    expect_sum(child, rank, "beside what is in flight");
    work.wait();  // it may have ended before: then NCCL has split
    group.barrier();
    const std::size_t splits = fake_nccl_calls("ncclCommSplit");
    const nccl_backend::GpuStream stream(cuda());
    Capture capture(stream.get());
    group.allreduce(data, {.stream = {stream.get()}});
    capture.end();
    Group other = group.dup();
    expect_sum(other, rank, "beside a graph");
    capture.replay();
    expect(fake_nccl_calls("ncclCommSplit") == splits, "a meeting of its own");
    group.barrier();
  }));
}

// A rank that cannot make its communicator tells the others, and the parent knows nothing of it.
TEST_CASE("gpu split: one that fails leaves a parent alone that does not share", "[gpu]") {
  forget_faults();
  const auto outcomes = run_threads(2, [](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_sharing(context, rank, 2, false);
    group.barrier();
    if (rank == 0) fake_nccl_fail("ncclCommInitRankConfig", ncclSystemError, 1);
    group.barrier();
    const Error error = error_of([&] { (void)group.dup(); });
    expect(has(error.message(), "cannot connect"), error.what());
    expect_sum(group, rank, "in the parent");
    Group child = group.dup();
    expect_sum(child, rank, "in the next child");
  });
  forget_faults();
  check_good(outcomes);
  check_nothing_left();
}

// At the call, or in what it begins: then NCCL leaves the new one's handle to be aborted.
TEST_CASE("gpu split: one that fails in NCCL breaks a parent that shares, and says so", "[gpu]") {
  const auto function = GENERATE(as<std::string>{}, "ncclCommSplit", "ncclCommInitRankFunc");
  INFO(function);
  forget_faults();
  const auto began = std::chrono::steady_clock::now();
  const auto outcomes = run_threads(2, [&function](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_sharing(context, rank, 2);
    group.barrier();
    if (rank == 0) fake_nccl_fail(function.c_str(), ncclSystemError, 1);
    group.barrier();
    if (rank == 0) {
      expect_error(ErrorCode::io, "cannot split the communicator", [&] { (void)group.dup(); });
      expect_error(ErrorCode::aborted, "the group broke before", [&] { group.barrier(); });
    } else {
      expect_error(ErrorCode::io, "cannot split the communicator", [&] { (void)group.dup(); });
    }
  });
  forget_faults();
  check_good(outcomes);
  // The other one has not waited for its deadline, 20 s.
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(10));
  check_nothing_left();
}

// NCCL ends the work of all that share, and says nothing: the data would be wrong.
TEST_CASE("gpu split: an error in one of those that share breaks all of them", "[gpu]") {
  forget_faults();
  std::latch ended(1);
  const auto outcomes = run_threads(2, [&ended](int rank, Context& context) {
    const OnGpu current(rank);
    Group group = join_sharing(context, rank, 2);
    Group child = group.dup();
    const Floats data(rank, std::size_t{100}, 1.0f), more(rank, std::size_t{100}, 1.0f);
    group.barrier();
    if (rank == 1) {
      ended.wait();
    } else {
      Work in_parent = group.iallreduce(more, more);
      // Rank 1 does not come.
      expect_error(ErrorCode::timeout, "", [&] { child.allreduce(data, {.timeout = std::chrono::seconds(1)}); });
      const Error error = error_of([&] { in_parent.wait(); });
      expect(error.code() == ErrorCode::timeout || error.code() == ErrorCode::aborted, error.what());
      ended.count_down();
    }
  });
  forget_faults();
  check_good(outcomes);
  check_nothing_left();
}

}  // namespace
}  // namespace col::test
