#include "colcheck/options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "colcheck/option_texts.hpp"
#include "common/command_line.hpp"

namespace col::colcheck {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  colcheck                              is every primitive right on this machine?\n"
    "  colcheck --full --junit results.xml   the same, thoroughly, for a CI server\n"
    "  colcheck --only exact --backend gloo --np 3,5 --algo ring\n"
    "  colcheck --device cuda                memory of GPUs alone, over NCCL and through the host\n"
    "  colcheck --repro 'exact,backend=shm,np=3,coll=allreduce,algo=ring,count=7,seed=0x1f'\n"
    "  mpirun -n 4 colcheck                  in the ranks that are there already\n"
    "\n"
    "Exit code: 0 every case passed; 1 a case failed; 2 usage, or what --require names cannot be used; 3 time is up;\n"
    "5 a rank died; 77 nothing could be checked. A skipped case is never counted as a pass.";

constexpr std::array<std::string_view, 3> kEfforts = {"--quick", "--full", "--soak"};
constexpr std::array<std::string_view, 3> kReports = {"--junit", "--json", "--html"};
// What decides which cases are run.
constexpr std::array<std::string_view, 11> kSelecting = {"--quick", "--full", "--soak", "--backend", "--device", "--np",
                                                         "--only",  "--skip", "--algo", "--seed",    "--faults"};

// ---- The options ----------------------------------------------------------------------------------------------------

void define(CLI::App& app, OptionTexts& texts, Options& options) {
  constexpr const char* kEffort = "How much";
  tools::add_flag(app, kEffort, "--quick", "thousands of cases in under 20 s on two cores; the default");
  tools::add_flag(app, kEffort, "--full", "more of everything, in under 10 minutes");
  tools::add_option(app, kEffort, "--soak", texts.soak, "TIME",
                    "the quick cases with ever new seeds, for that long: 90s, 10m, 1h");
  constexpr const char* kWhat = "What";
  tools::add_option(app, kWhat, "--backend", texts.backends, "LIST",
                    "all, or some of shm,gloo,nccl; default: all that can be used");
  tools::add_option(app, kWhat, "--require", texts.require, "LIST",
                    "backends and devices that must be usable, as gloo,cuda");
  tools::add_option(app, kWhat, "--device", texts.device, "DEVICE",
                    "whose memory buffers are in: all, cpu or cuda (and both mixed); default: all");
  tools::add_option(app, kWhat, "--np", texts.ranks, "LIST", "numbers of ranks; default: 1-9, with --full 1-9,16");
  tools::add_option(app, kWhat, "--only", texts.only, "LIST", "these properties and no others");
  tools::add_option(app, kWhat, "--skip", texts.skip, "LIST", "all properties but these");
  tools::add_option(app, kWhat, "--algo", texts.algorithms, "LIST",
                    "these algorithms and no others, as ring,knomial:radix=3");
  tools::add_flag(app, kWhat, "--faults", "also harm the ranks and see what the others say");
  tools::add_option(app, kWhat, "--seed", texts.seed, "N", "of all that is random, as 42 or 0x2a; default: a new one");
  tools::add_option(app, kWhat, "--repro", texts.repro, "TOKEN", "one case, as the report of a failure names it");
  tools::add_flag(app, kWhat, "--self-test",
                  "check the checker: it must find every bug planted in a backend of its own");
  constexpr const char* kOutput = "Output";
  tools::add_option(app, kOutput, "--junit", options.junit, "FILE", "write the results as JUnit XML");
  tools::add_option(app, kOutput, "--json", options.json, "FILE", "write the results as JSON");
  tools::add_option(app, kOutput, "--html", options.html, "FILE", "write the results as a page that needs no network");
  tools::add_flag(app, kOutput, "--verbose", "print every case as it ends");
  tools::add_flag(app, kOutput, "--no-progress", "no progress line, even on a terminal");
  constexpr const char* kOther = "Other";
  tools::add_option(app, kOther, "--timeout", texts.timeout, "TIME", "how long one call may take; default: 20s");
  tools::add_flag(app, kOther, "--list", "print the properties and end");
  tools::add_help(app, kOther, "Usage: colcheck [options]", kExamples);
  tools::add_option(app, "", "--spawned", options.spawned, "TEXT", "");
}

// ---- Words of our own for what the parser would complain about ------------------------------------------------------

// The first of `names` that was given; empty when none was.
template <class Range>
std::string first_given(const CLI::App& app, const Range& names, std::string_view but = {}) {
  for (const auto& name : names) {
    if (name != but && app.count(std::string(name)) > 0) return std::string(name);
  }
  return {};
}

void refuse_with(std::string_view reason, std::string_view other) {
  if (!other.empty()) throw UsageError(fmt::format("{}; leave out {}", reason, other));
}

void check_combinations(const CLI::App& app) {
  for (const std::string& name : tools::option_names(app)) {
    if (app.count(name) > 1) throw UsageError(fmt::format("{} was given twice; give it once", name));
  }
  const std::string effort = first_given(app, kEfforts);
  const std::string second = first_given(app, kEfforts, effort);
  if (!second.empty()) throw UsageError(fmt::format("{} and {} exclude each other; give one of them", effort, second));
  if (app.count("--list") > 0) refuse_with("--list only prints", first_given(app, tools::option_names(app), "--list"));
  if (app.count("--repro") > 0) {
    constexpr std::string_view kReason = "--repro runs the one case that its token describes";
    refuse_with(kReason, first_given(app, kSelecting));
    if (app.count("--self-test") > 0) refuse_with(kReason, "--self-test");
  }
  if (app.count("--self-test") > 0) {
    constexpr std::string_view kReason = "--self-test has cases and a backend of its own";
    refuse_with(kReason, first_given(app, kSelecting, "--seed"));
    refuse_with(kReason, first_given(app, kReports));
    if (app.count("--require") > 0) refuse_with(kReason, "--require");
  }
}

std::string list_text(std::span<const Property* const> known) {
  std::size_t width = 0;
  for (const Property* property : known) width = std::max(width, property->name.size());
  std::string text;
  for (const Property* property : known) {
    const bool fault = property->kind == Property::Kind::fault;
    text += fmt::format("{:<{}}  {}{}\n", property->name, width, property->summary, fault ? " (with --faults)" : "");
  }
  return text;
}

}  // namespace

Request parse_command_line(const std::vector<std::string>& arguments, std::span<const Property* const> known) {
  CLI::App app{"Checks that every collective primitive is right, here, on this machine.", "colcheck"};
  OptionTexts texts;
  Options options;
  define(app, texts, options);

  std::vector<std::string> own = tools::join_values(app, arguments);
  try {
    std::reverse(own.begin(), own.end());  // what CLI11 expects of a vector
    app.parse(own);
  } catch (const CLI::CallForHelp&) {
    return tools::help_of(app);
  } catch (const CLI::CallForVersion& version) {
    return std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  check_combinations(app);
  if (app.count("--list") > 0) return list_text(known);
  options.effort = app.count("--full") > 0 ? Effort::full : Effort::quick;
  options.faults = app.count("--faults") > 0;
  options.self_test = app.count("--self-test") > 0;
  options.verbose = app.count("--verbose") > 0;
  options.progress = app.count("--no-progress") == 0;
  read_texts(texts, known, options);
  return options;
}

}  // namespace col::colcheck
