// COL_CHECK=strict: calls are compared before any data moves.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/fleet.hpp"
#include "conformance/group/worlds.hpp"

using col::ErrorCode;
using col::Group;
using col::test::expect;
using col::test::Setting;
using namespace std::chrono_literals;

namespace {

constexpr int kRanks = 4;
constexpr int kOdd = 2;
constexpr int kUntouched = -99;

struct Call {
  std::string what;
  std::function<void(Group&, const std::vector<int>& in, std::vector<int>& out, bool odd)> make;
};

const std::vector<Call>& odd_calls() {
  static const std::vector<Call> calls = {
      {"collective", [](Group& group, const auto& in, auto& out,
                        bool odd) { odd ? group.reduce(in, out) : group.allreduce(in, out); }},
      {"count",
       [](Group& group, const auto& in, auto& out, bool odd) {
         const std::size_t count = odd ? in.size() - 1 : in.size();
         group.allreduce(col::ConstTensorView(in).slice(0, count), col::TensorView(out).slice(0, count));
       }},
      {"dtype",
       [](Group& group, const auto& in, auto& out, bool odd) {
         const col::DType dtype = odd ? col::DType::uint32 : col::DType::int32;
         group.allreduce(col::ConstTensorView(in.data(), in.size(), dtype),
                         col::TensorView(out.data(), out.size(), dtype));
       }},
      {"root", [](Group& group, const auto&, auto& out, bool odd) { group.broadcast(out, {.root = odd ? 1 : 0}); }},
      {"reduce op", [](Group& group, const auto& in, auto& out,
                       bool odd) { group.allreduce(in, out, {.op = odd ? col::ReduceOp::max : col::ReduceOp::sum}); }},
      {"algorithm", [](Group& group, const auto& in, auto& out,
                       bool odd) { group.allreduce(in, out, {.algorithm = odd ? "mst" : "ring"}); }},
      {"i-form", [](Group& group, const auto& in, auto& out,
                    bool odd) { odd ? group.iallreduce(in, out).wait() : group.allreduce(in, out); }},
  };
  return calls;
}

}  // namespace

TEST_CASE("check: strict finds every difference before an output is touched, and names the odd rank", "[group]") {
  const Setting setting("COL_CHECK", "strict");
  for (const std::string& backend : col::test::usable_backends()) {
    for (const Call& call : odd_calls()) {
      const auto outcomes = col::test::run_threads(kRanks, [&](int rank, col::Context& context) {
        Group group = context.init_group({.rank = rank, .world_size = kRanks, .backend_name = backend});
        const std::vector<int> in(1000, rank);
        std::vector<int> out(in.size(), kUntouched);
        try {
          call.make(group, in, out, rank == kOdd);
        } catch (const col::Error&) {
          expect(out == std::vector<int>(out.size(), kUntouched), "the output was touched");
          throw;
        }
      });
      INFO(backend << ", another " << call.what << "\n" << col::test::show(outcomes));
      for (const auto& outcome : outcomes) {
        CHECK(outcome.code == ErrorCode::mismatch);
        CHECK(outcome.error_rank == kOdd);
        CHECK(outcome.seconds < 5);
      }
    }
  }
}

TEST_CASE("check: strict finds it also where the call itself would not wait", "[group]") {
  // A small broadcast from rank 0 ends there at once: without strict, rank 0 would be gone before anybody looks.
  const Setting setting("COL_CHECK", "strict");
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(3, [&](int rank, col::Context& context) {
      Group group = context.init_group({.rank = rank, .world_size = 3, .backend_name = backend});
      std::vector<int> data(rank == 1 ? 2u : 1u);
      group.broadcast(data);
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    for (const auto& outcome : outcomes) {
      CHECK(outcome.code == ErrorCode::mismatch);
      CHECK(outcome.error_rank == 1);
    }
  }
}

TEST_CASE("check: strict lets matched programs run, and the store does not grow", "[group]") {
  const Setting setting("COL_CHECK", "strict");
  col::test::threads_on_each_backend(3, [](Group& group, col::Context& context) {
    // Two keys per rank: of the call that it is in, and of the one before.
    std::size_t at_start = 0;
    for (int i = 0; i < 100; ++i) {
      std::vector<int> data(10, 1);
      group.allreduce(data);
      expect(data.back() == 3);
      if (i == 5) at_start = context.spec().store->num_keys();
    }
    const std::size_t at_end = context.spec().store->num_keys();
    expect(at_end <= at_start + 6, fmt::format("{} keys, then {}", at_start, at_end));
    for (int kind = 0; kind < col::test::kFlightKinds; ++kind) {
      const auto flight = col::test::launch(group, kind, 50, kind);
      for (col::Work work : flight->works) work.wait();
      col::test::expect_arrived(*flight);
    }
  });
}

TEST_CASE("check: strict with processes, over a store of files", "[group]") {
  const Setting setting("COL_CHECK", "strict");
  col::test::processes_on_each_backend(3, [](Group& group, col::Context& context) {
    std::size_t at_start = 0;
    for (int i = 0; i < 100; ++i) {
      std::vector<int> data(10, 1);
      group.allreduce(data);
      expect(data.back() == 3);
      if (i == 5) at_start = context.spec().store->num_keys();
    }
    const std::size_t at_end = context.spec().store->num_keys();
    expect(at_end <= at_start + 6, fmt::format("{} keys, then {}", at_start, at_end));
  });
}

TEST_CASE("check: strict leaves no more keys behind with every group that is made", "[group]") {
  const Setting setting("COL_CHECK", "strict");
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
      std::size_t at_start = 0;
      for (int i = 0; i < 20; ++i) {
        Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
        group.barrier();
        if (i == 3) at_start = context.spec().store->num_keys();
        context.destroy_group("default");
      }
      const std::size_t at_end = context.spec().store->num_keys();
      expect(at_end <= at_start + 10, fmt::format("{} keys, then {}", at_start, at_end));
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}
