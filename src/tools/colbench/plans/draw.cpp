// colbench draw: a plan as text, as a picture, as JSON; and results that --json has written, as curves.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/plans/plan_source.hpp"
#include "colbench/report/json.hpp"
#include "colbench/report/report.hpp"
#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"

namespace col::colbench {
namespace {

constexpr const char* kDrawUsage =
    "Usage: colbench draw [COLL] --algorithm NAME [-n RANKS] [-o FILE]\n       colbench draw RESULTS.json [-o FILE]";
constexpr const char* kDrawFooter = R"(COLL is allreduce unless it is given, or the plan comes from a file.
RESULTS.json is what --json of a measuring command wrote, or python -m col.compare; without -o, their table is printed.

Examples:
  colbench draw --algorithm mst -n 8                 on the terminal
  colbench draw --algorithm mst -n 8 -o mst.svg      as a picture
  colbench draw broadcast --algorithm knomial:radix=3 -n 8 --root 2
  colbench draw --algorithm file:my.json -o my.svg   a plan of your own
  colbench draw results.json -o results.html         curves of results)";

constexpr int kMostRanks = 64;
constexpr int kMostDrawnRanks = 8;  // more lines than that cross too often

enum class Form { text, svg, json, html };

Form form_of(const std::string& option, const std::string& file) {
  if (file == "-" || file.ends_with(".txt")) return Form::text;
  if (file.ends_with(".svg")) return Form::svg;
  if (file.ends_with(".json")) return Form::json;
  if (file.ends_with(".html")) return Form::html;
  if (file.ends_with(".png") || file.ends_with(".pdf")) check_plot(option, file);
  throw UsageError("{} {}: should end with .svg, .json or .txt; of results with .svg or .html", option, file);
}

struct DrawTexts {
  std::string algorithm, root, size, count, file = "-";
  std::optional<int> ranks = {};
  Form form = Form::text;
};

void define_draw(CommandLine& line, DrawTexts& texts) {
  constexpr const char* kWhat = "What";
  line.add_option(kWhat, "--algorithm,--algo", texts.algorithm, "NAME", "ring, knomial:radix=3, file:plan.json");
  line.add({kWhat, "-n,--ranks", "N", "default: 8, or as many as the file is for",
            tools::into(texts.ranks, tools::number_between(1, kMostRanks))});
  line.add_option(kWhat, "--root", texts.root, "R", "of broadcast, reduce, gather, scatter; default: 0");
  line.add_option(kWhat, "--count", texts.count, "N", "elements; default: one for each rank");
  line.add_option(kWhat, "--size", texts.size, "BYTES", "the same in bytes, of float32");
  line.add({"Output", "-o,--output", "FILE",
            "a picture (.svg), the plan (.json), text (.txt, or - for the terminal); results: .svg, .html",
            [&texts](const std::string& name, const std::string& file) {
              texts.form = form_of(name, file);
              texts.file = file;
            }});
}

// The cell whose plans are to be drawn. One element a rank, where the command line says nothing: every label is short.
CellSpec draw_cell_of(const DrawTexts& texts, Collective collective, int ranks) {
  CellSpec cell;
  cell.operation = static_cast<Operation>(collective);
  cell.ranks = texts.ranks.value_or(ranks);
  if (!texts.root.empty()) cell.root = tools::read_number("--root", texts.root, 0, cell.ranks - 1);
  cell.bytes = static_cast<std::size_t>(cell.ranks) * size_of(cell.dtype);
  if (!texts.root.empty() && !is_rooted(cell.operation))
    throw UsageError("{} has no root; leave out --root", to_string(cell.operation));
  if (!texts.size.empty()) {
    const auto bytes = parse_size(texts.size);
    if (!texts.count.empty()) throw UsageError("--size and --count say the same; give one of them");
    if (!bytes || *bytes == 0) throw UsageError("--size should be a size such as 64K, not '{}'", texts.size);
    cell.bytes = *bytes;
  }
  return cell;
}

PlanProblem::Spec problem_of(const DrawTexts& texts, const CellSpec& cell, const AlgorithmSpec& algorithm) {
  PlanProblem::Spec spec = colbench::problem_of(cell, algorithm);
  if (texts.count.empty()) return spec;
  const auto count = tools::parse_whole_number<std::size_t>(texts.count, 1, std::size_t{1} << 40);
  if (!count) throw UsageError("--count should be a number of elements, at least 1, not '{}'", texts.count);
  if (spec.counts.empty())
    spec.count = *count;
  else
    std::fill(spec.counts.begin(), spec.counts.end(), *count);
  return spec;
}

std::string drawing(Form form, const PlanProblem& problem, const PlanOfRank& plans, const std::string& name) {
  const std::string title = fmt::format("{} by {}", to_string(problem.spec().collective), name);
  switch (form) {
    case Form::svg:
      return draw_svg(problem, plans, title);
    case Form::json:
      return plan_to_json(problem, plans, name);
    default:
      return draw_text(problem, plans, title);
  }
}

int draw_results(const CommandLine& line, const DrawTexts& texts, const tools::Screen& screen) {
  for (const char* option : {"--algorithm", "--ranks", "--root", "--count", "--size"}) {
    if (line.given(option)) throw UsageError("{} is of plans; results are drawn as they are", option);
  }
  Output output;
  if (texts.form == Form::svg)
    output.plot = texts.file;
  else if (texts.form == Form::html)
    output.html = texts.file;
  else if (texts.file != "-")
    throw UsageError("-o {}: results are drawn as .svg or .html, or as a table on the terminal", texts.file);
  check_outputs(output);
  const Results results = read_json_results(line.words().front());
  return texts.file == "-" ? report(results, output, screen) : write_outputs(results, output);
}

}  // namespace

