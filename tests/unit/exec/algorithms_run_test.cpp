// Every algorithm, run by the executor over a channel that delivers late and out of order, against the obvious result.
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>
#include <col/plan.hpp>

#include "common/arithmetic.hpp"
#include "support/catch.hpp"
#include "support/memory_channel.hpp"
#include "support/ranks.hpp"
#include "support/temp_dir.hpp"

namespace {

using col::Collective;
using col::test::expect;
using col::tools::elements_of;
using col::tools::ReferenceCall;
using Vector = std::vector<std::int64_t>;

constexpr std::uint64_t kSeed = 20261121;

// Rank r's element i of its input: no two alike, and no sum of them like another.
std::int64_t value(int rank, std::size_t i) {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15ULL +
                                   i * 0xbf58476d1ce4e5b9ULL);
}

Vector input(int rank, std::size_t count) {
  Vector values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value(rank, i);
  return values;
}

// What one rank's output must be; empty where it has none.
Vector expected(const ReferenceCall& call, int rank) {
  return col::tools::right_output<std::int64_t>(call, rank, value);
}

// Runs one collective; returns this rank's output.
Vector run(col::Group& group, const ReferenceCall& call, const col::Options& options) {
  const int rank = group.rank();
  Vector in = input(rank, elements_of(input_blocks(call, rank)));
  // The output of an exscan is there on rank 0 too, which does not write it.
  Vector out(call.collective == Collective::exscan ? call.count : elements_of(output_segments(call, rank)));
  if (call.collective == Collective::broadcast) {
    std::copy(in.begin(), in.end(), out.begin());
    in.clear();
  }
  group.run({.collective = call.collective, .in = in, .out = out}, options);
  return out;
}

void run_every_algorithm(int size, const std::string& backend) {
  const auto outcomes = col::test::run_threads(size, [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = size, .backend_name = backend});
    for (const col::Algorithm& algorithm : col::algorithms()) {
      if (row_of(algorithm.collective).has_counts()) continue;
      col::PlanRequest request{.collective = algorithm.collective, .size = size};
      if (algorithm.refuse(request)) continue;
      for (const std::size_t count : {std::size_t{1}, std::size_t{0}, std::size_t{13}, std::size_t{64}}) {
        const int root = static_cast<int>(count) % size;
        const ReferenceCall call{.collective = algorithm.collective, .size = size, .root = root, .count = count};
        const Vector got = run(group, call, {.root = root, .algorithm = algorithm.name});
        const Vector want = expected(call, rank);
        if (want.empty()) continue;
        expect(got == want, fmt::format("{} by {}, {} ranks, {} elements, root {}, rank {}",
                                        to_string(algorithm.collective), algorithm.name, size, count, root, rank));
      }
    }
  });
  INFO(show(outcomes));
  CHECK(all_good(outcomes));
}

}  // namespace

TEST_CASE("executor: every algorithm is right over messages that arrive late and out of order", "[exec]") {
  col::test::register_memory_backend({.name = "late", .longest_delay = std::chrono::microseconds(200), .seed = kSeed});
  for (const int size : {2, 3, 5, 8}) run_every_algorithm(size, "late");
}

TEST_CASE("executor: every algorithm is right when sends end as soon as they are posted", "[exec]") {
  col::test::register_memory_backend({.name = "buffered", .rendezvous = false});
  for (const int size : {4, 7}) run_every_algorithm(size, "buffered");
}

