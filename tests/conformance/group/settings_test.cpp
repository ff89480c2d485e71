// What the environment decides about calls: COL_BACKEND, COL_ALGORITHM, COL_SELECTION, and words that mean nothing.
// COL_NUMERICS is in numerics_test.cpp, COL_CHECK in mismatches_test.cpp, COL_PROGRESS in progress_test.cpp.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/worlds.hpp"
#include "support/collectives.hpp"
#include "support/temp_dir.hpp"

namespace col::test {
namespace {

// The algorithm that an allreduce of 1000 elements runs, by its trace; its result is checked.
std::string runs(Group& group, const Options& options = {}) {
  std::vector<int> data(1000, group.rank() + 1);
  group.record_trace(true);
  group.allreduce(data, options);
  const std::vector<TraceEntry> trace = group.trace();
  const std::string name = trace.empty() ? "" : std::string(trace.front().algorithm);
  group.record_trace(false);
  expect(data.front() == group.size() * (group.size() + 1) / 2 && data.back() == data.front(), name);
  return name;
}

std::string why(const Group& group, const Options& options = {}) {
  return group.explain(Collective::allreduce, 4000, DType::int32, options);
}

// How a world of one begins: a context reads its settings when it is made.
Outcome start() {
  return run_threads(1, [](int, Context&) {}).front();
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
  const PlanFile file = PlanFile::parse(plan);
  const PlanProblem problem({.collective = Collective::allreduce, .size = 2, .count = 1, .in_place = true});
  return col::verify(problem, [&](int rank) { return file.build(problem.request(rank)); }).problem;
}

TEST_CASE("settings: COL_ALGORITHM names the algorithm, and explain() says so", "[group]") {
  for (const std::string name : {"ring", "mst", "ring_pipelined:segment=64"}) {
    const Setting setting("COL_ALGORITHM", "broadcast:knomial:radix=3,allreduce:" + name);
    threads_on_each_backend(3, [&](Group& group) {
      expect(runs(group) == name, runs(group));
      expect(why(group) == name + ": asked for by COL_ALGORITHM", why(group));
      // The call's own word comes first.
      expect(runs(group, {.algorithm = "bde"}) == "bde");
      expect(why(group, {.algorithm = "bde"}) == "bde: asked for by the call");
      expect(has(group.explain(Collective::broadcast, 100), "knomial:radix=3: "));
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
    threads_on_each_backend(3, [&](Group& group) {
      std::vector<int> in{group.rank()}, out(3);
      const Error error = expect_error(ErrorCode::invalid_argument, c.why, [&] { group.allgather(in, out); });
      expect(has(error.message(), "COL_ALGORITHM"), error.what());
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
        Case{"COL_NUMERICS", "exact", "fast, strict, deterministic"}, Case{"COL_ORDER", "exact", "any, rank, tree"},
        Case{"COL_CHECK", "always", "lazy, strict"}, Case{"COL_PROGRESS", "sometimes", "calls, thread"},
        Case{"COL_FAULT", "explode", "kill"}}) {
    const Setting setting(c.variable, c.value);
    const auto outcome = start();
    INFO(c.variable << "=" << c.value << ": " << outcome.text);
    CHECK(outcome.code == ErrorCode::invalid_argument);
    CHECK(has(outcome.text, c.variable));
    CHECK(has(outcome.text, c.says));
  }
  for (const char* fine : {"fast", "strict", "deterministic"}) {
    const Setting setting("COL_NUMERICS", fine);
    CHECK(start().good);
  }
}

TEST_CASE("settings: COL_ALGORITHM takes a plan from a file", "[group]") {
  const TempDir directory;
  const std::string path = directory / "swap.json";
  write(path, swap_plan("scratch"));
  REQUIRE(verdict_on(swap_plan("scratch")).empty());
  const Setting setting("COL_ALGORITHM", "allreduce:file:" + path);
  threads_on_each_backend(2, [&](Group& group) {
    const std::string name = runs(group);
    expect(has(name, "file:" + path + "#"), name);
    expect(has(why(group), "asked for by COL_ALGORITHM"), why(group));
    std::vector<col::bfloat16> in(70000, col::bfloat16(static_cast<float>(group.rank() + 1))), out(in.size());
    group.allreduce(in, out, {.op = ReduceOp::avg});
    expect(static_cast<float>(out.back()) == 1.5f);
    group.iallreduce(in, out, {.op = ReduceOp::max}).wait();
    expect(static_cast<float>(out.front()) == 2.0f);
    std::vector<int> nothing;
    group.allreduce(nothing);
    // Opaque elements are the plan's elements.
    const auto add = [](const void* left, const void* right, void* result, std::size_t count, DType dtype) {
      add_as<unsigned char>(left, right, result, count * size_of(dtype), dtype);
    };
    std::vector<unsigned char> triples(3 * 5000, 2), sums(triples.size());
    group.allreduce({triples.data(), 5000, col::opaque(3)}, {sums.data(), 5000, col::opaque(3)},
                    {.op = Op::user(add, true, "bytes")});
    expect(sums == std::vector<unsigned char>(sums.size(), 4));
  });
  // For two ranks only.
  threads_on_each_backend(3, [&](Group& group) {
    std::vector<int> data{1};
    expect_error(ErrorCode::invalid_argument, "the plan is for 2 ranks, the group has 3",
                 [&] { group.allreduce(data); });
  });
}

TEST_CASE("settings: a wrong plan from a file is refused in the verifier's words", "[group]") {
  const TempDir directory;
  const std::string path = directory / "wrong.json";
  write(path, swap_plan("input"));  // rank 1 adds its own contribution to itself
  const std::string problem = verdict_on(swap_plan("input"));
  REQUIRE(!problem.empty());
  const Setting setting("COL_ALGORITHM", "allreduce:file:" + path);
  threads_on_each_backend(2, [&](Group& group) {
    std::vector<int> data(10, 1);
    const Error error = expect_error(ErrorCode::invalid_argument, problem, [&] { group.allreduce(data); });
    expect(has(error.message(), "the plan is wrong"), error.what());
    expect(data == std::vector<int>(10, 1));
    group.barrier();
  });
}

TEST_CASE("settings: ranks that read different plans under one name are a mismatch", "[group]") {
  const TempDir one, other;
  write(one / "plan.json", swap_plan("scratch"));
  std::string renamed = swap_plan("scratch");
  renamed.replace(renamed.find("swap"), 4, "twist");
  write(other / "plan.json", renamed);
  threads_on_each_backend(2, all_end({.code = ErrorCode::mismatch}), [&](Group& group) {
    std::vector<int> data{1};
    group.allreduce(data, {.algorithm = "file:" + ((group.rank() == 0 ? one : other) / "plan.json")});
  });
}

TEST_CASE("settings: COL_SELECTION is a table that is asked before the built-in one", "[group]") {
  const TempDir directory;
  const std::string path = directory / "table.json";
  write(path, R"({"version": 1, "rules": [
    {"collective": "allreduce", "ranks": [5, null], "algorithm": "direct"},
    {"collective": "allreduce", "bytes": [0, "8K"], "algorithm": "no_such_thing"},
    {"collective": "allreduce", "bytes": [0, "8K"], "algorithm": "ps_central"}]})");
  const Setting setting("COL_SELECTION", path);
  threads_on_each_backend(3, [&](Group& group) {
    expect(runs(group) == "ps_central", runs(group));
    const std::string reason = why(group);
    expect(has(reason, "ps_central: rule 3 of " + path) && has(reason, "no_such_thing"), reason);
    // Beyond its sizes, and for other collectives: as ever.
    const std::string large = group.explain(Collective::allreduce, 1 << 20, DType::int32);
    expect(has(large, "of built in"), large);
    expect(has(group.explain(Collective::allgather, 100), "of built in"));
    expect(runs(group, {.algorithm = "mst"}) == "mst");
  });
}

TEST_CASE("settings: a COL_SELECTION that is wrong or not there is an error of the context", "[group]") {
  const TempDir directory;
  const std::string path = directory / "table.json";
  write(path, R"({"version": 1, "rules": [{"collective": "allredcue", "algorithm": "ring"}]})");
  {
    const Setting setting("COL_SELECTION", path);
    const auto outcome = start();
    CHECK(outcome.code == ErrorCode::invalid_argument);
    INFO(outcome.text);
    CHECK(has(outcome.text, path));
    CHECK(has(outcome.text, "/rules/0/collective"));
    CHECK(has(outcome.text, "did you mean 'allreduce'?"));
  }
  const Setting setting("COL_SELECTION", directory / "missing.json");
  CHECK(start().code == ErrorCode::io);
}

TEST_CASE("settings: explain() names the rule of the built-in table, and what runs is what it says", "[group]") {
  threads_on_each_backend(3, [](Group& group) {
    const std::string reason = why(group);
    const std::string name = runs(group);
    expect(has(reason, name + ": rule ") && has(reason, " of built in: allreduce"), reason);
    for (int c = 0; c < col::kCollectiveCount; ++c) {
      const auto collective = static_cast<Collective>(c);
      const std::string text = group.explain(collective, 3000);
      expect(!text.empty());
      if (collective != Collective::send && collective != Collective::recv)
        expect(has(text, " of built in: " + std::string(to_string(collective))), text);
    }
  });
  threads_on_each_backend(1,
                          [](Group& group) { expect(has(group.explain(Collective::allreduce, 100), "world of one")); });
}

TEST_CASE("settings: COL_BACKEND is the backend of groups for which the program names none", "[group]") {
  const std::vector<std::string> usable = usable_backends();
  for (const std::string& backend : usable) {
    const Setting setting("COL_BACKEND", backend);
    INFO(backend);
    check_good(run_threads(2, [&](int rank, Context& context) {
      Group world = context.init_group({.rank = rank, .world_size = 2});
      expect(world.backend() == backend, std::string(world.backend()));
      expect(world.dup().backend() == backend);
      for (const std::string& named : usable) {
        Group other = context.init_group({.name = named, .rank = rank, .world_size = 2, .backend_name = named});
        expect(other.backend() == named, "what the program names wins");
      }
    }));
  }
  const Setting setting("COL_BACKEND", "glo");
  check_ending(start(), {.code = ErrorCode::invalid_argument, .says = "COL_BACKEND=glo is no backend"});
}

TEST_CASE("settings: col::init() takes the backend that it is told", "[group]") {
  for (const Backend backend : {Backend::shm, Backend::gloo}) {
    const std::string name(to_string(backend));
    const auto usable = usable_backends();
    if (std::find(usable.begin(), usable.end(), name) == usable.end()) continue;
    INFO(name);
    check_good(run_threads(2, [&](int, Context& context) {
      const Context::Scope scope(context);
      Group world = col::init({.backend = backend, .timeout = std::chrono::seconds(9)});
      expect(world.backend() == name && world.timeout() == std::chrono::seconds(9), std::string(world.backend()));
    }));
  }
}

}  // namespace
}  // namespace col::test
