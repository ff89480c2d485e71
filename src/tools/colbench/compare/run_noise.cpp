// colbench noise: how small a difference can be seen on this machine?
#include <string>
#include <vector>

#include <fmt/format.h>

#include <col/group.hpp>

#include "colbench/command.hpp"
#include "colbench/commands/print.hpp"
#include "colbench/compare/noise.hpp"
#include "colbench/compare/percent.hpp"
#include "colbench/options.hpp"
#include "colbench/output.hpp"
#include "common/exit_codes.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr const char* kUsage = "Usage: colbench noise [COLL[,COLL]] [OPTIONS]";
constexpr const char* kFooter =
    "Measures the same thing in twice --launches launches, calls every other one A and the rest B, and compares them:\n"
    "what it finds is the floor of this machine, below which no comparison on it means anything. Default: allreduce "
    "of\n"
    "1K and 1M, 20 launches a side, 10 samples or more in each.";

constexpr int kLaunches = 20;
constexpr int kIterations = 10;  // of each launch
constexpr Duration kTime = std::chrono::milliseconds(100);

// What is asked for, with the defaults of this command.
Request& request_of(CommandLine& line) {
  Request& request = line.request();
  request.operations =
      line.words().empty() ? std::vector<Operation>{Operation::allreduce} : parse_operations(line.words().front());
  if (request.sizes.empty()) request.sizes = {std::size_t{1} << 10, std::size_t{1} << 20};
  Method& method = request.method;
  method.launches = 2 * (line.given("--launches") ? method.launches : kLaunches);
  if (!line.given("--min-iters")) method.min_iterations = kIterations * method.launches;
  if (!line.given("--max-time")) method.max_time = kTime * method.launches;
  return request;
}

}  // namespace

int run_noise(const Invocation& invocation) {
  std::string min_effect = "3%";
  CommandLine line("colbench noise", kUsage, kFooter);
  line.add_cells();
  line.add_method();
  line.add_outputs();
  line.add_option("Verdict", "--min-effect", min_effect, "PERCENT", "smaller differences are none (default 3%)");
  if (!line.parse(invocation.arguments, 1)) return tools::exit_code::kSuccess;
  const double least = parse_percent("--min-effect", min_effect);
  const Request& request = request_of(line);
  const std::vector<CellSpec> cells = cells_of(request);
  check_outputs(request.output);

  if (!Context::current().spec().launcher.empty())
    throw UsageError("noise starts its ranks many times; run it without another launcher");
  const Results results = invocation.measure(request.method, cells);
  std::string text = noise_table(noise_of(results, least), style_of(invocation.screen));
  const bool ascii = !invocation.screen.utf8;
  for (const std::string& warning : results.warnings) text += fmt::format("# {}\n", tools::one_line(warning, ascii));
  if (!results.ended_early.empty()) {
    text += fmt::format("# ended before all was measured: {}\n", tools::one_line(results.ended_early, ascii));
  }
  return finish(results, request.output, text);
}

}  // namespace col::colbench
