// colbench suite: measurements that belong together.
#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <col/group.hpp>
#include <col/select.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/report/summary.hpp"
#include "colbench/suite/ps.hpp"
#include "common/exit_codes.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr const char* kSuiteUsage = "Usage: colbench suite ps [-n 1,2,4,8,16] [--sizes 1K:64M:x16] [options]";
constexpr const char* kSuiteFooter =
    R"(ps: an allreduce of float32 by a central and by a sharded parameter server, and by col's own algorithms, over shared
memory and over Gloo, for every number of ranks in -n (here a list, by default 1,2,4,8,16) and every size. A table for
each number of ranks: times, how they compare, and how much of each is latency, copies and bytes.

Examples:
  colbench suite ps
  colbench suite ps -n 8 --sizes 32M --json ps.json)";

constexpr std::array<std::string_view, 1> kSuites = {"ps"};
constexpr const char* kList = "ps  allreduce by parameter servers, and by collectives\n";

// Memory that is free now; nothing if the system does not say.
std::optional<std::size_t> available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (std::size_t kilobytes = 0; file >> name >> kilobytes;) {
    if (name == "MemAvailable:") return kilobytes * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

// Takes the cells that would not fit into the memory out of `cells`; they become rows that were not measured.
std::vector<Cell> take_too_large(std::vector<CellSpec>& cells) {
  std::vector<Cell> left_out;
  const std::optional<std::size_t> available = available_memory();
  if (!available) return left_out;
  std::erase_if(cells, [&](const CellSpec& spec) {
    const std::size_t needed = memory_of(spec);
    if (needed <= *available / 10 * 8) return false;
    left_out.push_back({.spec = spec,
                        .note = fmt::format("needs {} bytes of memory, {} are free", size_text(needed),
                                            size_text(*available >> 20 << 20))});
    return true;
  });
  return left_out;
}

std::string ps_legend_text(tools::Style style) {
  constexpr std::size_t kUsual = 110;
  std::string text;
  for (const std::string& sentence : ps_legend())
    text += tools::wrapped(sentence, style.columns == 0 ? kUsual : style.columns) + "\n";
  return text;
}

int run_ps(const Invocation& invocation, std::vector<std::string> arguments) {
  const std::vector<int> rank_list = take_rank_list(arguments, {1, 2, 4, 8, 16});
  CommandLine line("colbench suite ps", kSuiteUsage, kSuiteFooter);
  std::string sizes_text = "1K:64M:x16";
  line.add_option("What", "--sizes,--size", sizes_text, "LIST", "bytes of the tensor; default: 1K:64M:x16");
  line.add_method();
  line.add_outputs();
  if (!line.parse(arguments, 0)) return tools::exit_code::kSuccess;
  Request& request = line.request();
  const std::vector<std::size_t> sizes = parse_sizes(sizes_text);
  check_outputs(request.output);

  PageExtras extras{.subject = "allreduce by parameter servers, and by collectives",
                    .title = "Servers and collectives",
                    .caveats = ps_legend(),
                    .tables = {},
                    .name = [](const CellSpec& spec) {
                      const PsMethod* method = ps_method_of(spec);
                      return std::string(method == nullptr ? std::string_view() : method->name);
                    }};
  const bool gloo = gloo_available();
  const tools::Style style = style_of(invocation.screen);
  Results all;
  for (const int ranks : rank_list) {
    std::vector<CellSpec> cells = ps_cells(ranks, sizes, gloo);
    const std::vector<Cell> left_out = take_too_large(cells);
    request.method.ranks = ranks;
    Results one = invocation.measure(request.method, cells);
    one.cells.insert(one.cells.end(), left_out.begin(), left_out.end());
    const bool first = all.cells.empty();
    add_results(all, one);
    extras.tables.push_back(ps_table(one, ranks, one.machine, true));
    write_outputs(all, request.output, extras);  // a terminal that goes away takes nothing with it
    if (first) print("# " + run_text(one) + "\n" + ps_legend_text(style));
    print("\n" +
          tools::render_noted(style.utf8 ? extras.tables.back() : ps_table(one, ranks, one.machine, false), style));
    if (!all.ended_early.empty()) break;
  }
  if (!gloo) all.warnings.push_back("without the rows over Gloo: " + gloo_unavailable_reason());
  return finish(all, request.output, "\n" + notes_text(all, style), extras);
}

}  // namespace

int run_suite(const Invocation& invocation) {
  std::vector<std::string> arguments = invocation.arguments;
  if (arguments.empty()) {
    print(kList);
    return tools::exit_code::kSuccess;
  }
  const std::string name = arguments.front();
  if (name == "-h" || name == "--help") return run_ps(invocation, {name});
  if (std::find(kSuites.begin(), kSuites.end(), name) == kSuites.end()) {
    const std::string_view nearest = nearest_name(name, kSuites);
    throw UsageError(fmt::format(
        "there is no suite '{}'; {}", name,
        nearest.empty() ? "colbench suite lists what there is" : fmt::format("did you mean '{}'?", nearest)));
  }
  arguments.erase(arguments.begin());
  return run_ps(invocation, std::move(arguments));
}

}  // namespace col::colbench
