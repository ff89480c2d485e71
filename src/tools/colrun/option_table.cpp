#include "colrun/option_table.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <col/select.hpp>

namespace col::colrun {
namespace {

using enum OptionRow::Takes;
using enum OptionRow::Shown;
using enum Option;

constexpr std::string_view kRanks = "Ranks and nodes";
constexpr std::string_view kProcessors = "Processors and devices";
constexpr std::string_view kOutput = "Output and input";
constexpr std::string_view kLife = "Beginning and end";
constexpr std::string_view kEnvironment = "Environment";
constexpr std::string_view kInspection = "Inspection";
constexpr std::string_view kDrills = "Drills";
constexpr std::string_view kOther = "Other";

constexpr std::array kRows = {
    OptionRow{ranks_per_node, "-n,--np,--nproc-per-node", "N", value, everyday, kRanks,
              "ranks per node: number, auto, cpu, gpu; default: auto"},
    OptionRow{nnodes, "--nnodes", "N|MIN:MAX", value, everyday, kRanks, "how many nodes; start colrun on each of them"},
    OptionRow{node_rank, "--node-rank", "R", value, all, kRanks, "this node's number; default: by order of arrival"},
    OptionRow{rdzv_endpoint, "--rdzv-endpoint", "HOST:PORT", value, everyday, kRanks,
              "where they meet: an address of node 0 and a free port"},
    OptionRow{rdzv_id, "--rdzv-id", "ID", value, all, kRanks, "the job's name: nodes of another one are refused"},
    OptionRow{rdzv_timeout, "--rdzv-timeout", "TIME", value, all, kRanks,
              "how long nodes wait for one another; default: 10m"},
    OptionRow{rdzv_backend, "--rdzv-backend", "NAME", value, all, kRanks,
              "static or c10d, as torchrun has it; they are one here"},
    OptionRow{master_addr, "--master-addr", "HOST", value, all, kRanks,
              "with --master-port: the same as --rdzv-endpoint"},
    OptionRow{master_port, "--master-port", "PORT", value, all, kRanks, "see --master-addr; one node needs none"},
    OptionRow{standalone, "--standalone", "", nothing, all, kRanks, "one node, whatever a scheduler says"},
    OptionRow{scheduler, "--scheduler", "NAME", value, all, kRanks,
              "whose word on nodes counts: auto, none, slurm, k8s; default: auto"},
    OptionRow{host, "-H,--host", "LIST", value, everyday, kRanks,
              "start on these hosts over ssh: a:4,ada@b (a gets 4 ranks)"},
    OptionRow{hostfile, "--hostfile", "FILE", value, all, kRanks, "the same from a file: one host a line, 'b slots=4'"},
    OptionRow{ssh, "--ssh", "COMMAND", value, all, kRanks, "how hosts are reached: 'ssh -p 2222'; default: ssh"},

    OptionRow{bind_to, "--bind-to", "WHAT", value, everyday, kProcessors,
              "none, core, numa, or list:0-1;2-3 (by rank); default: none"},
    OptionRow{map_by, "--map-by", "WHAT", value, all, kProcessors,
              "core: fill one NUMA node after the other; numa: take turns"},
    OptionRow{report_bindings, "--report-bindings", "", nothing, all, kProcessors,
              "say which processors each rank may use"},
    OptionRow{gpus_per_rank, "--gpus-per-rank", "K", value, everyday, kProcessors,
              "each rank sees K GPUs of its own (CUDA_VISIBLE_DEVICES)"},

    OptionRow{label, "-l,--label", "", nothing, everyday, kOutput, "begin every line with its rank: [3] line"},
    OptionRow{label_format, "--label-format", "PATTERN", value, all, kOutput, "begin every line with this: '%h/%l: '"},
    OptionRow{timestamp, "--timestamp", "", nothing, everyday, kOutput, "begin every line with the time"},
    OptionRow{output, "--output", "file=PATTERN", value, everyday, kOutput,
              "output goes to files: file=run/%R.%s (letters: --help-all)"},
    OptionRow{tee, "--tee", "", nothing, everyday, kOutput, "with --output: to the console as well"},
    OptionRow{console_ranks, "--ranks", "LIST", value, everyday, kOutput, "show the output of these ranks only: 0,3-5"},
    OptionRow{merge, "--merge", "", nothing, all, kOutput, "stderr of a rank joins its stdout, in the order written"},
    OptionRow{standard_input, "--stdin", "WHO", value, everyday, kOutput,
              "who reads standard input: a rank, all, none; default: 0"},
    OptionRow{pty, "--pty", "", nothing, all, kOutput, "ranks write to a pseudo-terminal, as if nothing were between"},
    OptionRow{unbuffered, "-u,--unbuffered", "", nothing, all, kOutput,
              "set PYTHONUNBUFFERED=1: Python's output comes at once"},

    OptionRow{timeout, "--timeout", "TIME", value, everyday, kLife,
              "end the job after 90, 90s, 5m or 1h; exit code 124"},
    OptionRow{start_timeout, "--start-timeout", "TIME", value, all, kLife,
              "end it when not all ranks have been started by then"},
    OptionRow{exit_timeout, "--exit-timeout", "TIME", value, all, kLife,
              "end it so long after the first rank returned 0"},
    OptionRow{grace, "--grace", "TIME", value, everyday, kLife,
              "from SIGTERM to SIGKILL when a job is ended; default: 5s"},
    OptionRow{term_grace, "--term-grace", "TIME", value, all, kLife,
              "the same when colrun itself was told to end; default: 25s"},
    OptionRow{max_restarts, "--max-restarts", "N", value, everyday, kLife,
              "start all ranks again when one fails, up to N times"},
    OptionRow{keep_going, "--keep-going", "", nothing, all, kLife, "a rank that fails does not end the others"},
    OptionRow{exit_policy, "--exit-policy", "WHOSE", value, all, kLife,
              "exit code: of the first rank to fail, max, or rank0"},

    OptionRow{env, "-x,--env", "NAME[=VALUE]", values, everyday, kEnvironment,
              "a variable for the ranks; may be repeated"},
    OptionRow{env_file, "--env-file", "FILE", values, everyday, kEnvironment,
              "variables from a file of NAME=value lines"},
    OptionRow{env_remove, "--env-remove", "NAME", values, all, kEnvironment,
              "a variable that ranks do not get; NAME* for all that begin so"},
    OptionRow{rank_env, "--rank-env", "NAME=PATTERN", values, all, kEnvironment,
              "one that differs from rank to rank: CORE=%l"},
    OptionRow{compat, "--compat", "mpi", value, all, kEnvironment, "set OMPI_COMM_WORLD_* and PMI_* as well"},

    OptionRow{dry_run, "--dry-run", "", nothing, everyday, kInspection, "say what would be started, start nothing"},
    OptionRow{display, "--display", "map", value, all, kInspection, "say what is started where, and start it"},
    OptionRow{print_env, "--print-env", "", nothing, all, kInspection, "print each rank's environment, start nothing"},
    OptionRow{report, "--report", "", nothing, everyday, kInspection,
              "times and memory of each rank at the end, in any case"},
    OptionRow{json, "--json", "FILE", value, everyday, kInspection, "the final report as JSON; -: to stdout"},
    OptionRow{stacks_on_failure, "--stacks-on-failure", "", nothing, everyday, kInspection,
              "stacks of the other ranks when one fails"},
    OptionRow{stacks_on_timeout, "--stacks-on-timeout", "", nothing, all, kInspection,
              "stacks of all ranks when time is up"},
    OptionRow{debugger, "--debugger", "COMMAND", value, all, kInspection, "run ranks under this: 'gdb --args'"},
    OptionRow{debug_ranks, "--debug-ranks", "LIST", value, all, kInspection, "which of them; default: 0"},

    OptionRow{inject, "--inject", "FAULT", values, all, kDrills, "kill:3@2s, stop:1@1s+5s, slow:1x4; may be repeated"},

    OptionRow{config, "--config", "FILE", value, all, kOther, "options from a file of 'option = value' lines"},
    OptionRow{help, "-h,--help", "", nothing, everyday, kOther, "print the options of every day"},
    OptionRow{help_all, "--help-all", "", nothing, everyday, kOther, "print all options"},
    OptionRow{version, "--version", "", nothing, everyday, kOther, "print the version"},
    OptionRow{agent, "--agent", "", nothing, nowhere, kOther, "started by another colrun, over ssh"},
};
static_assert(kRows.size() == kOptionCount);

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].option) != i) return false;
  }
  return true;
}
static_assert(rows_are_in_order(), "row_of() takes the option for the index");

