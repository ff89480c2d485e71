// What the environment decides about calls: COL_BACKEND, COL_ALGORITHM, COL_SELECTION, and words that mean nothing.
// COL_NUMERICS is in rank_order_test.cpp, COL_CHECK in check_test.cpp, COL_PROGRESS in progress_test.cpp.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"
#include "support/temp_dir.hpp"

using col::Collective;
using col::ErrorCode;
using col::Group;
using col::test::error_of;
using col::test::expect;
using col::test::Setting;
using col::test::threads_on_each_backend;

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The algorithm that an allreduce of 1000 elements runs, by its trace; its result is checked.
std::string runs(Group& group, const col::Options& options = {}) {
  std::vector<int> data(1000, group.rank() + 1);
  group.record_trace(true);
  group.allreduce(data, options);
  const std::vector<col::TraceEntry> trace = group.trace();
  const std::string name = trace.empty() ? "" : std::string(trace.front().algorithm);
  group.record_trace(false);
  expect(data.front() == group.size() * (group.size() + 1) / 2 && data.back() == data.front(), name);
  return name;
}

std::string why(const Group& group, const col::Options& options = {}) {
  return group.explain(Collective::allreduce, 4000, col::DType::int32, options);
}

// How a world of one begins: a context reads its settings when it is made.
col::test::Outcome start() {
  return col::test::run_threads(1, [](int, col::Context&) {}).front();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

// ---- Plans in files

// An allreduce of two ranks: both send all they have, and add it in the order of ranks. `left_of_1` is what rank 1
// takes for rank 0's contribution.
std::string swap_plan(const std::string& left_of_1) {
  return fmt::format(R"({{
  "version": 1, "name": "swap", "collective": "allreduce", "ranks": 2, "unit": "chunks", "chunks": 1,
  "plans": [
    [[{{"send": ["input", 0, 1], "to": 1}}, {{"recv": ["scratch", 0, 1], "from": 1}},
      {{"reduce": [["input", 0, 1], ["scratch", 0, 1]], "into": ["wide", 0, 1]}},
      {{"convert": ["wide", 0, 1], "into": ["output", 0, 1]}}]],
    [[{{"send": ["input", 0, 1], "to": 0}}, {{"recv": ["scratch", 0, 1], "from": 0}},
      {{"reduce": [["{}", 0, 1], ["input", 0, 1]], "into": ["wide", 0, 1]}},
      {{"convert": ["wide", 0, 1], "into": ["output", 0, 1]}}]]
  ]
}})",
                     left_of_1);
}

// Of a plan in chunks, in place: the same for every count that leaves no chunk empty.
std::string verdict_on(const std::string& plan) {
  const col::PlanFile file = col::PlanFile::parse(plan);
  const col::PlanProblem problem({.collective = Collective::allreduce, .size = 2, .count = 1, .in_place = true});
  return col::verify(problem, [&](int rank) { return file.build(problem.request(rank)); }).problem;
}

}  // namespace

TEST_CASE("settings: COL_ALGORITHM names the algorithm, and explain() says so", "[group]") {
  for (const std::string name : {"ring", "mst", "ring_pipelined:segment=64"}) {
    const Setting setting("COL_ALGORITHM", "broadcast:knomial:radix=3,allreduce:" + name);
    threads_on_each_backend(3, [&](Group& group, col::Context&) {
      expect(runs(group) == name, runs(group));
      expect(why(group) == name + ": asked for by COL_ALGORITHM", why(group));
      // The call's own word comes first.
      expect(runs(group, {.algorithm = "bde"}) == "bde");
      expect(why(group, {.algorithm = "bde"}) == "bde: asked for by the call");
      expect(contains(group.explain(Collective::broadcast, 100), "knomial:radix=3: "));
    });
  }
}

TEST_CASE("settings: COL_ALGORITHM that cannot serve a call is refused by its name, and the group goes on", "[group]") {
  struct Case {
    std::string value, why;
  };
  for (const Case& c : {Case{"allgather:neighbor", "needs an even number"}, Case{"allgather:rnig", "no such algorithm"},
                        Case{"allgather:ring:radix=3", "has no parameter 'radix'"},
                        Case{"allgather:file:/nowhere/plan.json", "/nowhere/plan.json"}}) {
    const Setting setting("COL_ALGORITHM", c.value);
    threads_on_each_backend(3, [&](Group& group, col::Context&) {
      std::vector<int> in{group.rank()}, out(3);
      const col::Error error = error_of([&] { group.allgather(in, out); });
      expect(error.code() == ErrorCode::invalid_argument, error.what());
      expect(contains(error.message(), "COL_ALGORITHM") && contains(error.message(), c.why), error.what());
      runs(group);
      group.allgather(in, out, {.algorithm = "ring"});
      expect(out == std::vector{0, 1, 2});
    });
  }
}