int run_draw(const Invocation& invocation) {
  DrawTexts texts;
  CommandLine line("colbench draw", kDrawUsage, kDrawFooter);
  define_draw(line, texts);
  if (!line.parse(invocation.arguments, 1)) return tools::exit_code::kSuccess;
  const bool named = !line.words().empty();
  if (named && line.words().front().ends_with(".json")) return draw_results(line, texts, invocation.screen);
  if (texts.form == Form::html) throw UsageError("-o {}: a plan is drawn as .svg, .json or .txt", texts.file);
  Collective collective = named ? parse_collective(line.words().front()) : Collective::allreduce;
  if (texts.algorithm.empty())
    throw UsageError("which algorithm of {}? write --algorithm and one of {}", to_string(collective),
                     fmt::join(names_of(collective), ", "));

  const PlanSource source = PlanSource::find(collective, texts.algorithm);
  if (source.file() && !named) collective = source.file()->collective();
  const CellSpec cell = draw_cell_of(texts, collective, source.file() ? source.file()->ranks() : 8);
  if (texts.form != Form::json && cell.ranks > kMostDrawnRanks)
    throw UsageError(
        "a drawing of {} ranks cannot be read; draw {} or fewer, which show the same pattern, or write the "
        "plan itself: -o plan.json",
        cell.ranks, kMostDrawnRanks);
  const PlanProblem problem(problem_of(texts, cell, source.spec()));
  if (const auto refusal = source.refuse(problem)) throw UsageError(*refusal);

  const PlanOfRank plans = source.plans(problem);
  // The built-in ones have been verified by the tests.
  const Verdict verdict = source.file() ? verify(problem, plans) : Verdict{};
  if (!verdict.good) print_error(fmt::format("colbench: the plan is wrong: {}\n", tools::one_line(verdict.problem)));
  const std::string text = drawing(texts.form, problem, plans, source.file() ? source.file()->name() : source.name());
  if (texts.file == "-")
    print(text);
  else
    tools::write_file(texts.file, text);
  return verdict.good ? tools::exit_code::kSuccess : tools::exit_code::kWrongData;
}

}  // namespace col::colbench