// Calls `use` with each part between commas, until it returns true; whether it did.
template <class Use>
bool any_part(std::string_view text, Use use) {
  while (true) {
    const std::size_t comma = text.find(',');
    if (use(text.substr(0, comma))) return true;
    if (comma == std::string_view::npos) return false;
    text.remove_prefix(comma + 1);
  }
}

std::string_view without_dashes(std::string_view name) {
  return name.substr(name.starts_with("--") ? 2 : 1);
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view nearest = nearest_name(wrong, names);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

// What `write` makes of the long names, without their dashes, of all settings.
template <class Write>
std::vector<std::string> each_key(Write write) {
  std::vector<std::string> keys;
  for (const OptionRow& row : kRows) {
    if (!row.is_setting()) continue;
    for (const std::string_view name : row.all_names()) {
      if (name.starts_with("--")) keys.push_back(write(name.substr(2)));
    }
  }
  return keys;
}

}  // namespace

bool OptionRow::is_setting() const noexcept {
  return option != Option::config && option != Option::help && option != Option::help_all &&
         option != Option::version && option != Option::agent;
}

std::vector<std::string_view> OptionRow::all_names() const {
  std::vector<std::string_view> result;
  any_part(names, [&](std::string_view name) {
    result.push_back(name);
    return false;
  });
  return result;
}

