// The drawings: nothing is left out, nothing is invented, and it fits.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "algorithms_md.hpp"
#include "cases.hpp"
#include "everyday.hpp"
#include "support/catch.hpp"

namespace col {
namespace {

using Pairs = std::map<std::pair<int, int>, int>;  // messages by sender and receiver

Pairs sent(const PlanProblem& problem, const PlanOfRank& plans) {
  Pairs pairs;
  Round round;
  for (int r = 0; r < problem.size(); ++r) {
    const Plan plan = plans(r);
    for (std::size_t i = 0; i < plan.rounds; ++i) {
      plan.round(i, round);
      for (const Step& step : round.steps()) {
        if (step.kind == Step::Kind::send) ++pairs[{r, step.peer}];
      }
    }
  }
  return pairs;
}

Pairs in_svg(const std::string& svg) {
  Pairs pairs;
  for (std::size_t at = svg.find("<title>"); at != std::string::npos; at = svg.find("<title>", at + 1)) {
    int round = 0, from = 0, to = 0;
    REQUIRE(std::sscanf(svg.c_str() + at, "<title>round %d: rank %d → rank %d", &round, &from, &to) == 3);
    ++pairs[{from, to}];
  }
  return pairs;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

// Code points.
std::size_t width(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// By the columns of a table, or the numbers before the arrows of a list.
Pairs in_text(const std::string& text) {
  Pairs pairs;
  std::vector<std::size_t> columns;  // where each rank's begins; none in a list
  for (const std::string& line : lines_of(text)) {
    if (line.rfind("round  rank", 0) == 0) {
      for (std::size_t at = line.find("rank"); at != std::string::npos; at = line.find("rank", at + 1))
        columns.push_back(at);
    }
    for (std::size_t i = line.find("→"); i != std::string::npos; i = line.find("→", i + 1)) {
      const auto there = std::find(columns.begin(), columns.end(), width(line.substr(0, i)));
      if (!columns.empty()) REQUIRE(there != columns.end());
      const int from = columns.empty() ? std::stoi(line) : static_cast<int>(there - columns.begin());
      ++pairs[{from, std::stoi(line.substr(i + 3))}];
    }
  }
  return pairs;
}

ErrorCode code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    CHECK_FALSE(std::string(error.what()).empty());
    return error.code();
  }
  FAIL("nothing was thrown");
  return {};
}

std::string drawn(Collective collective, std::string_view name, int size, std::size_t count) {
  const Algorithm& algorithm = test::algorithm(collective, name);
  const PlanProblem problem({.collective = collective, .size = size, .count = count});
  return draw_text(problem, plans_of(algorithm, problem), "title");
}

TEST_CASE("draw: every message is there once, in text and in SVG", "[plan][draw]") {
  for (const Algorithm& algorithm : algorithms()) {
    for (const int size : {1, 2, 3, 4, 5, 8, 9, 17}) {
      const auto problem = test::everyday_problem(algorithm, size, 2);
      if (!problem) continue;
      INFO(test::describe(algorithm, problem->spec()));
      const PlanOfRank plans = plans_of(algorithm, *problem);
      const Pairs expected = sent(*problem, plans);
      CHECK((in_text(draw_text(*problem, plans, "title")) == expected));
      CHECK((in_svg(draw_svg(*problem, plans, "title")) == expected));
    }
  }
}

TEST_CASE("draw: eight ranks fit into a hundred columns", "[plan][draw]") {
  for (const Algorithm& algorithm : algorithms()) {
    const auto problem = test::everyday_problem(algorithm, 8, 1);
    if (!problem || row_of(algorithm.collective).has_counts()) continue;
    INFO(test::describe(algorithm, problem->spec()));
    for (const std::string& line : lines_of(draw_text(*problem, plans_of(algorithm, *problem), "title"))) {
      INFO(line);
      // The sentence that explains the labels may be longer.
      if (line.find("element 3") == std::string::npos) CHECK(width(line) <= 100);
      CHECK((line.empty() || line.back() != ' '));
    }
  }
}

TEST_CASE("draw: a ring on four ranks, in text", "[plan][draw]") {
  CHECK(drawn(Collective::allreduce, "ring", 4, 4) ==
        "title: 4 ranks, 6 rounds, 24 messages\n"
        "x0[3]: element 3 of rank 0's input; x0-2[3]: of ranks 0 to 2, combined; x3-0: of ranks 3 and 0; y[3]: of the "
        "result\n"
        "\n"
        "round  rank 0      rank 1      rank 2      rank 3\n"
        "    0  →1 x0[0]    →2 x1[1]    →3 x2[2]    →0 x3[3]\n"
        "    1  →1 x3-0[3]  →2 x0-1[0]  →3 x1-2[1]  →0 x2-3[2]\n"
        "    2  →1 x2-0[2]  →2 x3-1[3]  →3 x0-2[0]  →0 x1-3[1]\n"
        "    3  →1 y[1]     →2 y[2]     →3 y[3]     →0 y[0]\n"
        "    4  →1 y[0]     →2 y[1]     →3 y[2]     →0 y[3]\n"
        "    5  →1 y[3]     →2 y[0]     →3 y[1]     →0 y[2]\n");
}

TEST_CASE("draw: a tree on four ranks, in text", "[plan][draw]") {
  CHECK(drawn(Collective::broadcast, "mst", 4, 8) ==
        "title: 4 ranks, 2 rounds, 3 messages\n"
        "\n"
        "round  rank 0    rank 1    rank 2    rank 3\n"
        "    0  →3 [0-7]\n"
        "    1  →1 [0-7]                      →2 [0-7]\n");
}

TEST_CASE("draw: one rank by itself sends nothing", "[plan][draw]") {
  CHECK(drawn(Collective::broadcast, "mst", 1, 8) == "title: 1 rank, 0 rounds, 0 messages\n");
}

TEST_CASE("draw: a message is in the round of whichever end comes later", "[plan][draw]") {
  // All ranks but the root have one round; the root takes them one after the other.
  CHECK(drawn(Collective::reduce, "linear", 4, 1) ==
        "title: 4 ranks, 3 rounds, 3 messages\n"
        "x0[3]: element 3 of rank 0's input\n"
        "\n"
        "round  rank 0    rank 1    rank 2    rank 3\n"
        "    0            →0 x1[0]\n"
        "    1                      →0 x2[0]\n"
        "    2                                →0 x3[0]\n");
}

TEST_CASE("draw: in place, elements keep the names of the ranks they come from", "[plan][draw]") {
  for (const auto& [collective, name] :
       {std::pair{Collective::allgather, "ring"}, {Collective::alltoall, "pairwise"}, {Collective::allreduce, "bde"}}) {
    const Algorithm& algorithm = test::algorithm(collective, name);
    PlanProblem::Spec spec{.collective = collective, .size = 4, .count = 1};
    const PlanProblem apart(spec);
    spec.in_place = true;
    const PlanProblem in_place(spec);
    CHECK(draw_text(apart, plans_of(algorithm, apart), "") == draw_text(in_place, plans_of(algorithm, in_place), ""));
  }
}

TEST_CASE("draw: arrows have the colour of what they carry, and the legend names it", "[plan][draw]") {
  const auto legend = [](Collective collective, std::string_view name) {
    const Algorithm& algorithm = test::algorithm(collective, name);
    const PlanProblem problem(
        {.collective = collective, .size = 4, .count = collective == Collective::barrier ? 0U : 4U});
    const std::string svg = draw_svg(problem, plans_of(algorithm, problem), "title");
    std::string kinds;
    for (const std::string kind : {"bare input", "partial result", "finished result", "signal", "combines"}) {
      if (svg.find(kind + "</text>") != std::string::npos) kinds += kind + ";";
    }
    return kinds;
  };
  CHECK(legend(Collective::allreduce, "ring") == "bare input;partial result;finished result;combines;");
  CHECK(legend(Collective::allreduce, "one_shot") == "bare input;combines;");
  CHECK(legend(Collective::broadcast, "mst") == "bare input;");
  CHECK(legend(Collective::barrier, "tree") == "signal;");
}

TEST_CASE("draw: a title may contain anything", "[plan][draw]") {
  const Algorithm& mst = test::algorithm(Collective::broadcast, "mst");
  const PlanProblem problem({.collective = Collective::broadcast, .size = 2, .count = 1});
  const std::string svg = draw_svg(problem, plans_of(mst, problem), "a<b & \"c\">");
  CHECK(svg.find("a&lt;b &amp; &quot;c&quot;&gt;") != std::string::npos);
  CHECK(svg.find("a<b") == std::string::npos);
}

TEST_CASE("draw: what is too large to look at is refused", "[plan][draw]") {
  const auto plans = [](std::size_t rounds) {
    return [rounds](int) { return Plan{.rounds = rounds, .generate = [](std::size_t, Round&) {}}; };
  };
  const PlanProblem fits({.collective = Collective::barrier, .size = 64});
  const PlanProblem too_many({.collective = Collective::barrier, .size = 65});
  CHECK_NOTHROW(draw_text(fits, plans(256), ""));
  CHECK_NOTHROW(draw_svg(fits, plans(256), ""));
  CHECK(code_of([&] { draw_text(too_many, plans(1), ""); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { draw_svg(too_many, plans(1), ""); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { draw_text(fits, plans(257), ""); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { draw_svg(fits, plans(257), ""); }) == ErrorCode::invalid_argument);
}

TEST_CASE("draw: plans that do not pair are refused", "[plan][draw]") {
  const PlanProblem problem({.collective = Collective::broadcast, .size = 2, .count = 8});
  const auto plans = [](std::size_t sent, std::size_t awaited, int peer) {
    return [=](int rank) {
      return Plan{.rounds = 1, .generate = [=](std::size_t, Round& round) {
                    if (rank == 0) round.send(peer, {Buffer::output, 0, sent});
                    if (rank == 1) round.recv(0, {Buffer::output, 0, awaited});
                  }};
    };
  };
  CHECK_NOTHROW(draw_text(problem, plans(4, 4, 1), ""));
  CHECK(code_of([&] { draw_text(problem, plans(4, 5, 1), ""); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { draw_text(problem, plans(0, 5, 1), ""); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { draw_text(problem, plans(4, 4, 7), ""); }) == ErrorCode::invalid_argument);
}

TEST_CASE("draw: docs/algorithms.md and its pictures are what the code says", "[plan][docs]") {
  INFO("regenerate them: print_algorithms_md docs");
  for (const test::DocFile& file : test::algorithms_docs()) {
    INFO(file.path);
    std::ifstream in(COL_SOURCE_DIR "/docs/" + file.path, std::ios::binary);
    CHECK((std::string(std::istreambuf_iterator<char>(in), {}) == file.text));
  }
}

}  // namespace
}  // namespace col
