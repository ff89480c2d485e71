#include "colrun/job_options.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "colrun/option_values.hpp"
#include "colrun/text_files.hpp"
#include "common/numbers.hpp"
#include "common/option_readers.hpp"
#include "common/option_values.hpp"
#include "launch/job/assignment.hpp"
#include "launch/nodes/rendezvous.hpp"

namespace col::colrun {
namespace {

using launch::Milliseconds;
using tools::added_to, tools::as_written, tools::becomes, tools::completed, tools::into, tools::number_between,
    tools::one_of;
using tools::parsed_by, tools::read_number, tools::refuse, tools::Word;

constexpr Milliseconds kNone{0};
constexpr Milliseconds kShortest{1};
constexpr int kMaxGpus = 64;

// ---- How values are read. All throw UsageError with the option's name ----------------------------------------------

auto time_from(Milliseconds least) {
  return [=](Word& option, Word& text) {
    const auto time = parse_time(text);
    if (!time || *time < least)
      refuse(option, text,
             fmt::format("a time such as 90, 90s, 500ms, 5m or 1h{}", least.count() > 0 ? ", more than 0" : ""));
    return *time;
  };
}

auto ranks_such_as(std::string_view example) {
  return parsed_by([](std::string_view text) { return tools::parse_numbers(text, 0, kMaxRank); }, example);
}

// A pattern of assignment.hpp, which is `text` or its end.
std::string read_pattern(Word& option, Word& text, std::string pattern) {
  if (const auto why = launch::why_no_pattern(pattern)) throw UsageError("{} '{}': {}", option, text, *why);
  return pattern;
}

std::string read_label(Word& option, Word& text) {
  return read_pattern(option, text, text);
}

std::string read_file_pattern(Word& option, Word& text) {
  constexpr std::string_view kFile = "file=";
  if (!text.starts_with(kFile) || text.size() == kFile.size())
    refuse(option, text, "file=PATTERN, such as file=run/%R.%s");
  return read_pattern(option, text, text.substr(kFile.size()));
}

launch::InputSpec read_input(Word& option, Word& text) {
  using To = launch::InputSpec::To;
  if (text == "all") return {To::all, 0};
  if (text == "none") return {To::none, 0};
  const auto rank = tools::parse_whole_number(std::string_view(text), 0, kMaxRank);
  if (!rank) refuse(option, text, "a rank, all or none");
  return {To::rank, *rank};
}

std::string read_endpoint(Word& option, Word& text) {
  const auto endpoint = parse_endpoint(text);
  if (!endpoint) refuse(option, text, "host or host:port with a port up to 65535 ([…] around an IPv6 address)");
  return endpoint->text();
}

void read_binding(Word& option, Word& text, launch::BindingSpec& binding) {
  using To = launch::BindingSpec::To;
  constexpr std::string_view kList = "list:";
  if (text.starts_with(kList)) {
    const auto lists = parse_processor_lists(std::string_view(text).substr(kList.size()));
    if (!lists) refuse(option, text, "list: and processors for each rank, such as 'list:0-1;2,3'");
    binding.to = To::list;
    binding.lists = *lists;
    return;
  }
  const std::pair<std::string_view, To> known[] = {
      {"auto", To::automatic}, {"none", To::none}, {"core", To::core}, {"numa", To::numa}};
  const auto found = std::ranges::find(known, text, &std::pair<std::string_view, To>::first);
  // What mpirun has beside these.
  if (text == "socket" || text == "package" || text == "l3cache" || text == "hwthread" || text == "board")
    throw UsageError("{} {}: colrun's words are numa, the processors of one NUMA node (mostly a socket), and core",
                     option, text);
  if (found == std::end(known)) refuse(option, text, "auto, none, core, numa or a list such as 'list:0-1;2-3'");
  binding.to = found->second;
}

std::string read_removal(Word& option, Word& text) {
  std::string_view name = text;
  if (name.ends_with('*')) name.remove_suffix(1);
  const bool good = (name.empty() || is_variable_name(name)) && name.find('*') == std::string_view::npos;
  if (!good) refuse(option, text, "the name of a variable, or NAME* for all that begin with NAME");
  return text;
}

// Who a rank is, colrun alone can know.
constexpr std::string_view kOwn[] = {
    "COL_RANK",
    "COL_SPARE",
    "COL_WORLD_SIZE",
    "COL_LOCAL_RANK",
    "COL_LOCAL_WORLD_SIZE",
    "COL_NODE_RANK",
    "COL_NNODES",
    "COL_JOB_ID",
    "COL_CONTROL",
    "COL_RESTART_COUNT",
    "COL_ERROR_FILE",
    "COL_TRACE_DIRECTORY",
    "COL_EPOCH_FILE",
    "COL_STORE",
    "COL_STORE_TOKEN",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "GROUP_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_ERROR_FILE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI_FD",
};

void check_name(Word& said_as, std::string_view name) {
  if (!is_variable_name(name))
    throw UsageError("{} takes NAME=VALUE, and '{}' is no name of a variable", said_as, name);
  if (std::ranges::count(kOwn, name) > 0)
    throw UsageError("{}: colrun sets {} itself, for each rank; choose another name", said_as, name);
}

std::string read_rank_variable(Word& option, Word& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) refuse(option, text, "NAME=PATTERN, such as CORE=%l");
  check_name(option, std::string_view(text).substr(0, equals));
  const std::string pattern = read_pattern(option, text, text.substr(equals + 1));
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] == '%' && pattern[++i] == 's')
      throw UsageError("{} '{}': %s is for names of files; a variable belongs to both streams", option, text);
  }
  return text;
}

