// Looking at a job, and breaking it on purpose.
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/read_value.hpp"

namespace col::colrun {
namespace {

using launch::JobSpec;

void read_debugger(const Given& given, JobSpec& job) {
  const auto words = parse_words(given.text);
  if (!words) refuse(given, "a command such as 'gdb --args', with closed quotes");
  job.inspect.debugger = *words;
  job.inspect.debug_ranks = {0};
}

void read_debug_ranks(const Given& given, JobSpec& job) {
  const auto ranks = parse_numbers(given.text, kMaxRank);
  if (!ranks) refuse(given, "ranks such as 2 or 0,3-5");
  job.inspect.debug_ranks = *ranks;
}

void read_injection(const Given& given, JobSpec& job) {
  const auto injection = parse_injection(given.text);
  if (!injection) refuse(given, "kill:RANK@TIME, stop:RANK@TIME+TIME or slow:RANKxFACTOR, such as kill:3@2s");
  job.injections.push_back(*injection);
}

}  // namespace

std::vector<OptionRow> inspection_rows() {
  using enum OptionRow::Takes;
  using enum OptionRow::Shown;
  return {
      {"--dry-run", "", nothing, everyday, "say what would be started, start nothing",
       [](const Given&, JobSpec& job) { job.inspect.dry_run = true; }},
      {"--display", "map", value, all, "say what is started where, and start it",
       [](const Given& given, JobSpec& job) {
         job.inspect.display_map = read_one_of<bool>(given, {{"map", true}});
       }},
      {"--print-env", "", nothing, all, "print each rank's environment, start nothing",
       [](const Given&, JobSpec& job) { job.inspect.print_environment = true; }},
      {"--report", "", nothing, everyday, "times and memory of each rank at the end, in any case",
       [](const Given&, JobSpec& job) { job.inspect.report = true; }},
      {"--json", "FILE", value, everyday, "the final report as JSON; -: to stdout",
       [](const Given& given, JobSpec& job) { job.inspect.json_path = given.text; }},
      {"--stacks-on-failure", "", nothing, everyday, "stacks of the other ranks when one fails",
       [](const Given&, JobSpec& job) { job.inspect.stacks_on_failure = true; }},
      {"--stacks-on-timeout", "", nothing, all, "stacks of all ranks when time is up",
       [](const Given&, JobSpec& job) { job.inspect.stacks_on_timeout = true; }},
      {"--debugger", "COMMAND", value, all, "run ranks under this: 'gdb --args'", read_debugger, Option::debugger},
      {"--debug-ranks", "LIST", value, all, "which of them; default: 0", read_debug_ranks, Option::debug_ranks},
  };
}

std::vector<OptionRow> drill_rows() {
  using enum OptionRow::Takes;
  using enum OptionRow::Shown;
  return {
      {"--inject", "FAULT", values, all, "kill:3@2s, stop:1@1s+5s, slow:1x4; may be repeated", read_injection,
       Option::inject},
  };
}

void read_debugger_input(const Values& values, JobSpec& spec) {
  const launch::InspectSpec& inspect = spec.inspect;
  const bool one = !inspect.debugger.empty() && inspect.debug_ranks.size() == 1;
  if (one && !values.has(Option::standard_input)) spec.input = {launch::InputSpec::To::rank, inspect.debug_ranks[0]};
}

}  // namespace col::colrun
