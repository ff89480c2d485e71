// colbench bisect: how much all ranks can move at once from one half to the other, and which rank slows it down.
#include <chrono>

#include <fmt/format.h>

#include "colbench/command.hpp"
#include "colbench/commands/print.hpp"
#include "colbench/output.hpp"
#include "colbench/p2p/bisect_report.hpp"
#include "colbench/p2p/cuts.hpp"
#include "colbench/p2p/message_request.hpp"
#include "colbench/report/head.hpp"
#include "colbench/suite/notes.hpp"
#include "common/exit_codes.hpp"

namespace col::colbench {
namespace {

constexpr const char* kUsage = "Usage: colbench bisect [-n N] [--size 1M] [options]";
constexpr const char* kFooter =
    "Half of the ranks exchange messages with the other half, both ways, all pairs at once, and prints what crosses "
    "the\n"
    "cut, beside what the same pairs reach one by one. Then the same across other cuts: every 1, 2, 4 … ranks against\n"
    "the next. A rank or pair that is slow alone too is named: it explains the cuts that it is part of.\n"
    "\n"
    "Examples:\n"
    "  colbench bisect -n 8\n"
    "  colbench bisect -n 8 --size 64K,4M --backend gloo --json bisect.json";

constexpr auto kMaxTime = std::chrono::milliseconds(300);

std::vector<CellSpec> cells_of_cuts(int ranks, const std::vector<std::size_t>& sizes, const std::string& backend) {
  std::vector<CellSpec> cells;
  for (const std::size_t bytes : sizes) {
    const CellSpec spec{.operation = Operation::bidirectional,
                        .backend = backend,
                        .dtype = DType::uint8,
                        .bytes = bytes,
                        .ranks = ranks};
    for (const Cut& cut : cuts_of(ranks)) {
      cells.push_back(spec);
      cells.back().groups = cut.groups;
    }
    for (const RankPair& pair : search_pairs(ranks)) {
      cells.push_back(spec);
      cells.back().pair = pair;
    }
  }
  return cells;
}

}  // namespace

int run_bisect(const Invocation& invocation) {
  const auto request = parse_message_request({.name = "bisect",
                                              .usage = kUsage,
                                              .footer = kFooter,
                                              .sizes = "1M",
                                              .shows = "--json has all samples, --html the rows",
                                              .needed = "a bisection needs two ranks",
                                              .max_time = kMaxTime},
                                             invocation.arguments);
  if (!request) return tools::exit_code::kSuccess;
  const int ranks = request->method.ranks;
  const Results results = invocation.measure(request->method, cells_of_cuts(ranks, request->sizes, request->backend));
  const tools::Style style = style_of(invocation.screen);
  std::string text = "# " + run_text(results) + "\n\n";
  for (const std::size_t bytes : request->sizes) text += bisect_text(results.cells, ranks, bytes, style) + "\n";
  return finish(results, request->output, text + notes_text(results, style));
}

}  // namespace col::colbench
