// All options of colrun: their names, their values, and the text of --help for them. The parser, the texts of --help,
// the variables COLRUN_*, configuration files and the tests of the manual page all use this one list.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace col::colrun {

enum class Option {
  ranks_per_node,
  nnodes,
  node_rank,
  rdzv_endpoint,
  rdzv_id,
  rdzv_timeout,
  rdzv_backend,
  master_addr,
  master_port,
  standalone,
  scheduler,
  host,
  hostfile,
  ssh,
  bind_to,
  map_by,
  report_bindings,
  gpus_per_rank,
  label,
  label_format,
  timestamp,
  output,
  tee,
  console_ranks,
  merge,
  standard_input,
  pty,
  unbuffered,
  timeout,
  start_timeout,
  exit_timeout,
  grace,
  term_grace,
  max_restarts,
  keep_going,
  exit_policy,
  env,
  env_file,
  env_remove,
  rank_env,
  compat,
  dry_run,
  display,
  print_env,
  report,
  json,
  stacks_on_failure,
  stacks_on_timeout,
  debugger,
  debug_ranks,
  inject,
  config,
  help,
  help_all,
  version,
  agent,
};
inline constexpr std::size_t kOptionCount = static_cast<std::size_t>(Option::agent) + 1;

struct OptionRow {
  enum class Takes { nothing, value, values };  // values: may be given several times, and all of them count
  enum class Shown { everyday, all, nowhere };

  Option option;
  std::string_view names;  // "-n,--np,--nproc-per-node"; an error about the option names the first one
  std::string_view value;  // "N"; empty for a flag
  Takes takes;
  Shown shown;
  std::string_view group;  // its group in --help
  std::string_view text;

  bool is_flag() const noexcept { return takes == Takes::nothing; }
  // Whether COLRUN_* and configuration files may set it too.
  bool is_setting() const noexcept;
  std::vector<std::string_view> all_names() const;
  std::string_view first_name() const noexcept;
  // The first long name without its dashes: "np".
  std::string_view key() const noexcept;
};

// In the order in which --help shows them.
std::span<const OptionRow> option_rows() noexcept;
const OptionRow& row_of(Option option) noexcept;

// By "-n" or "--np"; null if there is no option of that name.
const OptionRow* find_option(std::string_view name) noexcept;
// By "np" or "n", only for settings. Underscores count as dashes.
const OptionRow* find_setting(std::string_view key) noexcept;

// "; did you mean '--timeout'?", or nothing if no name is near.
std::string did_you_mean_option(std::string_view name);
std::string did_you_mean_key(std::string_view key);
std::string did_you_mean_variable(std::string_view variable);

// "max-restarts" is COLRUN_MAX_RESTARTS.
inline constexpr std::string_view kVariablePrefix = "COLRUN_";
std::string variable_of(std::string_view key);

}  // namespace col::colrun
