#include "algorithms_md.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "cases.hpp"
#include "everyday.hpp"

namespace col::test {
namespace {

constexpr std::string_view kIntroduction = R"(# Algorithms

<!-- Generated: print_algorithms_md docs -->

Every built-in collective algorithm is a plan: rounds of messages and local steps (`<col/plan.hpp>`). The file of each
one, in `src/lib/plan/<collective>/`, begins with its idea, a picture and its source.

**Cost** is the time under the model of one port out and one port in per rank, both at once, all ranks on one node:

| letter | meaning |
|---|---|
| α, β, γ | seconds per message, per byte sent, per byte added up |
| n | bytes of the vector, or of all blocks together |
| p | ranks |
| L, F | log2 p, rounded up and down |
| f, h | (p-1)/p, and the same of 2^F, which is p where p is a power of two |
| S, k | segments (of `segment` elements), radix |
| folded | what is added where p is no power of two |

The simulator agrees with the formulas to 1 %, except where they say "about". Copies cost nothing in them.

Ranks on several nodes have no formulas: what they take depends on who waits for whom, which the simulator says for any
layout.

**Order** is how contributions are combined: *any* needs a commutative operator, *contiguous* an associative one, and
*rank order* gives ((x0 op x1) op x2) op …, whatever the number of ranks.

**At 8 ranks**: rounds of the longest rank, messages of all, and what the busiest rank sends, in units of n. Algorithms of
two levels, which know which ranks share a node, are on two nodes of four ranks.

**Model and measurement**: allreduce of 8 MiB over Gloo on 8 ranks, each in a network namespace of its own whose link is
held to 200 Mbit/s both ways, so that links and not cores decide; alpha and beta fitted to messages of the same run
(2026-11-22, Linux 6.18, 2 cores; `tests/netns/run_in_netns.sh 8 200mbit colbench allreduce --size 8M --backend gloo
--algo bde,bde_half,mst,ring,rabenseifner --max-time 22s --min-iters 20 --ci 0.5%`; medians of 9 to 32 verified
operations, of three launches, which have no interval):

| algorithm | measured | model | model / measured |
|---|---|---|---|
| ring | 0.649 s | 0.620 s | 95 % |
| rabenseifner | 0.768 s | 0.620 s | 81 % |
| bde | 1.138 s | 1.070 s | 94 % |
| bde_half | 2.215 s | 2.115 s | 95 % |
| mst | 2.251 s | 2.111 s | 94 % |

The order is the same, as far as the model tells them apart: it has ring and rabenseifner, and bde_half and mst, within
0.2 % of each other. Why rabenseifner falls behind its model has not been looked into.
)";

struct Picture {
  Collective collective;
  std::string_view algorithm;
  int size;
  std::size_t block;
  bool two_nodes = false;
};

// The first half of the ranks on one node, the others on another.
void put_on_two_nodes(PlanProblem::Spec& spec) {
  for (int rank = 0; rank < spec.size; ++rank) spec.node_of_rank.push_back(rank < (spec.size + 1) / 2 ? 0 : 1);
}

bool needs_nodes(const Algorithm& algorithm) {
  return algorithm.name.starts_with("two_level");
}
constexpr std::array<Picture, 7> kPictures = {{{Collective::allreduce, "ring", 4, 1},
                                               {Collective::allreduce, "mst", 8, 1},
                                               {Collective::allreduce, "bde", 8, 1},
                                               {Collective::allreduce, "rabenseifner", 8, 1},
                                               {Collective::alltoall, "bruck", 8, 1},
                                               {Collective::allreduce, "two_level_rails", 8, 1, true},
                                               {Collective::barrier, "dissemination", 8, 0}}};

// Drawn in text, for 4 ranks.
constexpr std::array<Picture, 16> kDrawings = {{{Collective::allreduce, "ring", 4, 1},
                                                {Collective::allreduce, "mst", 4, 1},
                                                {Collective::allreduce, "bde", 4, 1},
                                                {Collective::allreduce, "rabenseifner", 4, 1},
                                                {Collective::allreduce, "direct", 4, 1},
                                                {Collective::allreduce, "double_tree", 4, 1},
                                                {Collective::broadcast, "mst", 4, 1},
                                                {Collective::broadcast, "scatter_allgather", 4, 1},
                                                {Collective::reduce, "mst", 4, 1},
                                                {Collective::allgather, "bruck", 4, 1},
                                                {Collective::reduce_scatter, "halving", 4, 1},
                                                {Collective::allreduce, "two_level_rails", 4, 1, true},
                                                {Collective::allreduce, "two_level_leaders", 4, 1, true},
                                                {Collective::alltoall, "bruck", 4, 1},
                                                {Collective::scan, "doubling", 4, 1},
                                                {Collective::barrier, "dissemination", 4, 0}}};

std::string file_of(const Picture& picture) {
  return fmt::format("algorithms/{}-{}.svg", to_string(picture.collective), picture.algorithm);
}

std::string title_of(const Picture& picture) {
  return fmt::format("{} {}{}", to_string(picture.collective), picture.algorithm, picture.two_nodes ? ", 2 nodes" : "");
}

// One element per rank, so that an element is a block.
PlanProblem problem_of(const Picture& picture) {
  PlanProblem::Spec spec = everyday_spec(picture.collective, picture.size, picture.block);
  const bool one_element = picture.algorithm == "mst" || picture.algorithm == "bde" ||
                           picture.algorithm == "doubling" || picture.algorithm == "two_level_leaders";
  if (one_element) spec.count = 1;
  if (picture.two_nodes) put_on_two_nodes(spec);
  return PlanProblem(spec);
}

// As it is where Markdown has tables.
std::string in_cell(std::string text) {
  for (std::size_t i = text.find('|'); i != std::string::npos; i = text.find('|', i + 2)) text.insert(i, 1, '\\');
  return text;
}

// The first thing that it refuses, in its own words.
std::string limits(const Algorithm& algorithm) {
  for (int size = 2; size <= 9; ++size) {
    for (const int root : {0, size - 1}) {
      PlanProblem::Spec spec = everyday_spec(algorithm.collective, size, 4);
      if (row_of(algorithm.collective).rooted) spec.root = root;
      if (needs_nodes(algorithm)) put_on_two_nodes(spec);
      const PlanProblem problem(spec);
      if (const auto why = algorithm.refuse(problem.request(root))) return fmt::format("{} ranks: \"{}\"", size, *why);
    }
  }
  return needs_nodes(algorithm) ? "any number of ranks on several nodes" : "any number of ranks";
}

std::string order_of(const Algorithm& algorithm) {
  if (!row_of(algorithm.collective).reduces()) return "";
  std::string order(to_string(algorithm.order));
  std::replace(order.begin(), order.end(), '_', ' ');
  return order;
}

std::string at_eight(const Algorithm& algorithm) {
  PlanProblem::Spec spec = everyday_spec(algorithm.collective, 8, 1024);
  if (needs_nodes(algorithm)) put_on_two_nodes(spec);
  const PlanProblem problem(std::move(spec));
  if (algorithm.refuse(problem.request(0))) return "";
  const Verdict verdict = verify(problem, plans_of(algorithm, problem));
  const double n = static_cast<double>(everyday_bytes(algorithm.collective, 8, 1024)) / 4;
  std::string text = fmt::format("{}, {}", verdict.rounds, verdict.messages);
  if (n > 0) text += fmt::format(", {:.3g} n", static_cast<double>(verdict.most_elements_sent) / n);
  return text;
}

std::string section(Collective collective) {
  std::string v_form(to_string(collective));
  v_form += 'v';
  std::string text = fmt::format(
      "\n## {}\n\n| algorithm | idea, and when it wins | cost | order | limits | at 8 ranks "
      "|\n|---|---|---|---|---|---|\n",
      to_string(collective));
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != collective) continue;
    std::string name = fmt::format("**{}**", algorithm.name);
    if (!algorithm.parameters.empty()) name += fmt::format(" ({})", algorithm.parameters);
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", name, in_cell(std::string(algorithm.summary)),
                        algorithm.cost.text, order_of(algorithm), in_cell(limits(algorithm)), at_eight(algorithm));
  }
  std::string serves;
  for (const Algorithm& algorithm : algorithms()) {
    if (to_string(algorithm.collective) != v_form) continue;
    PlanProblem::Spec spec = everyday_spec(algorithm.collective, 8, 1);
    if (needs_nodes(algorithm)) put_on_two_nodes(spec);
    const PlanProblem problem(std::move(spec));
    if (algorithm.refuse(problem.request(0))) continue;
    serves += fmt::format("{}{}", serves.empty() ? "" : ", ", algorithm.name);
  }
  if (!serves.empty()) text += fmt::format("\n{} (blocks of any length): {}.\n", v_form, serves);
  return text;
}