// ---- The rows -------------------------------------------------------------------------------------------------------

constexpr HelpExtent kAll = HelpExtent::all;
constexpr HelpExtent kEveryday = HelpExtent::everyday;
constexpr bool kRepeats = true;

Rows node_rows(launch::JobSpec& job, const Surroundings& surroundings) {
  using launch::Scheduler;
  constexpr std::string_view kGroup = "Ranks and nodes";
  launch::NodesSpec& nodes = job.nodes;
  const auto set_ranks = [&](Word& option, Word& text) {
    job.programs.front().ranks = ranks_of(option, text, surroundings);
  };
  const auto set_counts = [&](Word& option, Word& text) {
    const auto read = parsed_by(launch::parse_node_counts, "a number of nodes, or MIN:MAX");
    std::tie(nodes.min_nodes, nodes.max_nodes) = read(option, text);
  };
  const auto set_listed_hosts = [&](Word&, Word& path) {
    if (nodes.hosts.empty()) nodes.hosts = parse_hostfile(read_text(path), path);
  };
  return {
      {kGroup, "-n,--np,--nproc-per-node", "N", "ranks: N, auto, cpu, gpu; default: auto",
       completed(set_ranks, {"auto", "cpu", "gpu"})},
      {kGroup, "--nnodes", "N|MIN:MAX", "how many nodes; start colrun on each of them", set_counts},
      {kGroup, "--node-rank", "R", "this node's number; default: by order of arrival",
       into(nodes.node_rank, number_between(0, launch::kMaxNodes - 1)), kAll},
      {kGroup, "--rdzv-endpoint", "HOST:PORT", "where they meet: node 0's address and a free port",
       into(nodes.endpoint, read_endpoint)},
      {kGroup, "--rdzv-id", "ID", "the job's name: nodes of another one are refused",
       into(nodes.rendezvous_id, as_written), kAll},
      {kGroup, "--rdzv-timeout", "TIME", "how long nodes wait for one another; default: 10m",
       into(nodes.rendezvous_timeout, time_from(kShortest)), kAll},
      {kGroup, "--rdzv-backend", "NAME", "static or c10d, as torchrun has it; they are one here",
       completed(one_of<bool>({{"static", true}, {"c10d", true}}), {"static", "c10d"}), kAll},
      {kGroup, "--master-addr", "HOST", "with --master-port: the same as --rdzv-endpoint", {}, kAll},
      {kGroup, "--master-port", "PORT", "see --master-addr; one node needs none", {}, kAll},
      {kGroup, "--standalone", "", "one node, whatever a scheduler says", becomes(nodes.scheduler, Scheduler::none),
       kAll},
      {kGroup, "--scheduler", "NAME", "whose word on nodes counts: auto, none, slurm, k8s, pbs, lsf",
       into(nodes.scheduler, one_of<Scheduler>({{"auto", Scheduler::automatic},
                                                {"none", Scheduler::none},
                                                {"slurm", Scheduler::slurm},
                                                {"k8s", Scheduler::kubernetes},
                                                {"pbs", Scheduler::pbs},
                                                {"lsf", Scheduler::lsf}})),
       kAll},
      {kGroup, "-H,--host", "LIST", "start on hosts over ssh: a:4,ada@b (4 ranks on a)",
       completed(into(nodes.hosts, parse_host_list), {"<host>"})},
      {kGroup, "--hostfile", "FILE", "the same from a file: one host a line, 'b slots=4'", set_listed_hosts, kAll},
      {kGroup, "--ssh", "COMMAND", "how hosts are reached: 'ssh -p 2222'; default: ssh",
       into(nodes.ssh, parsed_by(parse_words, "a command such as 'ssh -p 2222', with closed quotes")), kAll},
  };
}

