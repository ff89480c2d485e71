#include "colrun/options.hpp"

#include <algorithm>
#include <optional>

#include "colrun/arguments.hpp"
#include "colrun/conflicts.hpp"
#include "colrun/help.hpp"
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/settings.hpp"
#include "common/text.hpp"
#include "common/version.hpp"

namespace col::colrun {
namespace {

std::optional<Text> asked_text(const Values& values, const Surroundings& surroundings) {
  if (values.is_on(Option::help)) return Text{help_text(HelpExtent::everyday, surroundings.processors())};
  if (values.is_on(Option::help_all)) return Text{help_text(HelpExtent::all, surroundings.processors())};
  if (values.is_on(Option::version)) return Text{tools::version_line("colrun") + "\n"};
  return std::nullopt;
}

// Of one program alone: as many ranks as the node has processors. Of several: one each.
int ranks_of_part(const Values& values, bool only, const Surroundings& surroundings) {
  if (const Given* given = values.find(Option::ranks_per_node)) return ranks_of(*given, surroundings);
  return only ? std::clamp(surroundings.processors(), 1, launch::kMaxRanks) : 1;
}

launch::Program read_later_part(const Part& part, const Surroundings& surroundings) {
  const Given* ranks = part.values.find(Option::ranks_per_node);
  if (ranks != nullptr && (ranks->text == "auto" || ranks->text == "cpu" || ranks->text == "gpu"))
    throw UsageError(ranks->said_as + " " + ranks->text +
                     " is for the first program only: the others share the node with it; write a number");
  launch::Program program{part.command, ranks_of_part(part.values, false, surroundings), {}};
  for (const Given& given : part.values.all(Option::env))
    program.environment.push_back(rank_variable(given, surroundings));
  return program;
}

// "localhost:0" is torchrun's way to say that one node needs no place to meet.
void drop_no_place(launch::NodesSpec& nodes) {
  const auto endpoint = parse_endpoint(nodes.endpoint);
  if (endpoint && endpoint->port == 0) nodes.endpoint.clear();
}

// The hosts' number of ranks replaces -n, and the number of hosts replaces --nnodes.
void apply_hosts(launch::JobSpec& spec) {
  const auto& hosts = spec.nodes.hosts;
  if (hosts.empty()) return;
  spec.nodes.min_nodes = spec.nodes.max_nodes = static_cast<int>(hosts.size());
  const bool all = std::all_of(hosts.begin(), hosts.end(), [](const auto& host) { return host.slots.has_value(); });
  if (all) spec.programs.front().ranks = *hosts.front().slots;
}

Job read_job(const Arguments& arguments, const Surroundings& surroundings) {
  Settings settings = collect_settings(arguments.parts.front().values, surroundings);
  const Values& values = settings.values;
  Job job{{}, std::move(settings.warnings)};
  launch::JobSpec& spec = job.spec;
  const bool only = arguments.parts.size() == 1;
  spec.programs.push_back({arguments.parts.front().command, ranks_of_part(values, only, surroundings), {}});
  for (std::size_t i = 1; i < arguments.parts.size(); ++i)
    spec.programs.push_back(read_later_part(arguments.parts[i], surroundings));
  for (const OptionRow& row : option_rows()) {
    for (const Given& given : values.all(row)) {
      if (row.read != nullptr && !(row.is_flag() && given.text != "1")) row.read(given, spec);
    }
  }
  read_meeting_place(values, spec.nodes);
  read_environment(values, surroundings, spec.environment);
  read_debugger_input(values, spec);
  check_conflicts(values, surroundings, spec);
  apply_hosts(spec);
  drop_no_place(spec.nodes);

  spec.command_line = {surroundings.self};
  spec.command_line.insert(spec.command_line.end(), settings.command_line.begin(), settings.command_line.end());
  spec.command_line.insert(spec.command_line.end(), arguments.written.begin(), arguments.written.end());
  return job;
}

Request read_request(const std::vector<std::string>& written, const Surroundings& surroundings) {
  const std::string_view agent = row_of(Option::agent).first_name();
  if (!written.empty() && written.front() == agent) {
    if (written.size() > 1) throw UsageError("--agent takes nothing else: colrun starts it by itself on other hosts");
    return Agent{};
  }
  const Arguments arguments = take_apart(written);
  const Part& first = arguments.parts.front();
  if (auto text = asked_text(first.values, surroundings)) return *std::move(text);
  if (first.values.has(Option::agent))
    throw UsageError("--agent takes nothing else: colrun starts it by itself on other hosts");
  for (const Part& part : arguments.parts) {
    if (part.command.empty() || part.command.front().empty())
      throw UsageError("no program to run: colrun [options] program [arguments]");
  }
  return read_job(arguments, surroundings);
}

}  // namespace

Request parse_options(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  try {
    return read_request(arguments, surroundings);
  } catch (const UsageError& error) {
    throw UsageError(tools::one_line(error.what()));  // with what the user wrote in it, whatever that was
  }
}

}  // namespace col::colrun
