// colbench simulate: what algorithms would cost where nobody has that many ranks.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/plans/notation.hpp"
#include "colbench/plans/simulated_costs.hpp"
#include "colbench/report/values.hpp"
#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "common/option_values.hpp"
#include "common/report.hpp"
#include "common/status_line.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr const char* kSimulateUsage = "Usage: colbench simulate [COLL] --ranks N [--topology nodes:512x8] [options]";
constexpr const char* kSimulateFooter =
    R"(COLL is allreduce unless it is given. Messages take alpha + bytes / beta, one at a time in each direction of a rank.

Example:
  colbench simulate --topology nodes:512x8 --alpha 5us --beta 25GB/s \
    --alpha-intra 500ns --beta-intra 150GB/s

Exit code: 0; 2 usage.)";

struct SimulateTexts {
  std::optional<int> ranks = {};
  std::string topology = "flat", sizes = "8:1G:x4", algorithms = "all", max_time = "10s";
  CostModel model = {};
  CellOptions cell = {};
};

void define_simulate(CommandLine& line, SimulateTexts& texts) {
  using tools::into;
  constexpr const char* kWhere = "Machine";
  const auto per_byte = [](auto& option, auto& text) { return 1 / speed_option(option, text); };
  CostModel& model = texts.model;
  line.add({kWhere, "-n,--ranks", "N", "how many ranks; default: as many as the topology has",
            into(texts.ranks, tools::number_between(2, kMostSimulatedRanks))});
  line.add_option(kWhere, "--topology", texts.topology, "TEXT",
                  "flat, or nodes:512x8 (512 nodes of 8 ranks); default: flat");
  line.add(
      {kWhere, "--alpha", "TIME", "of a message (between nodes); default: 20us", into(model.inter.alpha, time_option)});
  line.add({kWhere, "--beta", "SPEED", "of a message (between nodes), as 25GB/s, 200Gbit/s; default: 1GB/s",
            into(model.inter.beta, per_byte)});
  line.add(
      {kWhere, "--alpha-intra", "TIME", "the same within a node; default: 1us", into(model.intra.alpha, time_option)});
  line.add(
      {kWhere, "--beta-intra", "SPEED", "the same within a node; default: 10GB/s", into(model.intra.beta, per_byte)});
  line.add({kWhere, "--gamma", "SPEED", "at which a rank reduces; default: 5GB/s", into(model.gamma, per_byte)});
  line.add({kWhere, "--copy", "SPEED", "at which a rank copies; default: in no time", into(model.copy, per_byte)});
  line.add({kWhere, "--nic-shared", "", "one port to the network per node, not per rank",
            tools::becomes(model.nic_shared, true)});
  constexpr const char* kWhat = "What";
  line.add_option(kWhat, "--sizes", texts.sizes, "LIST", "8:1G:x4, or 1K,3M; default: 8:1G:x4");
  line.add_option(kWhat, "--algo", texts.algorithms, "LIST", "all, or some of them; default: all");
  texts.cell.define(line);
  line.add_option(kWhat, "--max-time", texts.max_time, "TIME",
                  "then a closed form is taken; 0s: at once; default: 10s");
}

// ---- What is asked for ----------------------------------------------------------------------------------------------

Topology topology_of(const SimulateTexts& texts) {
  const Topology topology = parse_topology(texts.topology, texts.ranks.value_or(0));
  if (topology.ranks < 2) throw UsageError("a world of one moves no data; simulate 2 ranks at least");
  return topology;
}

CostModel model_of(const CommandLine& line, CostModel model, const Topology& topology) {
  if (topology.nodes > 1) return model;
  if (line.values().first_of({"--alpha-intra", "--beta-intra", "--nic-shared"}) != nullptr)
    throw UsageError(
        "--alpha-intra, --beta-intra and --nic-shared are for several nodes; say how many: --topology nodes:512x8");
  model.intra = model.inter;
  return model;
}

CellSpec simulate_cell_of(const SimulateTexts& texts, Collective collective, int ranks) {
  CellSpec cell;
  cell.operation = static_cast<Operation>(collective);
  cell.ranks = ranks;
  texts.cell.apply(cell);
  if (collective == Collective::alltoallv && ranks > 2048)
    throw UsageError("alltoallv has a count for every pair of ranks: simulate 2048 at most, or alltoall");
  return cell;
}