Rows binding_rows(launch::JobSpec& job) {
  using MapBy = launch::BindingSpec::MapBy;
  constexpr std::string_view kGroup = "Processors and devices";
  launch::BindingSpec& binding = job.binding;
  const auto set_binding = [&](Word& option, Word& text) { read_binding(option, text, binding); };
  return {
      {kGroup, "--bind-to", "WHAT", "auto, none, core, numa, or list:0-1;2-3 (by rank); default: auto",
       completed(set_binding, {"auto", "none", "core", "numa", "list:"}), kAll},
      {kGroup, "--map-by", "WHAT", "core: fill one NUMA node after the other; numa: take turns",
       into(binding.map_by, one_of<MapBy>({{"core", MapBy::core}, {"numa", MapBy::numa}})), kAll},
      {kGroup, "--report-bindings", "", "say which processors each rank may use",
       becomes(job.inspect.report_bindings, true), kAll},
      {kGroup, "--gpus-per-rank", "K", "each rank sees K GPUs of its own",
       into(binding.gpus_per_rank, number_between(0, kMaxGpus))},
  };
}

Rows output_rows(launch::JobSpec& job) {
  constexpr std::string_view kGroup = "Output and input";
  launch::OutputSpec& output = job.output;
  return {
      {kGroup, "-l,--label", "", "begin every line with its rank: [3] line",
       becomes(output.label, std::string("[%r] "))},
      {kGroup, "--label-format", "PATTERN", "begin every line with this: '%h/%l: '", into(output.label, read_label),
       kAll},
      {kGroup, "--timestamp", "", "begin every line with the time", becomes(output.timestamps, true), kAll},
      {kGroup, "--output", "file=PATTERN", "to files: file=run/%R.%s (letters: --help-all)",
       completed(into(output.file_pattern, read_file_pattern), {"file="})},
      {kGroup, "--tee", "", "with --output: to the console as well", becomes(output.tee, true), kAll},
      {kGroup, "--ranks", "LIST", "show the output of these ranks only: 0,3-5",
       into(output.console_ranks, ranks_such_as("ranks such as 0,3-5"))},
      {kGroup, "--merge", "", "stderr of a rank joins its stdout, in the order written", becomes(output.merge, true),
       kAll},
      {kGroup, "--stdin", "WHO", "who reads standard input: a rank, all, none; default: 0",
       completed(into(job.input, read_input), {"0", "all", "none"}), kAll},
      {kGroup, "-q,--quiet", "", "say nothing of what goes as planned", becomes(output.quiet, true), kAll},
      {kGroup, "--pty", "", "ranks write to a pseudo-terminal, as if nothing were between", becomes(output.pty, true),
       kAll},
      {kGroup, "-u,--unbuffered", "", "set PYTHONUNBUFFERED=1: Python's output comes at once", {}, kAll},
  };
}

Rows lifecycle_rows(launch::JobSpec& job) {
  using launch::ExitPolicy;
  constexpr std::string_view kGroup = "Beginning and end";
  launch::LifecycleSpec& life = job.lifecycle;
  const auto set_spares = [&](Word& option, Word& text) {
    life.spares = number_between(0, launch::kMaxRanks)(option, text);
    life.keep_going = life.keep_going || life.spares > 0;
  };
  const auto set_elastic = [&](Word& option, Word& text) {
    const auto read = parsed_by(launch::parse_node_counts, "MIN:MAX, two numbers of ranks such as 2:8");
    std::tie(life.min_ranks, life.max_ranks) = read(option, text);
    life.keep_going = true;
  };
  return {
      {kGroup, "--timeout", "TIME", "end the job after 90, 90s, 5m or 1h; exit code 124",
       into(life.timeout, time_from(kShortest))},
      {kGroup, "--start-timeout", "TIME", "end it when not all ranks have been started by then",
       into(life.start_timeout, time_from(kShortest)), kAll},
      {kGroup, "--exit-timeout", "TIME", "end it so long after the first rank returned 0",
       into(life.exit_timeout, time_from(kShortest)), kAll},
      {kGroup, "--grace", "TIME", "from SIGTERM to SIGKILL when a job is ended; default: 5s",
       into(life.grace, time_from(kNone)), kAll},
      {kGroup, "--term-grace", "TIME", "the same when colrun itself was told to end; default: 25s",
       into(life.term_grace, time_from(kNone)), kAll},
      {kGroup, "--max-restarts", "N", "when a rank fails, start all again, up to N times",
       into(life.max_restarts, number_between(0, 1'000'000))},
      {kGroup, "--keep-going", "", "a rank that fails does not end the others", becomes(life.keep_going, true), kAll},
      {kGroup, "--spares", "N", "N processes more on each node: they wait for renew() to take them in", set_spares,
       kAll},
      {kGroup, "--elastic", "MIN:MAX", "start lost ranks again, each --max-restarts times, for renew()", set_elastic,
       kAll},
      {kGroup, "--exit-policy", "WHOSE", "exit code: of the first rank to fail, max, or rank0",
       into(life.exit_policy,
            one_of<ExitPolicy>({{"first", ExitPolicy::first}, {"max", ExitPolicy::max}, {"rank0", ExitPolicy::rank0}})),
       kAll},
  };
}

