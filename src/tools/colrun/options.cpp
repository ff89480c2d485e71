#include "colrun/options.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "colrun/job_options.hpp"
#include "colrun/option_values.hpp"
#include "colrun/text_files.hpp"
#include "common/command_line.hpp"
#include "common/text.hpp"

namespace col::colrun {
namespace {

constexpr const char* kUsage =
    "Runs a program as several ranks, on this machine or on several.\n"
    "Usage: colrun [options] [--] program [arguments]";

constexpr const char* kExamples =
    "Examples: colrun -n 4 ./my_trainer --epochs 3\n"
    "          colrun -n 2 -l sh -c 'echo rank $COL_RANK of $COL_WORLD_SIZE'";

constexpr const char* kMore =
    "TIME: 90, 90s, 500ms, 5m, 1h. LIST of ranks: 0,3-5.\n"
    "\n"
    "PATTERN: %r rank, %R the same with zeros in front, %l local rank, %n node rank,\n"
    "%w world size, %h host, %j job id, %g restarts so far, %s stream (out or err),\n"
    "%% a percent sign.\n"
    "\n"
    "Several programs: colrun -n 1 ./server : -n 3 -x ROLE=w ./worker. A lone ':'\n"
    "ends a program and begins the next; '\\:' is an argument that is a colon.\n"
    "\n"
    "Every option is also a variable (--max-restarts 2: COLRUN_MAX_RESTARTS=2; flags:\n"
    "1, 0, yes, no) and a line of the file that --config or COLRUN_CONFIG names\n"
    "(max-restarts = 2). The command line wins over variables, these over the file;\n"
    "--no-FLAG switches off what they have switched on.\n"
    "\n"
    "Exit code: 0 when all ranks return 0, else that of the first rank that failed on\n"
    "its own (128 + signal when a signal killed it); 2 usage, 124 time is up, 125\n"
    "colrun failed, 126 not executable, 127 not found, 141 the output's reader is\n"
    "gone.";

// `default_ranks` is the number of ranks that -n auto gives here.
std::string help_of(Rows rows, HelpExtent extent, int default_ranks) {
  rows.front().text += fmt::format(" (here {})", default_ranks);  // -n
  for (OptionRow& row : rows) {
    // Headings would take the lines that --help has.
    if (extent == HelpExtent::everyday && !row.group.empty()) row.group = "Options of every day";
  }
  return tools::help_text(
      rows, {.tool = "colrun", .head = kUsage, .footer = kMore, .brief = kExamples, .text_column = 30}, extent);
}

std::optional<Text> asked_text(const Values& values, const Surroundings& surroundings) {
  const auto help = [&](HelpExtent extent) { return Text{help_of(values.rows(), extent, surroundings.processors())}; };
  if (values.is_on("--help")) return help(HelpExtent::everyday);
  if (values.is_on("--help-all")) return help(HelpExtent::all);
  if (values.is_on("--version")) return Text{tools::version_line("colrun") + "\n"};
  return std::nullopt;
}

launch::Program read_later_part(const Part& part, const Surroundings& surroundings) {
  launch::Program program{part.command, 1, {}};
  if (const Given* ranks = part.values.find("--np")) {
    if (ranks->text == "auto" || ranks->text == "cpu" || ranks->text == "gpu")
      throw UsageError(ranks->said_as + " " + ranks->text +
                       " is for the first program only: the others share the node with it; write a number");
    program.ranks = ranks_of(ranks->said_as, ranks->text, surroundings);
  }
  for (const Given& given : part.values.all("--env")) program.environment.push_back(rank_variable(given, surroundings));
  return program;
}

// "localhost:0" is torchrun's way to say that one node needs no place to meet.
void drop_no_place(launch::NodesSpec& nodes) {
  const auto endpoint = parse_endpoint(nodes.endpoint);
  if (endpoint && endpoint->port == 0) nodes.endpoint.clear();
}

// Where a scheduler lists the hosts, colrun starts itself there over ssh. Its word on their ranks counts where no -n
// does.
void add_scheduler_hosts(const Values& values, const Surroundings& surroundings, launch::JobSpec& spec) {
  if (!gives_hosts(spec.nodes.scheduler)) return;
  const Given* scheduler = values.find("--scheduler");
  const Given* other = values.first_of({"--host", "--hostfile", "--nnodes", "--rdzv-endpoint", "--master-addr"});
  if (other != nullptr)
    throw UsageError("{} {} and {} both say which nodes there are; give one of them", scheduler->said_as,
                     scheduler->text, other->said_as);
  spec.nodes.hosts = scheduler_hosts(spec.nodes.scheduler, surroundings);
  if (!values.has("--np") && spec.programs.size() == 1) return;
  for (launch::HostSpec& host : spec.nodes.hosts) host.slots.reset();
}

// The hosts' number of ranks replaces -n, and the number of hosts replaces --nnodes.
void apply_hosts(launch::JobSpec& spec) {
  const auto& hosts = spec.nodes.hosts;
  if (hosts.empty()) return;
  spec.nodes.min_nodes = spec.nodes.max_nodes = static_cast<int>(hosts.size());
  const bool all = std::ranges::all_of(hosts, [](const auto& host) { return host.slots.has_value(); });
  if (all) spec.programs.front().ranks = *hosts.front().slots;
}

// Who types into a debugger means the rank in it.
void read_debugger_input(const Values& values, launch::JobSpec& spec) {
  const launch::InspectSpec& inspect = spec.inspect;
  const bool one = !inspect.debugger.empty() && inspect.debug_ranks.size() == 1;
  if (one && !values.has("--stdin")) spec.input = {launch::InputSpec::To::rank, inspect.debug_ranks[0]};
}

// colbench, beside this colrun, with a rank on each node. Of the job there is what says where, in which environment and
// for how long.
launch::JobSpec check_of_nodes(const launch::JobSpec& job) {
  launch::JobSpec check;
  const std::string own = tools::own_path();
  const std::string beside = own.substr(0, own.rfind('/') + 1) + "colbench";
  check.programs.push_back({{::access(beside.c_str(), X_OK) == 0 ? beside : "colbench", "nodes"}, 1, {}});
  if (!job.inspect.json_path.empty()) {
    check.programs.front().command.insert(check.programs.front().command.end(), {"--json", job.inspect.json_path});
  }
  check.nodes = job.nodes;
  for (launch::HostSpec& host : check.nodes.hosts) host.slots.reset();
  check.environment = job.environment;
  check.lifecycle.timeout = job.lifecycle.timeout;
  check.input.to = launch::InputSpec::To::none;
  check.command_line = job.command_line;
  check.output.quiet = true;
  return check;
}

// Into `job`, which the rows of `arguments` refer to.
void read_job(const Arguments& arguments, const Surroundings& surroundings, Job& job) {
  const Settings settings = collect_settings(arguments.parts.front(), surroundings);
  const Values& values = settings.values;
  job.warnings = settings.warnings;
  launch::JobSpec& spec = job.spec;
  spec.programs.push_back({arguments.parts.front().command, 1, {}});
  values.apply();
  // One program alone has as many ranks as the node has processors. Of several, each has one.
  const bool only = arguments.parts.size() == 1;
  if (only && !values.has("--np"))
    spec.programs.front().ranks = std::clamp(surroundings.processors(), 1, launch::kMaxRanks);
  for (std::size_t i = 1; i < arguments.parts.size(); ++i)
    spec.programs.push_back(read_later_part(arguments.parts[i], surroundings));
  if (spec.nodes.endpoint.empty()) spec.nodes.endpoint = read_master(values);
  read_environment(values, surroundings, spec.environment);
  read_debugger_input(values, spec);
  add_scheduler_hosts(values, surroundings, spec);
  check_conflicts(values, surroundings, spec);
  apply_hosts(spec);
  drop_no_place(spec.nodes);

  spec.command_line = {surroundings.self};
  spec.command_line.insert(spec.command_line.end(), settings.command_line.begin(), settings.command_line.end());
  spec.command_line.insert(spec.command_line.end(), arguments.written.begin(), arguments.written.end());
}

Request read_request(const std::vector<std::string>& written, const Surroundings& surroundings) {
  constexpr const char* kAlone = "--agent takes nothing else: colrun starts it by itself on other hosts";
  if (!written.empty() && written.front() == "--agent") {
    if (written.size() > 1) throw UsageError(kAlone);
    return Agent{};
  }
  Job job;
  job.spec.environment.pmi = true;
  const Rows rows = option_rows(job.spec, surroundings);
  if (written == std::vector<std::string>{std::string(tools::kListOptions)})
    return Text{tools::listed_options(rows, {"<command>"})};
  const Arguments arguments = take_apart(written, rows);
  const Part& first = arguments.parts.front();
  if (auto text = asked_text(first.values, surroundings)) return *std::move(text);
  if (first.values.has("--agent")) throw UsageError(kAlone);
  // The line of the job may follow, or not.
  const bool checks = first.values.is_on("--check-nodes");
  for (const Part& part : arguments.parts) {
    if (checks) break;
    if (part.command.empty() || part.command.front().empty())
      throw UsageError("no program to run: colrun [options] program [arguments]");
  }
  read_job(arguments, surroundings, job);
  if (checks) job.spec = check_of_nodes(job.spec);
  return job;
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