// As blocks of whole elements make them, none twice.
std::vector<std::size_t> sizes_of(const SimulateTexts& texts, CellSpec cell) {
  if (cell.operation == Operation::barrier) return {0};
  std::vector<std::size_t> sizes;
  for (const std::size_t bytes : parse_sizes(texts.sizes)) {
    cell.bytes = bytes;
    sizes.push_back(whole_bytes(cell, cell.ranks));
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// ---- What is printed ------------------------------------------------------------------------------------------------

std::string link_text(const CostModel::Link& link) {
  return link.beta > 0 ? fmt::format("{} + n / {}", time_text(link.alpha), speed_text(1 / link.beta))
                       : time_text(link.alpha);
}

std::string heading(const CellSpec& cell, const Topology& topology, const CostModel& model) {
  std::string text(to_string(cell.operation));
  if (cell.operation != Operation::barrier) text += fmt::format(", {}", col::to_string(cell.dtype));
  if (is_reduction(cell.operation)) text += fmt::format(" {}", col::to_string(cell.op));
  text += fmt::format(", {}\n", topology.text());
  text += topology.nodes == 1
              ? fmt::format("a message: {}", link_text(model.intra))
              : fmt::format("a message between nodes: {}{}; within a node: {}", link_text(model.inter),
                            model.nic_shared ? ", one port for all of a node" : "", link_text(model.intra));
  if (is_reduction(cell.operation) && model.gamma > 0)
    text += fmt::format("; reducing: {}", speed_text(1 / model.gamma));
  if (model.copy > 0) text += fmt::format("; copying: {}", speed_text(1 / model.copy));
  return text + "\n";
}

struct Ranked {
  std::size_t source;
  const SimulatedCosts::Cost* cost;
};

std::vector<Ranked> ranking(SimulatedCosts& costs, std::size_t sources, std::size_t bytes) {
  std::vector<Ranked> ranked;
  for (std::size_t i = 0; i < sources; ++i) {
    const SimulatedCosts::Cost& cost = costs.at(i, bytes);
    if (cost.seconds()) ranked.push_back({i, &cost});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return *a.cost->seconds() < *b.cost->seconds(); });
  return ranked;
}

std::string cost_table(SimulatedCosts& costs, std::span<const PlanSource> sources, std::span<const std::size_t> sizes,
                       tools::Style style) {
  tools::Table table{.columns = {{"size", true},
                                 {"rank", true},
                                 {"algorithm"},
                                 {"simulated", true},
                                 {"closed form", true},
                                 {"x fastest", true}}};
  for (const std::size_t bytes : sizes) {
    const std::vector<Ranked> ranked = ranking(costs, sources.size(), bytes);
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      const SimulatedCosts::Cost& cost = *ranked[i].cost;
      const double fastest = *ranked.front().cost->seconds();
      table.rows.push_back({{i == 0 ? rough_size_text(bytes) : ""},
                            {fmt::format("{}", i + 1)},
                            {sources[ranked[i].source].name()},
                            {time_text(cost.simulated), cost.simulated ? tools::Tone::plain : tools::Tone::attention},
                            {time_text(cost.closed_form)},
                            {fastest > 0 ? fmt::format("{:.2f}", *cost.seconds() / fastest) : ""}});
    }
  }
  return report_text({.tables = {std::move(table)}}, style);
}

// Which algorithms are missing in the table, or are there by their closed form, and why.
std::string notes(SimulatedCosts& costs, std::span<const PlanSource> sources, std::span<const std::size_t> sizes) {
  std::string text;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    std::vector<std::size_t> missing;
    const SimulatedCosts::Cost* first = nullptr;
    for (const std::size_t bytes : sizes) {
      const SimulatedCosts::Cost& cost = costs.at(i, bytes);
      if (cost.simulated) continue;
      if (first == nullptr) first = &cost;
      missing.push_back(bytes);
    }
    if (first == nullptr) continue;
    const std::string why = tools::one_line(first->why_not);
    if (first->refused) {
      text += fmt::format("# {} is left out: {}\n", sources[i].name(), why);
      continue;
    }
    const bool ranked = first->seconds().has_value();
    const std::string where =
        missing.size() == sizes.size() ? "" : fmt::format(" from {} on", rough_size_text(missing.front()));
    text += fmt::format("# {}{}: {}; {}\n", sources[i].name(), where, why,
                        ranked ? "ranked by its closed form" : "it has no closed form, and is left out there");
  }
  return text;
}

std::string crossovers(SimulatedCosts& costs, std::span<const PlanSource> sources, std::span<const std::size_t> sizes) {
  const auto cost = [&](std::size_t source, std::size_t bytes) { return costs.at(source, bytes).seconds(); };
  const std::vector<BestRange> ranges = best_ranges(sizes, sources.size(), cost);
  std::string text = "fastest:\n";
  for (const std::string& line : range_lines(ranges, [&](std::size_t i) { return sources[i].name(); }))
    text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace

int run_simulate(const Invocation& invocation) {
  SimulateTexts texts;
  CommandLine line("colbench simulate", kSimulateUsage, kSimulateFooter);
  define_simulate(line, texts);
  if (!line.parse(invocation.arguments, 1)) return tools::exit_code::kSuccess;
  const Topology topology = topology_of(texts);
  const CostModel model = model_of(line, texts.model, topology);
  const Collective collective = line.words().empty() ? Collective::allreduce : parse_collective(line.words().front());
  const CellSpec cell = simulate_cell_of(texts, collective, topology.ranks);
  const std::vector<std::size_t> sizes = sizes_of(texts, cell);
  const auto names = tools::parse_list(texts.algorithms);
  if (!names) throw UsageError("--algo should be a list such as ring,mst, not '{}'", texts.algorithms);
  const std::vector<PlanSource> sources = PlanSource::list(collective, *names);
  const auto max_time = texts.max_time == "0s" ? Duration::zero() : tools::parse_duration(texts.max_time);
  if (!max_time) throw UsageError("--max-time should be a time such as 10s, not '{}'", texts.max_time);

  tools::StatusLine status(invocation.screen.progress_fd, invocation.screen.columns);
  SimulatedCosts costs({.cell = cell,
                        .node_of_rank = topology.nodes > 1 ? topology.node_of_rank() : std::vector<int>(),
                        .model = model,
                        .max_time = *max_time,
                        .progress =
                            [&](const std::string& algorithm, std::size_t bytes) {
                              if (!status.usable()) return;
                              const std::string text =
                                  fmt::format("simulating {} at {}", algorithm, rough_size_text(bytes));
                              status.draw(std::string(tools::cut(text, status.width())));
                            }},
                       sources);
  const tools::Style style = invocation.screen.style();
  std::string text = heading(cell, topology, model) + "\n" + cost_table(costs, sources, sizes, style);
  text += notes(costs, sources, sizes);
  text += "\n" + crossovers(costs, sources, sizes);
  status.clear();
  print(text);
  return tools::exit_code::kSuccess;
}

}  // namespace col::colbench