Rows environment_rows(launch::JobSpec& job) {
  constexpr std::string_view kGroup = "Environment";
  launch::EnvironmentSpec& environment = job.environment;
  return {
      {kGroup, "-x,--env", "NAME[=VALUE]", "a variable for the ranks; may be repeated", completed({}, {"<variable>"}),
       kEveryday, kRepeats},
      {kGroup, "--env-file", "FILE", "variables from a file of NAME=value lines", {}, kAll, kRepeats},
      {kGroup, "--env-remove", "NAME", "a variable that ranks do not get; NAME* for all that begin so",
       completed(added_to(environment.remove, read_removal), {"<variable>"}), kAll, kRepeats},
      {kGroup, "--rank-env", "NAME=PATTERN", "one that differs from rank to rank: CORE=%l",
       added_to(environment.per_rank, read_rank_variable), kAll, kRepeats},
      {kGroup, "--compat", "mpi", "set OMPI_COMM_WORLD_* and PMI_* as well",
       into(environment.mpi_names, one_of<bool>({{"mpi", true}})), kAll},
  };
}

Rows inspection_rows(launch::JobSpec& job) {
  constexpr std::string_view kGroup = "Inspection";
  constexpr std::string_view kDrills = "Drills";
  launch::InspectSpec& inspect = job.inspect;
  const auto set_debugger = [&](Word& option, Word& text) {
    inspect.debugger = parsed_by(parse_words, "a command such as 'gdb --args', with closed quotes")(option, text);
    inspect.debug_ranks = {0};
  };
  const auto set_metrics = [&](Word& option, Word& text) {
    const auto read = parsed_by(parse_local_endpoint, ":PORT, ADDRESS:PORT or *:PORT, such as :9400");
    const launch::Endpoint endpoint = read(option, text);
    inspect.metrics_host = endpoint.host;
    inspect.metrics_port = endpoint.port;
  };
  const auto injection =
      parsed_by(parse_injection, "kill:RANK@TIME, stop:RANK@TIME+TIME or slow:RANKxFACTOR, such as kill:3@2s");
  return {
      // Read before all else: options.cpp.
      {kGroup, "--check-nodes", "", "in place of a job: measure the nodes, mark the odd one", {}, kAll},
      {kGroup, "--dry-run", "", "say what would be started, start nothing", becomes(inspect.dry_run, true)},
      {kGroup, "--display", "map", "say what is started where, and start it",
       into(inspect.display_map, one_of<bool>({{"map", true}})), kAll},
      {kGroup, "--print-env", "", "print each rank's environment, start nothing",
       becomes(inspect.print_environment, true), kAll},
      {kGroup, "--report", "", "times of ranks and calls; who held up the others", becomes(inspect.report, true)},
      {kGroup, "--watch", "", "a live view of the ranks meanwhile; their output comes after it",
       becomes(inspect.watch, true), kAll},
      {kGroup, "--json", "FILE", "the final report as JSON; -: to stdout", into(inspect.json_path, as_written)},
      {kGroup, "--trace", "FILE", "a timeline of all calls, for ui.perfetto.dev", into(inspect.trace_path, as_written),
       kAll},
      {kGroup, "--trace-limit", "BYTES", "the most that file may have; default: 256M",
       into(inspect.trace_bytes, parsed_by(parse_bytes, "a number of bytes such as 64M or 1G")), kAll},
      {kGroup, "--metrics", "[HOST]:PORT", "a page for Prometheus; default host 127.0.0.1", set_metrics, kAll},
      {kGroup, "--report-hang", "TIME", "say who waits for whom when a rank has waited so long, and again",
       into(inspect.report_hang, time_from(kShortest)), kAll},
      {kGroup, "--stacks-on-failure", "", "stacks of the other ranks when one fails",
       becomes(inspect.stacks_on_failure, true)},
      {kGroup, "--stacks-on-timeout", "", "stacks of all ranks when time is up",
       becomes(inspect.stacks_on_timeout, true), kAll},
      {kGroup, "--debugger", "COMMAND", "run ranks under this: 'gdb --args'", set_debugger, kAll},
      {kGroup, "--debug-ranks", "LIST", "which of them; default: 0",
       into(inspect.debug_ranks, ranks_such_as("ranks such as 2 or 0,3-5")), kAll},
      {kDrills, "--inject", "FAULT", "kill:3@2s, stop:1@1s+5s, slow:1x4; may be repeated",
       completed(added_to(job.injections, injection), {"kill:", "stop:", "slow:"}), kAll, kRepeats},
  };
}

