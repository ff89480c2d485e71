// colbench pairs: what messages take between every two ranks.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/p2p/heat_map.hpp"
#include "colbench/report/report.hpp"
#include "colbench/report/summary.hpp"
#include "common/exit_codes.hpp"

namespace col::colbench {
namespace {

constexpr const char* kUsage = "Usage: colbench pairs [-n N] [--size 8,1M] [options]";
constexpr const char* kFooter =
    R"(Times half a round trip between every two ranks, one pair at a time, and prints a map of all pairs: latency for
sizes up to 4K, bandwidth above. Names pairs and ranks that are slower than the rest: beyond the median by 20 % and
by 5 median absolute deviations. One pair takes --max-time at most, by default 200ms, for each size.

Examples:
  colbench pairs -n 8 --html pairs.html
  colbench pairs -n 16 --size 64,4M --backend gloo)";

constexpr std::size_t kPipeColumns = 120;

struct PairsRequest {
  Method method = {};
  Output output = {};
  std::vector<std::size_t> sizes = {};
  std::string backend = {};
};

// Nothing if a text (--help) was printed instead. Throws UsageError, also if a file could not be written.
std::optional<PairsRequest> parse_request(const std::vector<std::string>& arguments) {
  CommandLine line("colbench pairs", kUsage, kFooter);
  std::string sizes = "8,1M";
  PairsRequest asked{.backend = "auto"};
  line.add_option("What", "--size,--sizes", sizes, "LIST", fmt::format("bytes of the messages; default: {}", sizes));
  line.add_option("What", "--backend", asked.backend, "NAME",
                  "auto, shm, hosts, hosts_ucx, gloo, ucx, nccl; default: auto");
  line.add_method();
  line.add_outputs();
  if (!line.parse(arguments, 0)) return std::nullopt;
  asked.method = line.request().method;
  asked.output = line.request().output;
  if (!asked.output.plot.empty())
    throw UsageError("pairs has no curves to plot; --html draws its maps, --json has all samples");
  if (asked.method.ranks < 2) throw UsageError("a pair needs two ranks; give -n 2 or more");
  if (!line.given("--max-time")) asked.method.max_time = std::chrono::milliseconds(200);
  asked.sizes = parse_sizes(sizes);
  check_outputs(asked.output);
  return asked;
}

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

}  // namespace

int run_pairs(const Invocation& invocation) {
  const auto request = parse_request(invocation.arguments);
  if (!request) return tools::exit_code::kSuccess;
  const int ranks = request->method.ranks;
  const Results results = invocation.measure(request->method, cells_of_pairs(ranks, request->sizes, request->backend));
  tools::Style style = invocation.screen.style();
  if (style.columns == 0) style.columns = kPipeColumns;
  tools::Part page{.title = "Maps"};
  std::string text = "# " + run_text(results) + "\n\n", sentences;
  for (const std::size_t bytes : request->sizes) {
    const HeatMap map = heat_map_of(results.cells, ranks, bytes);
    page.tables.push_back(heat_map_table(map, {.utf8 = true}));
    text += heat_map_text(map, style) + "\n";
    std::string found = outlier_text(find_outliers(ranks, map.pairs), messages_text(bytes));
    sentences += found;
    for (std::string_view rest = found; !rest.empty();) page.lead.push_back({std::string(tools::take(rest, '\n'))});
  }
  return finish(results, request->output, text + sentences + report_text({.notes = notes_of(results)}, style), page);
}

}  // namespace col::colbench
