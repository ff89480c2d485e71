// colbench algorithms: every plan for a collective side by side, measured and as the model has it.
#include <map>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/plans/choice.hpp"
#include "colbench/plans/comparison.hpp"
#include "common/exit_codes.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr const char* kAlgorithmsUsage = "Usage: colbench algorithms COLL[,COLL] [--size 32M] [-n RANKS] [options]";
constexpr const char* kAlgorithmsFooter =
    "Columns: # is the rank by the measured median; busbw in GB/s; the model's time (the plan simulated under what was "
    "fitted to\n"
    "this machine), its rank, and how many times longer the measurement takes; rounds of the longest rank, messages "
    "of\n"
    "all ranks, elements that the busiest rank sends; the order in which contributions are combined. * marks what the\n"
    "library would choose.\n"
    "\n"
    "Example:\n"
    "  colbench algorithms allreduce -n 8 --size 32M --backend shm";
constexpr std::size_t kDefaultSize = std::size_t{32} << 20;

// By backend.
using Choosers = std::map<std::string, Chooser>;

std::optional<Chooser::Result> choice_for(const Cell& cell, Choosers& choosers) {
  CellSpec spec = cell.spec;
  spec.ranks = group_size_of(spec);
  if (spec.ranks < 2 || spec.device != Devices::cpu) return std::nullopt;
  const std::string backend = cell.backend.empty() ? backend_of(spec.backend) : cell.backend;
  try {
    return choosers.try_emplace(backend, backend, ChoiceSettings::from_environment()).first->second.choose(spec);
  } catch (const UsageError&) {  // no backend of that name here, or what the environment names cannot be used
    return std::nullopt;
  }
}

tools::Part rankings(const Results& results, bool utf8) {
  Choosers choosers;
  const ChoiceOf choice = [&](const Cell& cell) { return choice_for(cell, choosers); };
  tools::Part part;
  for (const auto& cells : compared_cells(results.cells)) part.tables.push_back(algorithm_ranking(cells, choice, utf8));
  return part;
}

}  // namespace

int run_algorithms(const Invocation& invocation) {
  CommandLine line("colbench algorithms", kAlgorithmsUsage, kAlgorithmsFooter);
  line.add_cells();
  line.add_method();
  line.add_outputs();
  if (!line.parse(invocation.arguments, 1)) return tools::exit_code::kSuccess;
  if (line.words().empty()) throw UsageError("which collective? write: colbench algorithms allreduce --size 32M");
  Request& request = line.request();
  request.operations = parse_operations(line.words().front());
  for (const Operation operation : request.operations) {
    if (!collective_of(operation)) throw UsageError("{} has one algorithm only", to_string(operation));
  }
  if (request.sizes.empty()) request.sizes = {kDefaultSize};
  if (!line.given("--algo")) request.algorithms = {"all"};
  request.method.fits = request.backends;
  check_outputs(request.output);

  const std::vector<CellSpec> cells = with_tuned_variants(cells_of(request));
  const Results results = invocation.measure(request.method, cells);
  const tools::Style style = invocation.screen.style();
  tools::Part page = rankings(results, true), text = style.utf8 ? page : rankings(results, false);
  page.title = "Ranking";
  for (const std::string& warning : results.warnings) text.notes.push_back({warning});
  if (!results.ended_early.empty()) text.notes.push_back({"ended early: " + results.ended_early});
  return finish(results, request.output, report_text(text, style), page);
}

}  // namespace col::colbench
