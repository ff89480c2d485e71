#include "colbench/report/head.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/report/facets.hpp"
#include "colbench/report/values.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

std::string level_text(const Machine::Level& level) {
  return fmt::format("{} {}/{}", size_text(level.bytes), bandwidth_text(level.alone), bandwidth_text(level.together));
}

}  // namespace

std::string run_text(const Results& results) {
  const RunFacts& run = results.run;
  std::vector<std::string> where;
  if (run.cpus > 0) where.push_back(tools::counted(static_cast<std::size_t>(run.cpus), "CPU"));
  if (!run.cpu.empty()) where.push_back(tools::one_line(run.cpu));
  std::string text = fmt::format("colbench {}: {}", tools::one_line(run.version),
                                 tools::counted(static_cast<std::size_t>(run.ranks), "rank"));
  if (!run.host.empty()) text += " on " + tools::one_line(run.host);
  if (!where.empty()) text += fmt::format(" ({})", fmt::join(where, ", "));
  if (run.launches > 0) {
    const auto launches = static_cast<std::size_t>(run.launches);
    text += fmt::format(", {} launch{}", tools::grouped(launches), launches == 1 ? "" : "es");
  }
  if (!run.sync.empty()) text += run.sync == "barrier" ? ", barrier start" : ", common start";
  text += ", seed " + seed_text(run.seed);
  if (!run.gpus.empty()) text += "; " + tools::one_line(run.gpus);
  if (!run.nccl.empty()) text += "; " + tools::one_line(run.nccl);
  return text;
}

std::string machine_text(const Machine& machine, std::size_t columns) {
  std::string tail;
  const auto add = [&](const char* name, double seconds) {
    if (seconds <= 0) return;
    tail += fmt::format("{}{} {}", tail.empty() ? "" : ", ", name, time_text(seconds));
  };
  add("hand-over", machine.hand_over_seconds);
  add("wake-up", machine.wake_up_seconds);
  add("process switch", machine.switch_seconds);
  if (machine.levels.empty()) return tail;

  std::string text = "memory in GB/s, alone/together: " + level_text(machine.levels.front());
  const std::string last = machine.levels.size() > 1 ? ", " + level_text(machine.levels.back()) : "";
  if (!tail.empty()) tail = "; " + tail;
  for (std::size_t i = 1; i + 1 < machine.levels.size(); ++i) {
    const std::string next = ", " + level_text(machine.levels[i]);
    if (text.size() + next.size() + last.size() + tail.size() > columns) break;
    text += next;
  }
  return text + last + tail;
}

std::string shared_text(const Results& results) {
  constexpr std::array kNotNamed = {Facet::backend, Facet::device, Facet::dtype, Facet::op,
                                    Facet::ranks,   Facet::root,   Facet::place, Facet::cadence,
                                    Facet::cache,   Facet::groups, Facet::pair};
  std::vector<std::string> parts;
  const auto words = shared_words(results.cells, kNotNamed);
  if (!words.empty()) parts.push_back(fmt::format("all rows: {}", fmt::join(words, ", ")));
  if (std::any_of(results.cells.begin(), results.cells.end(), was_chosen)) parts.push_back("* chosen by the library");
  if (!results.cells.empty()) parts.push_back("bandwidths in GB/s");
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace col::colbench
