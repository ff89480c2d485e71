// colbench draw: a plan as text, as a picture, as JSON.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/commands/command.hpp"
#include "colbench/commands/options.hpp"
#include "colbench/plans/plan_source.hpp"
#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"

namespace col::colbench {
namespace {

constexpr const char* kDrawUsage = "Usage: colbench draw [COLL] --algorithm NAME [-n RANKS] [-o FILE]";
constexpr const char* kDrawFooter = R"(COLL is allreduce unless it is given, or the plan comes from a file.

Examples:
  colbench draw --algorithm mst -n 8                 on the terminal
  colbench draw --algorithm mst -n 8 -o mst.svg      as a picture
  colbench draw broadcast --algorithm knomial:radix=3 -n 8 --root 2
  colbench draw --algorithm file:my.json -o my.svg   a plan of your own)";

constexpr int kMostRanks = 64;
constexpr int kMostDrawnRanks = 8;  // more lines than that cross too often

struct DrawTexts {
  std::string algorithm, ranks, root, size, count, file = "-";
};

void define_draw(CommandLine& line, DrawTexts& texts) {
  constexpr const char* kWhat = "What";
  line.add_option(kWhat, "--algorithm,--algo", texts.algorithm, "NAME", "ring, knomial:radix=3, file:plan.json");
  line.add_option(kWhat, "-n,--ranks", texts.ranks, "N", "default: 8, or as many as the file is for");
  line.add_option(kWhat, "--root", texts.root, "R", "of broadcast, reduce, gather, scatter; default: 0");
  line.add_option(kWhat, "--count", texts.count, "N", "elements; default: one for each rank");
  line.add_option(kWhat, "--size", texts.size, "BYTES", "the same in bytes, of float32");
  line.add_option("Output", "-o,--output", texts.file, "FILE",
                  "a picture (.svg), the plan itself (.json), or text (.txt, or - for the terminal)");
}

int number(const char* name, const std::string& text, int least, int most, int otherwise) {
  if (text.empty()) return otherwise;
  if (const auto value = tools::parse_whole_number(text, least, most)) return *value;
  throw UsageError(fmt::format("{} should be a number from {} to {}, not '{}'", name, least, most, text));
}

// The cell whose plans are to be drawn. One element a rank, where the command line says nothing: every label is short.
CellSpec draw_cell_of(const DrawTexts& texts, Collective collective, int ranks) {
  CellSpec cell;
  cell.operation = static_cast<Operation>(collective);
  cell.ranks = number("--ranks", texts.ranks, 1, kMostRanks, ranks);
  cell.root = number("--root", texts.root, 0, cell.ranks - 1, 0);
  cell.bytes = static_cast<std::size_t>(cell.ranks) * size_of(cell.dtype);
  if (!texts.root.empty() && !is_rooted(cell.operation))
    throw UsageError(fmt::format("{} has no root; leave out --root", to_string(cell.operation)));
  if (!texts.size.empty()) {
    const auto bytes = parse_size(texts.size);
    if (!texts.count.empty()) throw UsageError("--size and --count say the same; give one of them");
    if (!bytes || *bytes == 0)
      throw UsageError(fmt::format("--size should be a size such as 64K, not '{}'", texts.size));
    cell.bytes = *bytes;
  }
  return cell;
}

PlanProblem::Spec problem_of(const DrawTexts& texts, const CellSpec& cell, const AlgorithmSpec& algorithm) {
  PlanProblem::Spec spec = colbench::problem_of(cell, algorithm);
  if (texts.count.empty()) return spec;
  const auto count = tools::parse_whole_number<std::size_t>(texts.count, 1, std::size_t{1} << 40);
  if (!count)
    throw UsageError(fmt::format("--count should be a number of elements, at least 1, not '{}'", texts.count));
  if (spec.counts.empty())
    spec.count = *count;
  else
    std::fill(spec.counts.begin(), spec.counts.end(), *count);
  return spec;
}

enum class Form { text, svg, json };

Form form_of(const std::string& file) {
  if (file == "-" || file.ends_with(".txt")) return Form::text;
  if (file.ends_with(".svg")) return Form::svg;
  if (file.ends_with(".json")) return Form::json;
  throw UsageError(fmt::format("-o {}: should end with .svg, .json or .txt", file));
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

}  // namespace

int run_draw(const Invocation& invocation) {
  DrawTexts texts;
  CommandLine line("colbench draw", kDrawUsage, kDrawFooter);
  define_draw(line, texts);
  if (!line.parse(invocation.arguments, 1)) return tools::exit_code::kSuccess;
  const bool named = !line.words().empty();
  Collective collective = named ? parse_collective(line.words().front()) : Collective::allreduce;
  if (texts.algorithm.empty())
    throw UsageError("which algorithm of {}? write --algorithm and one of {}", to_string(collective),
                     fmt::join(names_of(collective), ", "));
  const Form form = form_of(texts.file);

  const PlanSource source = PlanSource::find(collective, texts.algorithm);
  if (source.file() && !named) collective = source.file()->collective();
  const CellSpec cell = draw_cell_of(texts, collective, source.file() ? source.file()->ranks() : 8);
  if (form != Form::json && cell.ranks > kMostDrawnRanks)
    throw UsageError(
        fmt::format("a drawing of {} ranks cannot be read; draw {} or fewer, which show the same pattern, or write the "
                    "plan itself: -o plan.json",
                    cell.ranks, kMostDrawnRanks));
  const PlanProblem problem(problem_of(texts, cell, source.spec()));
  if (const auto refusal = source.refuse(problem)) throw UsageError(*refusal);

  const PlanOfRank plans = source.plans(problem);
  // The built-in ones have been verified by the tests.
  const Verdict verdict = source.file() ? verify(problem, plans) : Verdict{};
  if (!verdict.good) print_error(fmt::format("colbench: the plan is wrong: {}\n", tools::one_line(verdict.problem)));
  const std::string text = drawing(form, problem, plans, source.file() ? source.file()->name() : source.name());
  if (texts.file == "-")
    print(text);
  else
    tools::write_file(texts.file, text);
  return verdict.good ? tools::exit_code::kSuccess : tools::exit_code::kWrongData;
}

}  // namespace col::colbench