TEST_CASE("settings: words that mean nothing are refused when the context is made, by their variable", "[group]") {
  struct Case {
    std::string variable, value, says;
  };
  for (const Case& c :
       {Case{"COL_ALGORITHM", "ring", "allreduce"}, Case{"COL_ALGORITHM", "allredcue:ring", "allreduce"},
        Case{"COL_ALGORITHM", "allreduce:ring,allreduce:mst", "allreduce"},
        Case{"COL_ALGORITHM", "allreduce:", "allreduce"}, Case{"COL_ALGORITHM", "allreduce:knomial:radix=1", "radix"},
        Case{"COL_NUMERICS", "exact", "fast, strict, deterministic"}, Case{"COL_CHECK", "always", "lazy, strict"},
        Case{"COL_PROGRESS", "sometimes", "calls, thread"}, Case{"COL_FAULT", "explode", "kill"}}) {
    const Setting setting(c.variable, c.value);
    const auto outcome = start();
    INFO(c.variable << "=" << c.value << ": " << outcome.text);
    CHECK(outcome.code == ErrorCode::invalid_argument);
    CHECK(contains(outcome.text, c.variable));
    CHECK(contains(outcome.text, c.says));
  }
  for (const char* fine : {"fast", "strict", "deterministic"}) {
    const Setting setting("COL_NUMERICS", fine);
    CHECK(start().good);
  }
}

TEST_CASE("settings: COL_ALGORITHM takes a plan from a file", "[group]") {
  const col::test::TempDir directory;
  const std::string path = directory / "swap.json";
  write(path, swap_plan("scratch"));
  REQUIRE(verdict_on(swap_plan("scratch")).empty());
  const Setting setting("COL_ALGORITHM", "allreduce:file:" + path);
  threads_on_each_backend(2, [&](Group& group, col::Context&) {
    const std::string name = runs(group);
    expect(contains(name, "file:" + path + "#"), name);
    expect(contains(why(group), "asked for by COL_ALGORITHM"), why(group));
    std::vector<col::bfloat16> in(70000, col::bfloat16(static_cast<float>(group.rank() + 1))), out(in.size());
    group.allreduce(in, out, {.op = col::ReduceOp::avg});
    expect(static_cast<float>(out.back()) == 1.5f);
    group.iallreduce(in, out, {.op = col::ReduceOp::max}).wait();
    expect(static_cast<float>(out.front()) == 2.0f);
    std::vector<int> nothing;
    group.allreduce(nothing);
    // Opaque elements are the plan's elements.
    const auto add = [](const void* left, const void* right, void* result, std::size_t count, col::DType dtype) {
      for (std::size_t i = 0; i < count * size_of(dtype); ++i)
        static_cast<unsigned char*>(result)[i] = static_cast<unsigned char>(
            static_cast<const unsigned char*>(left)[i] + static_cast<const unsigned char*>(right)[i]);
    };
    std::vector<unsigned char> triples(3 * 5000, 2), sums(triples.size());
    group.allreduce({triples.data(), 5000, col::opaque(3)}, {sums.data(), 5000, col::opaque(3)},
                    {.op = col::Op::user(add, true, "bytes")});
    expect(sums == std::vector<unsigned char>(sums.size(), 4));
  });
  // For two ranks only.
  threads_on_each_backend(3, [&](Group& group, col::Context&) {
    std::vector<int> data{1};
    const col::Error error = error_of([&] { group.allreduce(data); });
    expect(error.code() == ErrorCode::invalid_argument, error.what());
    expect(contains(error.message(), "the plan is for 2 ranks, the group has 3"), error.what());
  });
}

TEST_CASE("settings: a wrong plan from a file is refused in the verifier's words", "[group]") {
  const col::test::TempDir directory;
  const std::string path = directory / "wrong.json";
  write(path, swap_plan("input"));  // rank 1 adds its own contribution to itself
  const std::string problem = verdict_on(swap_plan("input"));
  REQUIRE(!problem.empty());
  const Setting setting("COL_ALGORITHM", "allreduce:file:" + path);
  threads_on_each_backend(2, [&](Group& group, col::Context&) {
    std::vector<int> data(10, 1);
    const col::Error error = error_of([&] { group.allreduce(data); });
    expect(error.code() == ErrorCode::invalid_argument, error.what());
    expect(contains(error.message(), "the plan is wrong") && contains(error.message(), problem), error.what());
    expect(data == std::vector<int>(10, 1));
    group.barrier();
  });
}

