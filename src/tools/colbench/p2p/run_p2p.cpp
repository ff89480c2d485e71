// colbench pairs: what messages take between every two ranks. colbench bisect: how much all ranks can move at once from
// one half to the other, and which rank slows it down.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/p2p/bisect.hpp"
#include "colbench/p2p/heat_map.hpp"
#include "colbench/p2p/outliers.hpp"
#include "colbench/report/summary.hpp"
#include "common/exit_codes.hpp"
#include "common/write_file.hpp"

namespace col::colbench {
namespace {

// ---- The command line -----------------------------------------------------------------------------------------------

struct MessageCommand {
  const char* name;   // "pairs"
  const char* usage;  // as CommandLine takes it
  const char* footer;
  const char* sizes;                   // the default
  const char* shows;                   // what it has instead of curves: "--html draws its maps"
  const char* needed;                  // "a pair needs two ranks"
  std::chrono::milliseconds max_time;  // the default
};

struct MessageRequest {
  Method method = {};
  Output output = {};
  std::vector<std::size_t> sizes = {};
  std::string backend = {};
};

// Nothing if a text (--help) was printed instead. Throws UsageError, also if a file could not be written.
std::optional<MessageRequest> parse_message_request(const MessageCommand& command,
                                                    const std::vector<std::string>& arguments) {
  CommandLine line(fmt::format("colbench {}", command.name), command.usage, command.footer);
  std::string sizes = command.sizes;
  MessageRequest asked{.backend = "auto"};
  line.add_option("What", "--size,--sizes", sizes, "LIST",
                  fmt::format("bytes of the messages; default: {}", command.sizes));
  line.add_option("What", "--backend", asked.backend, "NAME",
                  "auto, shm, hosts, hosts_ucx, gloo, ucx, nccl; default: auto");
  line.add_method();
  line.add_outputs();
  if (!line.parse(arguments, 0)) return std::nullopt;
  asked.method = line.request().method;
  asked.output = line.request().output;
  if (!asked.output.plot.empty())
    throw UsageError(fmt::format("{} has no curves to plot; {}", command.name, command.shows));
  if (asked.method.ranks < 2) throw UsageError(fmt::format("{}; give -n 2 or more", command.needed));
  if (!line.given("--max-time")) asked.method.max_time = command.max_time;
  asked.sizes = parse_sizes(sizes);
  check_outputs(asked.output);
  return asked;
}

// ---- pairs ----------------------------------------------------------------------------------------------------------

constexpr const char* kPairsUsage = "Usage: colbench pairs [-n N] [--size 8,1M] [options]";
constexpr const char* kPairsFooter =
    R"(Times half a round trip between every two ranks, one pair at a time, and prints a map of all pairs: latency for
sizes up to 4K, bandwidth above. Names pairs and ranks that are slower than the rest: beyond the median by 20 % and
by 5 median absolute deviations. One pair takes --max-time at most, by default 200ms, for each size.

Examples:
  colbench pairs -n 8 --html pairs.html
  colbench pairs -n 16 --size 64,4M --backend gloo)";

constexpr std::size_t kPipeColumns = 120;

std::vector<CellSpec> cells_of_pairs(int ranks, const std::vector<std::size_t>& sizes, const std::string& backend) {
  std::vector<CellSpec> cells;
  for (const std::size_t bytes : sizes) {
    for (int first = 0; first < ranks; ++first) {
      for (int second = first + 1; second < ranks; ++second) {
        cells.push_back({.operation = Operation::pingpong,
                         .backend = backend,
                         .dtype = DType::uint8,
                         .bytes = bytes,
                         .ranks = ranks,
                         .pair = std::pair(first, second)});
      }
    }
  }
  return cells;
}

// Writes the files; the page with the maps takes the place of the usual one.
int write_pairs(const Results& results, Output output, std::span<const HeatMap> maps, const std::string& sentences) {
  const std::string page = std::exchange(output.html, {});
  int code = write_outputs(results, output);
  if (page.empty()) return code;
  try {
    tools::write_file(page, pairs_page(results, maps, sentences));
  } catch (const tools::WriteError& error) {
    print_error(fmt::format("colbench: {}\n", error.what()));
    if (code == tools::exit_code::kSuccess) code = tools::exit_code::kUsage;
  }
  return code;
}

}  // namespace

int run_pairs(const Invocation& invocation) {
  const auto request = parse_message_request({.name = "pairs",
                                              .usage = kPairsUsage,
                                              .footer = kPairsFooter,
                                              .sizes = "8,1M",
                                              .shows = "--html draws its maps, --json has all samples",
                                              .needed = "a pair needs two ranks",
                                              .max_time = std::chrono::milliseconds(200)},
                                             invocation.arguments);
  if (!request) return tools::exit_code::kSuccess;
  const int ranks = request->method.ranks;
  const Results results = invocation.measure(request->method, cells_of_pairs(ranks, request->sizes, request->backend));
  const tools::Style style = style_of(invocation.screen);
  const std::size_t columns = style.columns == 0 ? kPipeColumns : style.columns;
  std::vector<HeatMap> maps;
  std::string text = "# " + run_text(results) + "\n\n", sentences;
  for (const std::size_t bytes : request->sizes) {
    const HeatMap& map = maps.emplace_back(heat_map_of(results.cells, ranks, bytes));
    text += heat_map_text(map, style, columns) + "\n";
    sentences += outlier_text(find_outliers(ranks, map.pairs), messages_text(bytes));
  }
  const int code = write_pairs(results, request->output, maps, sentences);
  print(text + sentences + notes_text(results, style));
  return code;
}

// ---- bisect ---------------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kBisectUsage = "Usage: colbench bisect [-n N] [--size 1M] [options]";
constexpr const char* kBisectFooter =
    R"(Half of the ranks exchange messages with the other half, both ways, all pairs at once, and prints what crosses the
cut, beside what the same pairs reach one by one. Then the same across other cuts: every 1, 2, 4 … ranks against
the next. A rank or pair that is slow alone too is named: it explains the cuts that it is part of.

Examples:
  colbench bisect -n 8
  colbench bisect -n 8 --size 64K,4M --backend gloo --json bisect.json)";

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
                                              .usage = kBisectUsage,
                                              .footer = kBisectFooter,
                                              .sizes = "1M",
                                              .shows = "--json has all samples, --html the rows",
                                              .needed = "a bisection needs two ranks",
                                              .max_time = std::chrono::milliseconds(300)},
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
