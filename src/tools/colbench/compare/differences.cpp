#include "colbench/compare/differences.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace col::colbench {
namespace {

std::string shown(const std::string& value) {
  return value.empty() ? "unknown" : value;
}

std::string value_in(const RunFacts& run, const std::string& name) {
  const auto found = std::find_if(run.environment.begin(), run.environment.end(),
                                  [&](const auto& variable) { return variable.first == name; });
  return found == run.environment.end() ? "not set" : fmt::format("'{}'", found->second);
}

// How the data of a run's cells were checked: "sample", or "off, sample".
std::string checks_of(const Results& results) {
  std::set<std::string> modes;
  for (const Cell& cell : results.cells) {
    if (!cell.launches.empty()) modes.insert(cell.check.mode);
  }
  std::string text;
  for (const std::string& mode : modes) text += (text.empty() ? "" : ", ") + mode;
  return text;
}

}  // namespace

std::vector<std::string> differences(const Results& a, const Results& b) {
  std::vector<std::string> lines;
  const auto differ = [&](std::string_view what, const std::string& of_a, const std::string& of_b) {
    if (of_a != of_b) lines.push_back(fmt::format("different {}: A {}, B {}", what, shown(of_a), shown(of_b)));
  };
  const RunFacts &run_a = a.run, &run_b = b.run;
  differ("host", run_a.host, run_b.host);
  differ("CPU", run_a.cpu, run_b.cpu);
  differ("number of usable CPUs", std::to_string(run_a.cpus), std::to_string(run_b.cpus));
  differ("kernel", run_a.kernel, run_b.kernel);
  differ("GPUs", run_a.gpus, run_b.gpus);
  differ("NCCL", run_a.nccl, run_b.nccl);
  differ("frequency governor", run_a.governor, run_b.governor);
  differ("number of ranks", std::to_string(run_a.ranks), std::to_string(run_b.ranks));
  differ("start of samples", run_a.sync, run_b.sync);
  differ("number of launches", std::to_string(run_a.launches), std::to_string(run_b.launches));
  differ("target interval", fmt::format("{:.3g}%", 100 * run_a.target_interval),
         fmt::format("{:.3g}%", 100 * run_b.target_interval));
  differ("check of data", checks_of(a), checks_of(b));

  std::set<std::string> names;
  for (const auto& variable : run_a.environment) names.insert(variable.first);
  for (const auto& variable : run_b.environment) names.insert(variable.first);
  for (const std::string& name : names) differ(name, value_in(run_a, name), value_in(run_b, name));

  if (!a.ended_early.empty()) lines.push_back("A ended early: " + a.ended_early);
  if (!b.ended_early.empty()) lines.push_back("B ended early: " + b.ended_early);
  return lines;
}

}  // namespace col::colbench