TEST_CASE("settings: ranks that read different plans under one name are a mismatch", "[group]") {
  const col::test::TempDir one, other;
  write(one / "plan.json", swap_plan("scratch"));
  std::string renamed = swap_plan("scratch");
  renamed.replace(renamed.find("swap"), 4, "twist");
  write(other / "plan.json", renamed);
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
      Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend});
      std::vector<int> data{1};
      group.allreduce(data, {.algorithm = "file:" + ((rank == 0 ? one : other) / "plan.json")});
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    for (const auto& outcome : outcomes) CHECK(outcome.code == ErrorCode::mismatch);
  }
}

TEST_CASE("settings: COL_SELECTION is a table that is asked before the built-in one", "[group]") {
  const col::test::TempDir directory;
  const std::string path = directory / "table.json";
  write(path, R"({"version": 1, "rules": [
    {"collective": "allreduce", "ranks": [5, null], "algorithm": "direct"},
    {"collective": "allreduce", "bytes": [0, "8K"], "algorithm": "no_such_thing"},
    {"collective": "allreduce", "bytes": [0, "8K"], "algorithm": "ps_central"}]})");
  const Setting setting("COL_SELECTION", path);
  threads_on_each_backend(3, [&](Group& group, col::Context&) {
    expect(runs(group) == "ps_central", runs(group));
    const std::string reason = why(group);
    expect(contains(reason, "ps_central: rule 3 of " + path) && contains(reason, "no_such_thing"), reason);
    // Beyond its sizes, and for other collectives: as ever.
    const std::string large = group.explain(Collective::allreduce, 1 << 20, col::DType::int32);
    expect(contains(large, "of built in"), large);
    expect(contains(group.explain(Collective::allgather, 100), "of built in"));
    expect(runs(group, {.algorithm = "mst"}) == "mst");
  });
}

TEST_CASE("settings: a COL_SELECTION that is wrong or not there is an error of the context", "[group]") {
  const col::test::TempDir directory;
  const std::string path = directory / "table.json";
  write(path, R"({"version": 1, "rules": [{"collective": "allredcue", "algorithm": "ring"}]})");
  {
    const Setting setting("COL_SELECTION", path);
    const auto outcome = start();
    CHECK(outcome.code == ErrorCode::invalid_argument);
    INFO(outcome.text);
    CHECK(contains(outcome.text, path));
    CHECK(contains(outcome.text, "/rules/0/collective"));
    CHECK(contains(outcome.text, "did you mean 'allreduce'?"));
  }
  const Setting setting("COL_SELECTION", directory / "missing.json");
  CHECK(start().code == ErrorCode::io);
}

TEST_CASE("settings: explain() names the rule of the built-in table, and what runs is what it says", "[group]") {
  threads_on_each_backend(3, [](Group& group, col::Context&) {
    const std::string reason = why(group);
    const std::string name = runs(group);
    expect(contains(reason, name + ": rule ") && contains(reason, " of built in: allreduce"), reason);
    for (int c = 0; c < col::kCollectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      const std::string text = group.explain(collective, 3000);
      expect(!text.empty());
      if (collective != Collective::send && collective != Collective::recv)
        expect(contains(text, " of built in: " + std::string(to_string(collective))), text);
    }
  });
  threads_on_each_backend(1, [](Group& group, col::Context&) {
    expect(contains(group.explain(Collective::allreduce, 100), "world of one"));
  });
}

TEST_CASE("settings: COL_BACKEND is the backend of groups for which the program names none", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const Setting setting("COL_BACKEND", backend);
    const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
      Group world = context.init_group({.rank = rank, .world_size = 2});
      expect(world.backend() == backend, std::string(world.backend()));
      expect(world.dup().backend() == backend);
      for (const std::string& named : col::test::usable_backends()) {
        Group other = context.init_group({.name = named, .rank = rank, .world_size = 2, .backend_name = named});
        expect(other.backend() == named, "what the program names wins");
      }
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
  const Setting setting("COL_BACKEND", "glo");
  const auto outcome = start();
  INFO(outcome.text);
  CHECK(outcome.code == ErrorCode::invalid_argument);
  CHECK(contains(outcome.text, "COL_BACKEND=glo is no backend"));
}

TEST_CASE("settings: col::init() takes the backend that it is told", "[group]") {
  for (const col::Backend backend : {col::Backend::shm, col::Backend::gloo}) {
    const std::string name(to_string(backend));
    const auto usable = col::test::usable_backends();
    if (std::find(usable.begin(), usable.end(), name) == usable.end()) continue;
    const auto outcomes = col::test::run_threads(2, [&](int, col::Context& context) {
      const col::Context::Scope scope(context);
      Group world = col::init({.backend = backend, .timeout = std::chrono::seconds(9)});
      expect(world.backend() == name && world.timeout() == std::chrono::seconds(9), std::string(world.backend()));
    });
    INFO(name << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}