// The ranks are threads of one process; the plans are those of ranks on several nodes.
TEST_CASE("executor: every algorithm of two levels is right, as a plan from a file", "[exec]") {
  col::test::register_memory_backend({.name = "late", .longest_delay = std::chrono::microseconds(200), .seed = kSeed});
  const col::test::TempDir dir;
  const std::vector<std::vector<int>> layouts = {{0, 0, 1, 1}, {0, 1, 0, 1, 0}, {0, 1, 2, 0, 2, 0}};
  for (const std::vector<int>& nodes : layouts) {
    const auto size = static_cast<int>(nodes.size());
    std::vector<std::pair<ReferenceCall, std::string>> calls;
    for (const col::Algorithm& algorithm : col::algorithms()) {
      const std::size_t count = row_of(algorithm.collective).has_data() ? 13 : 0;
      const int root = row_of(algorithm.collective).rooted ? 1 : 0;
      const bool counts = row_of(algorithm.collective).has_counts();
      if (counts || !algorithm.name.starts_with("two_level")) continue;
      const col::PlanProblem problem(
          {.collective = algorithm.collective, .size = size, .root = root, .count = count, .node_of_rank = nodes});
      if (algorithm.refuse(problem.request(0))) continue;
      const std::string path =
          fmt::format("{}/{}-{}-{}.json", dir.path(), to_string(algorithm.collective), algorithm.name, size);
      std::ofstream(path) << plan_to_json(problem, plans_of(algorithm, problem), algorithm.name);
      calls.push_back({{.collective = algorithm.collective, .size = size, .root = root, .count = count}, path});
    }
    REQUIRE(calls.size() >= 14);
    const auto outcomes = col::test::run_threads(size, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = size, .backend_name = "late"});
      for (const auto& [call, path] : calls) {
        const std::string algorithm = "file:" + path;
        const Vector got = run(group, call, {.root = call.root, .algorithm = algorithm});
        const Vector want = expected(call, rank);
        if (!want.empty()) expect(got == want, fmt::format("{}, rank {}", path, rank));
      }
    });
    INFO(show(outcomes));
    CHECK(all_good(outcomes));
  }
}

TEST_CASE("trace: what a rank executes is what its plan says", "[exec]") {
  col::test::register_memory_backend();
  for (const char* name : {"mst", "bde", "bde_half", "ring"}) {
    const auto outcomes = col::test::run_threads(6, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 6, .backend_name = "memory"});
      group.record_trace(true);
      const Vector in = input(rank, 20);
      Vector out(20);
      group.allreduce(in, out, {.algorithm = name});
      const auto trace = group.trace();

      const col::Algorithm* algorithm = col::find_algorithm(Collective::allreduce, name);
      const col::Plan plan =
          algorithm->build({.collective = Collective::allreduce, .rank = rank, .size = 6, .count = 20});
      std::vector<std::pair<std::size_t, col::Step>> want;
      col::Round round;
      for (std::size_t i = 0; i < plan.rounds; ++i) {
        plan.round(i, round);
        for (const col::Step& step : round.steps()) want.emplace_back(i, step);
      }
      expect(trace.size() == want.size(), fmt::format("{} steps of {}", trace.size(), want.size()));
      for (const auto& entry : trace) {
        const auto found = std::find(want.begin(), want.end(), std::pair(entry.round, entry.step));
        expect(found != want.end(), "a step that the plan does not have");
        want.erase(found);
        expect(entry.algorithm == name && entry.operation == 1 && entry.collective == Collective::allreduce);
      }
    });
    INFO(show(outcomes));
    CHECK(all_good(outcomes));
  }
}

TEST_CASE("executor: a peer that closes ends the collective with peer_lost on the others", "[exec]") {
  col::test::register_memory_backend({.name = "closing", .closing = col::test::MemoryOptions::Closing{1, 3}});
  const auto outcomes = col::test::run_threads(4, [&](int rank, col::Context& context) {
    col::Group group = context.init_group({.name = "g", .rank = rank, .world_size = 4, .backend_name = "closing"});
    Vector data = input(rank, 100);
    for (int i = 0; i < 10; ++i) group.allreduce(data, {.algorithm = "ring"});
  });
  INFO(show(outcomes));
  for (const auto& outcome : outcomes) {
    CHECK_FALSE(outcome.good);
    CHECK(outcome.seconds < col::test::kPromptSeconds);
  }
}