// The algorithm that the simulator finds fastest.
std::string_view fastest(Collective collective, int size, std::size_t bytes) {
  const Algorithm* best = nullptr;
  double least = 0;
  const std::size_t block = bytes / 4 / static_cast<std::size_t>(size);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective != collective) continue;
    const auto problem = everyday_problem(algorithm, size, block);
    if (!problem) continue;
    const double seconds = simulate(*problem, plans_of(algorithm, *problem), {}).seconds;
    // Of those that are as good, the first.
    if (best != nullptr && seconds > least * 0.999) continue;
    best = &algorithm;
    least = seconds;
  }
  return best == nullptr ? "" : best->name;
}

std::string winners() {
  const CostModel model;
  std::string text = fmt::format(
      "\n## Which is fastest\n\n"
      "As the simulator sees it: one node, α = {:g} s, β = {:g} s/byte, γ = {:g} s/byte, nothing shared, default\n"
      "parameters, n bytes in all. Where several are equal, the first of the tables above. Machines differ: measure.\n",
      model.intra.alpha, model.intra.beta, model.gamma);
  for (const Collective collective : {Collective::allreduce, Collective::broadcast, Collective::reduce,
                                      Collective::allgather, Collective::reduce_scatter, Collective::alltoall}) {
    text += fmt::format("\n| {}: n | 4 ranks | 16 ranks | 64 ranks |\n|---|---|---|---|\n", to_string(collective));
    for (const auto& [bytes, name] : {std::pair<std::size_t, std::string_view>{256, "256 B"},
                                      {16 << 10, "16 KiB"},
                                      {1 << 20, "1 MiB"},
                                      {64 << 20, "64 MiB"}}) {
      text += fmt::format("| {} |", name);
      for (const int size : {4, 16, 64}) text += fmt::format(" {} |", fastest(collective, size, bytes));
      text += "\n";
    }
  }
  return text;
}