std::string_view OptionRow::first_name() const noexcept {
  return names.substr(0, names.find(','));
}

std::string_view OptionRow::key() const noexcept {
  std::string_view found;
  any_part(names, [&](std::string_view name) {
    found = name.substr(name.starts_with("--") ? 2 : 0);
    return name.starts_with("--");
  });
  return found;
}

std::span<const OptionRow> option_rows() noexcept {
  return kRows;
}

const OptionRow& row_of(Option option) noexcept {
  return kRows[static_cast<std::size_t>(option)];
}

const OptionRow* find_option(std::string_view name) noexcept {
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const OptionRow& row) {
    return any_part(row.names, [&](std::string_view known) { return known == name; });
  });
  return found == kRows.end() ? nullptr : &*found;
}

const OptionRow* find_setting(std::string_view key) noexcept {
  const auto same = [](char written, char known) { return written == known || (written == '_' && known == '-'); };
  const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const OptionRow& row) {
    return row.is_setting() && any_part(row.names, [&](std::string_view known) {
             const std::string_view bare = without_dashes(known);
             return std::equal(key.begin(), key.end(), bare.begin(), bare.end(), same);
           });
  });
  return found == kRows.end() ? nullptr : &*found;
}

std::string did_you_mean_option(std::string_view name) {
  if (name.size() <= 2) return {};  // one letter is near to every other one
  std::vector<std::string> known;
  for (const OptionRow& row : kRows) {
    if (row.shown == nowhere) continue;
    for (const std::string_view each : row.all_names()) {
      if (each.size() > 2) known.emplace_back(each);
    }
  }
  return did_you_mean(name, known);
}

std::string did_you_mean_key(std::string_view key) {
  return did_you_mean(key, each_key([](std::string_view known) { return std::string(known); }));
}

std::string did_you_mean_variable(std::string_view variable) {
  // Without the common prefix: it would make any two names similar.
  const auto in_capitals = [](std::string_view key) { return variable_of(key).substr(kVariablePrefix.size()); };
  std::vector<std::string> known = each_key(in_capitals);
  known.push_back(in_capitals("config"));
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view nearest = nearest_name(variable.substr(kVariablePrefix.size()), names);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}{}'?", kVariablePrefix, nearest);
}

std::string variable_of(std::string_view key) {
  std::string name(kVariablePrefix);
  for (const char letter : key) {
    const bool small = letter >= 'a' && letter <= 'z';
    name += letter == '-' ? '_' : small ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return name;
}

}  // namespace col::colrun
