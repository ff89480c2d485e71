// colbench explain: why a cell runs what it runs.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/plan.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/plans/choice.hpp"
#include "colbench/plans/plan_source.hpp"
#include "colbench/plans/tune_report.hpp"
#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::colbench {
namespace {

constexpr const char* kExplainUsage =
    "Usage: colbench explain COLL [--size 32M | --sizes 8:1G:x4] [-n RANKS] [options]";
constexpr const char* kExplainFooter =
    R"(It asks the tables and variables that a group on this host would ask; nothing is measured, no rank is started.

Examples:
  colbench explain allreduce --size 32M -n 8 --backend gloo
  COL_SELECTION=my.json colbench explain allgather --sizes 1K:16M:x4 -n 7)";

constexpr int kMostExplainedRanks = 65'536;

struct ExplainTexts {
  std::optional<int> ranks = {};
  std::string size, sizes, backend = "auto";
  CellOptions cell = {};
};

void define_explain(CommandLine& line, ExplainTexts& texts) {
  constexpr const char* kWhat = "What";
  line.add({kWhat, "-n,--ranks", "N", "default: the usable cores, at least 2",
            tools::into(texts.ranks, tools::number_between(1, kMostExplainedRanks))});
  line.add_option(kWhat, "--size", texts.size, "BYTES", "default: 32M");
  line.add_option(kWhat, "--sizes", texts.sizes, "LIST", "8:1G:x4, or 1K,3M: a line for each");
  line.add_option(kWhat, "--backend", texts.backend, "NAME",
                  "auto, shm, hosts, hosts_ucx, gloo, ucx, nccl; default: auto");
  texts.cell.define(line);
}

CellSpec explain_cell_of(const ExplainTexts& texts, Collective collective) {
  CellSpec cell;
  cell.operation = static_cast<Operation>(collective);
  cell.ranks = texts.ranks ? *texts.ranks : std::max(2, launch::usable_cpus());
  texts.cell.apply(cell);
  return cell;
}

std::string call_text(const CellSpec& cell, const std::string& backend) {
  std::string text(to_string(cell.operation));
  if (cell.operation != Operation::barrier)
    text += fmt::format(" of {} {}", size_text(whole_bytes(cell, cell.ranks)), col::to_string(cell.dtype));
  if (is_reduction(cell.operation)) text += fmt::format(" {}", col::to_string(cell.op));
  return text + fmt::format(" on {} ranks over {}", cell.ranks, backend);
}

// Adds every rule for this call, and what happened to it. Returns the number of the rule that was taken, from 1.
std::optional<std::size_t> add_rules(const SelectionTable& table, const CellSpec& cell, const Chooser& chooser,
                                     std::string& text) {
  const SelectionQuery query = query_of(cell, chooser.backend());
  std::optional<std::size_t> taken;
  std::size_t passed_over = 0, further = 0;
  for (std::size_t i = 0; i < table.rules().size(); ++i) {
    const SelectionRule& rule = table.rules()[i];
    if (!rule.matches(query)) continue;
    if (taken) {
      ++further;
      continue;
    }
    const auto objection = chooser.why_not(rule.algorithm, cell, false);
    if (objection)
      ++passed_over;
    else
      taken = i + 1;
    text += fmt::format("  rule {}: {}\n    {}\n", i + 1, rule.text(),
                        objection ? "passed over: " + tools::one_line(*objection) : "taken: the first that fits");
  }
  if (further > 0) text += fmt::format("  not looked at any more: {} for this call\n", tools::counted(further, "rule"));
  if (!taken && passed_over == 0) text += "  no rule is for this call\n";
  return taken;
}

std::string tables_text(const CellSpec& cell, const Chooser& chooser) {
  std::string text;
  const auto decides = [&](const SelectionTable& table) {
    text += fmt::format("\ntable: {}\n", table.source());
    const auto rule = add_rules(table, cell, chooser, text);
    const std::string evidence = rule ? evidence_of_rule(table.evidence(), *rule) : table.evidence();
    text += fmt::format("  evidence: {}\n", tools::one_line(evidence));
    return rule.has_value();
  };
  if (chooser.settings().table && decides(*chooser.settings().table)) return text;
  decides(SelectionTable::built_in());
  return text;
}

// The others by name, and why some of them could not be asked for.
std::string others_text(const CellSpec& cell, const Chooser& chooser, const AlgorithmSpec& chosen) {
  const Collective collective = collective_of(cell.operation).value();
  std::vector<std::string> able;
  std::string unable;
  const auto look_at = [&](std::string_view name) {
    if (name == chosen.name) return;
    const AlgorithmSpec spec{.name = std::string(name)};
    if (const auto objection = chooser.why_not(spec, cell, true))
      unable += fmt::format("  {} cannot: {}\n", name, tools::one_line(*objection));
    else
      able.emplace_back(name);
  };
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) look_at(algorithm.name);
  }
  for (const NativeEntry& entry : chooser.natives()) {
    if (entry.collective == collective) look_at(entry.name);
  }
  std::string text = "\nothers that could serve it: ";
  text += able.empty() ? "none" : fmt::format("{}", fmt::join(able, ", "));
  text += "\n" + unable;
  const std::string example = able.empty() ? chosen.text() : able.front();
  text += fmt::format(
      "to have another one: Options::algorithm = \"{0}\" in a call, COL_ALGORITHM={1}:{0} for a program,\n"
      "COL_SELECTION=FILE for a machine (colbench tune writes such a file; docs/selection.md)\n",
      example, to_string(collective));
  return text;
}

}  // namespace

int run_explain(const Invocation& invocation) {
  ExplainTexts texts;
  CommandLine line("colbench explain", kExplainUsage, kExplainFooter);
  define_explain(line, texts);
  if (!line.parse(invocation.arguments, 1)) return tools::exit_code::kSuccess;
  if (line.words().empty()) throw UsageError("which collective? write: colbench explain allreduce --size 32M");
  if (!texts.size.empty() && !texts.sizes.empty()) throw UsageError("give --size or --sizes, not both");
  CellSpec cell = explain_cell_of(texts, parse_collective(line.words().front()));
  const std::vector<std::size_t> sizes = parse_sizes(!texts.sizes.empty() ? texts.sizes
                                                     : texts.size.empty() ? std::string("32M")
                                                                          : texts.size);

  const Chooser chooser(backend_of(texts.backend), ChoiceSettings::from_environment());
  std::string text;
  if (!chooser.unavailable().empty())
    text += fmt::format(
        "# backend {} cannot be used here, and a group would say so: {}; what follows is by the tables alone\n",
        chooser.backend(), tools::one_line(chooser.unavailable()));
  if (cell.ranks == 1) {
    print(text + "a world of one moves no data: no algorithm runs\n");
    return tools::exit_code::kSuccess;
  }
  for (const std::size_t bytes : sizes) {
    cell.bytes = bytes;
    const Chooser::Result result = chooser.choose(cell);
    text += fmt::format("{}\n  runs {}\n", call_text(cell, chooser.backend()), tools::one_line(result.text()));
    if (sizes.size() > 1) continue;
    if (result.table != nullptr) text += tables_text(cell, chooser);
    text += others_text(cell, chooser, result.algorithm);
  }
  print(text);
  return tools::exit_code::kSuccess;
}

}  // namespace col::colbench
