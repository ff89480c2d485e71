// colbench compare A.json B.json: is B slower than A, and how sure is that?
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "colbench/command.hpp"
#include "colbench/commands/print.hpp"
#include "colbench/compare/compare.hpp"
#include "colbench/compare/percent.hpp"
#include "colbench/compare/report.hpp"
#include "colbench/options.hpp"
#include "colbench/output.hpp"
#include "colbench/report/json.hpp"
#include "common/exit_codes.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"

namespace col::colbench {
namespace {

constexpr const char* kUsage = "Usage: colbench compare A.json B.json [OPTIONS]";
constexpr const char* kFooter =
    "A and B are what --json of a measuring command wrote. Each launch counts as one observation, and it takes nine a\n"
    "side to tell anything: measure with --launches 20, or 40 where they scatter. Two runs made one after the other "
    "differ also by what the machine did in between, which\n"
    "no test can see: `colbench noise` tells how much this machine needs.\n"
    "Exit code: 0; 4 with --fail-over when a row is slower by more than that; 6 when no row could be compared because\n"
    "all of them are invalid or were not measured.";

struct Options {
  std::string min_effect = "3%", fail_over, json;
};

int exit_code_of(const Comparison& comparison, const Options& options, double over) {
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
      fmt::format("'{}' and '{}' have no row in common: the first has {}, the second {}; measure both with "
                  "the same options",
                  a, b, of_a, of_b));
}

void write_json(const std::string& path, const std::string& json) {
  try {
    tools::write_file(path, json);
  } catch (const tools::WriteError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

int run_compare(const Invocation& invocation) {
  Options options;
  CommandLine line("colbench compare", kUsage, kFooter);
  line.add_option("Verdict", "--min-effect", options.min_effect, "PERCENT",
                  "smaller differences are none (default 3%)");
  line.add_option("Verdict", "--fail-over", options.fail_over, "PERCENT",
                  "exit 4 when a row is surely slower, and by more than that");
  line.add_option("Output", "--json", options.json, "FILE", "write the comparison as JSON too");
  if (!line.parse(invocation.arguments, 2)) return tools::exit_code::kSuccess;
  if (line.words().size() != 2) throw UsageError("compare needs two files: colbench compare A.json B.json");

  const Rule rule{.min_effect = parse_percent("--min-effect", options.min_effect)};
  const double over = options.fail_over.empty() ? 0 : parse_percent("--fail-over", options.fail_over);
  check_outputs({.json = options.json});
  const std::string &path_a = line.words()[0], &path_b = line.words()[1];
  const Comparison comparison = compare(read_json_results(path_a), read_json_results(path_b), rule);
  refuse_nothing_in_common(comparison, path_a, path_b);

  const bool ascii = !invocation.screen.utf8;
  print(fmt::format("# A: {}\n# B: {}\n", tools::one_line(path_a, ascii), tools::one_line(path_b, ascii)) +
        comparison_table(comparison, style_of(invocation.screen)));
  if (!options.json.empty()) write_json(options.json, comparison_json(comparison, path_a, path_b));
  return exit_code_of(comparison, options, over);
}

}  // namespace col::colbench
