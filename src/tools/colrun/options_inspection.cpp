// Looking at a job, and breaking it on purpose.
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/read_value.hpp"

namespace col::colrun {
namespace {

void read_debugger(const Values& values, launch::JobSpec& spec) {
  launch::InspectSpec& inspect = spec.inspect;
  if (const Given* given = values.find(Option::debugger)) {
    const auto words = parse_words(given->text);
    if (!words) refuse(*given, "a command such as 'gdb --args', with closed quotes");
    inspect.debugger = *words;
    inspect.debug_ranks = {0};
  }
  if (const Given* given = values.find(Option::debug_ranks)) {
    const auto ranks = parse_numbers(given->text, kMaxRank);
    if (!ranks) refuse(*given, "ranks such as 2 or 0,3-5");
    inspect.debug_ranks = *ranks;
  }
  // Who types into a debugger means that one.
  const bool one = !inspect.debugger.empty() && inspect.debug_ranks.size() == 1;
  if (one && !values.has(Option::standard_input)) spec.input = {launch::InputSpec::To::rank, inspect.debug_ranks[0]};
}

}  // namespace

void read_inspection(const Values& values, launch::JobSpec& spec) {
  launch::InspectSpec& inspect = spec.inspect;
  inspect.dry_run = values.is_on(Option::dry_run);
  if (const Given* given = values.find(Option::display))
    inspect.display_map = read_one_of<bool>(*given, {{"map", true}});
  inspect.report_bindings = values.is_on(Option::report_bindings);
  inspect.print_environment = values.is_on(Option::print_env);
  inspect.report = values.is_on(Option::report);
  inspect.stacks_on_failure = values.is_on(Option::stacks_on_failure);
  inspect.stacks_on_timeout = values.is_on(Option::stacks_on_timeout);
  if (const Given* given = values.find(Option::json)) inspect.json_path = given->text;
  read_debugger(values, spec);
  for (const Given& given : values.all(Option::inject)) {
    const auto injection = parse_injection(given.text);
    if (!injection) refuse(given, "kill:RANK@TIME, stop:RANK@TIME+TIME or slow:RANKxFACTOR, such as kill:3@2s");
    spec.injections.push_back(*injection);
  }
}

}  // namespace col::colrun