void add_env_files(const Values& values, Source source, std::vector<std::string>& set) {
  for (const Given& given : values.all("--env-file")) {
    if (given.source != source) continue;
    for (std::string& variable : parse_env_file(read_text(given.text), given.text)) {
      check_name(fmt::format("{} {}", given.said_as, given.text),
                 std::string_view(variable).substr(0, variable.find('=')));
      set.push_back(std::move(variable));
    }
  }
}

}  // namespace

Rows option_rows(launch::JobSpec& job, const Surroundings& surroundings) {
  Rows rows;
  for (const Rows& group : {node_rows(job, surroundings), binding_rows(job), output_rows(job), lifecycle_rows(job),
                            environment_rows(job), inspection_rows(job)})
    rows.insert(rows.end(), group.begin(), group.end());
  rows.push_back({tools::kOther, "--config", "FILE", "options from a file of 'option = value' lines", {}, kAll});
  rows.push_back({tools::kOther, "-h,--help", "", "print the options of every day", {}, kAll});
  rows.push_back({tools::kOther, "--help-all", "", "print all options", {}, kAll});
  rows.push_back({tools::kOther, "--version", "", "print the version", {}, kAll});
  rows.push_back({"", "--agent", "", "started by another colrun, over ssh"});
  return rows;
}

int ranks_of(const std::string& option, const std::string& text, const Surroundings& surroundings) {
  if (text == "auto" || text == "cpu") return std::clamp(surroundings.processors(), 1, launch::kMaxRanks);
  if (text == "gpu") {
    const int gpus = surroundings.gpus();
    if (gpus > 0) return std::min(gpus, launch::kMaxRanks);
    throw UsageError("{} gpu: there is no GPU to be seen here; write a number of ranks", option);
  }
  const auto ranks = tools::parse_whole_number(std::string_view(text), 1, launch::kMaxRanks);
  if (!ranks) refuse(option, text, fmt::format("a whole number from 1 to {}, auto, cpu or gpu", launch::kMaxRanks));
  return *ranks;
}

std::string rank_variable(const Given& given, const Surroundings& surroundings) {
  const std::size_t equals = given.text.find('=');
  const std::string name = given.text.substr(0, equals);
  check_name(given.said_as, name);
  if (equals != std::string::npos) return given.text;
  if (const auto value = surroundings.find(name)) return fmt::format("{}={}", name, *value);
  throw UsageError("{} {}: the variable is not set here; write {} {}=VALUE", given.said_as, name, given.said_as, name);
}

std::string read_master(const Values& values) {
  const Given* address = values.find("--master-addr");
  const Given* port = values.find("--master-port");
  const int number = port == nullptr ? 0 : read_number(port->said_as, port->text, 1, 65'535);
  if (address == nullptr || port == nullptr) return {};
  const bool bare_ipv6 = address->text.find(':') != std::string::npos && address->text[0] != '[';
  const auto endpoint =
      parse_endpoint(fmt::format("{}{}{}:{}", bare_ipv6 ? "[" : "", address->text, bare_ipv6 ? "]" : "", number));
  if (!endpoint) refuse(address->said_as, address->text, "a host or an address");
  return endpoint->text();
}

void read_environment(const Values& values, const Surroundings& surroundings, launch::EnvironmentSpec& environment) {
  // First, so that -x can say otherwise.
  if (values.is_on("--unbuffered")) environment.set.emplace_back("PYTHONUNBUFFERED=1");
  for (const Source source : {Source::config_file, Source::environment, Source::command_line}) {
    add_env_files(values, source, environment.set);
    for (const Given& given : values.all("--env")) {
      if (given.source == source) environment.set.push_back(rank_variable(given, surroundings));
    }
  }
}

}  // namespace col::colrun
