// colbench compare A.json B.json: is B slower than A, and how sure is that?
// colbench noise: how small a difference can be seen on this machine?
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/group.hpp>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/compare/compare.hpp"
#include "colbench/compare/noise.hpp"
#include "colbench/report/json.hpp"
#include "common/exit_codes.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"

namespace col::colbench {

// ---- compare --------------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kCompareUsage = "Usage: colbench compare A.json B.json [OPTIONS]";
constexpr const char* kCompareFooter =
    "A and B are what --json of a measuring command wrote. Each launch counts as one observation, and it takes nine a\n"
    "side to tell anything: measure with --launches 20, or 40 where they scatter. Two runs made one after the other "
    "differ also by what the machine did in between, which\n"
    "no test can see: `colbench noise` tells how much this machine needs.\n"
    "Exit code: 0; 4 with --fail-over when a row is slower by more than that; 6 when no row could be compared because\n"
    "all of them are invalid or were not measured.";

struct CompareTexts {
  std::string min_effect = "3%", fail_over, json;
};

int exit_code_of(const Comparison& comparison, const CompareTexts& options, double over) {
  if (comparison.cells.empty()) return tools::exit_code::kInvalidMeasurement;
  if (options.fail_over.empty()) return tools::exit_code::kSuccess;
  const bool slower = std::any_of(comparison.cells.begin(), comparison.cells.end(),
                                  [&](const ComparedCell& cell) { return is_regression(cell, over); });
  return slower ? tools::exit_code::kRegression : tools::exit_code::kSuccess;
}

void refuse_nothing_in_common(const Comparison& comparison, const std::string& a, const std::string& b) {
  const bool unusable =
      std::any_of(comparison.left_out.begin(), comparison.left_out.end(),
                  [](const LeftOutCell& cell) { return cell.reason == LeftOutCell::Reason::unusable; });
  if (!comparison.cells.empty() || unusable) return;
  const std::string of_a = comparison.left_out.empty() ? "nothing" : text_of(comparison.left_out.front().spec);
  const std::string of_b = comparison.left_out.empty() ? "nothing" : text_of(comparison.left_out.back().spec);
  throw UsageError(
      "'{}' and '{}' have no row in common: the first has {}, the second {}; measure both with "
      "the same options",
      a, b, of_a, of_b);
}

void write_json(const std::string& path, const std::string& json) {
  try {
    tools::write_file(path, json);
  } catch (const tools::WriteError& error) {
    throw UsageError(error.what());
  }
}

// All of them at once: who has mistyped one has often mistyped both.
void refuse_missing(const std::vector<std::string>& paths) {
  std::vector<std::string> missing;
  for (const std::string& path : paths) {
    if (::access(path.c_str(), F_OK) != 0) missing.push_back(path);
  }
  if (missing.empty()) return;
  throw UsageError("there {} no file{} {}; give files that colbench --json has written",
                   missing.size() > 1 ? "are" : "is", missing.size() > 1 ? "s" : "", fmt::join(missing, " and "));
}

}  // namespace

int run_compare(const Invocation& invocation) {
  CompareTexts options;
  CommandLine line("colbench compare", kCompareUsage, kCompareFooter);
  line.add_option("Verdict", "--min-effect", options.min_effect, "PERCENT",
                  "smaller differences are none (default 3%)");
  line.add_option("Verdict", "--fail-over", options.fail_over, "PERCENT",
                  "exit 4 when a row is surely slower, and by more than that");
  line.add_option("Output", "--json", options.json, "FILE", "write the comparison as JSON too");
  line.offer({"<file>"});
  if (!line.parse(invocation.arguments, 2)) return tools::exit_code::kSuccess;
  if (line.words().size() != 2) throw UsageError("compare needs two files: colbench compare A.json B.json");

  const Rule rule{.min_effect = parse_percent("--min-effect", options.min_effect)};
  const double over = options.fail_over.empty() ? 0 : parse_percent("--fail-over", options.fail_over);
  check_outputs({.json = options.json});
  const std::string &path_a = line.words()[0], &path_b = line.words()[1];
  refuse_missing(line.words());
  const Comparison comparison = compare(read_json_results(path_a), read_json_results(path_b), rule);
  refuse_nothing_in_common(comparison, path_a, path_b);

  const bool ascii = !invocation.screen.utf8;
  print(fmt::format("# A: {}\n# B: {}\n", tools::one_line(path_a, ascii), tools::one_line(path_b, ascii)) +
        comparison_table(comparison, invocation.screen.style()));
  if (!options.json.empty()) write_json(options.json, comparison_json(comparison, path_a, path_b));
  return exit_code_of(comparison, options, over);
}

// ---- noise ----------------------------------------------------------------------------------------------------------

namespace {

constexpr const char* kNoiseUsage = "Usage: colbench noise [COLL[,COLL]] [OPTIONS]";
constexpr const char* kNoiseFooter =
    R"(Measures the same thing in twice --launches launches, calls every other one A and the rest B, and compares them:
what it finds is the floor of this machine, below which no comparison on it means anything. Default: allreduce of
1K and 1M, 20 launches a side, 10 samples or more in each.)";

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
  CommandLine line("colbench noise", kNoiseUsage, kNoiseFooter);
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
  std::string text = noise_table(noise_of(results, least), invocation.screen.style());
  const bool ascii = !invocation.screen.utf8;
  for (const std::string& warning : results.warnings) text += fmt::format("# {}\n", tools::one_line(warning, ascii));
  if (!results.ended_early.empty()) {
    text += fmt::format("# ended before all was measured: {}\n", tools::one_line(results.ended_early, ascii));
  }
  return finish(results, request.output, text);
}

}  // namespace col::colbench