std::string drawings() {
  std::string text = "\n## Pictures\n";
  for (const Picture& picture : kPictures)
    text += fmt::format("\n![{0}, {1} ranks]({2})\n", title_of(picture), picture.size, file_of(picture));
  text += "\n## Drawings for 4 ranks\n";
  for (const Picture& drawing : kDrawings) {
    const PlanProblem problem = problem_of(drawing);
    text += fmt::format(
        "\n```\n{}```\n",
        draw_text(problem, plans_of(algorithm(drawing.collective, drawing.algorithm), problem), title_of(drawing)));
  }
  return text;
}

}  // namespace

std::vector<DocFile> algorithms_docs() {
  std::string text(kIntroduction);
  for (const Collective collective :
       {Collective::allreduce, Collective::broadcast, Collective::reduce, Collective::allgather,
        Collective::reduce_scatter, Collective::gather, Collective::scatter, Collective::alltoall, Collective::scan,
        Collective::exscan, Collective::barrier})
    text += section(collective);
  text += winners();
  text += drawings();
  std::vector<DocFile> files = {{"algorithms.md", std::move(text)}};
  for (const Picture& picture : kPictures) {
    const PlanProblem problem = problem_of(picture);
    files.push_back(
        {file_of(picture), draw_svg(problem, plans_of(algorithm(picture.collective, picture.algorithm), problem),
                                    fmt::format("{}, {} ranks", title_of(picture), picture.size))});
  }
  return files;
}

}  // namespace col::test
