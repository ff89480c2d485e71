// All options of colrun: their names, their values, the text of --help for them, and how they are read. The parser, the
// texts of --help, the variables COLRUN_*, configuration files and the tests of the manual page all use this one list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/command_line.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

// The options that are asked for by themselves. Those whose row reads the value on its own need no name here.
enum class Option {
  plain,
  ranks_per_node,
  nnodes,
  node_rank,
  rdzv_endpoint,
  master_addr,
  master_port,
  standalone,
  scheduler,
  host,
  hostfile,
  map_by,
  tee,
  console_ranks,
  standard_input,
  unbuffered,
  env,
  env_file,
  debugger,
  debug_ranks,
  inject,
  config,
  help,
  help_all,
  version,
  agent,
};

struct Given;

struct OptionRow {
  enum class Takes { nothing, value, values };  // values: may be given several times, and all of them count
  enum class Shown { everyday, all, nowhere };
  // Puts the value into the job; of a flag, only when it is on. Throws UsageError.
  using Read = void (*)(const Given&, launch::JobSpec&);

  std::string_view names;  // "-n,--np,--nproc-per-node"; an error about the option names the first one
  std::string_view value;  // "N"; empty for a flag
  Takes takes;
  Shown shown;
  std::string_view text;
  Read read = nullptr;  // null: it is read together with others
  Option option = Option::plain;
  std::string_view group = {};  // its group in --help

  bool is_flag() const noexcept { return takes == Takes::nothing; }
  // Whether COLRUN_* and configuration files may set it too.
  bool is_setting() const noexcept { return group != kOther; }
  std::vector<std::string_view> all_names() const { return in_help().all_names(); }
  std::string_view first_name() const noexcept { return names.substr(0, names.find(',')); }
  // The first long name without its dashes: "np".
  std::string_view key() const noexcept;
  tools::OptionRow in_help() const { return {group, names, value, std::string(text)}; }

  static constexpr std::string_view kOther = "Other";
};

// In the order in which --help shows them.
const std::vector<OptionRow>& option_rows();
const OptionRow& row_of(Option option);

// By "-n" or "--np"; null if there is no option of that name.
const OptionRow* find_option(std::string_view name);
// By "np" or "n", only for settings. Underscores count as dashes.
const OptionRow* find_setting(std::string_view key);

// "; did you mean '--timeout'?", or nothing if no name is near.
std::string did_you_mean_option(std::string_view name);
std::string did_you_mean_key(std::string_view key);
std::string did_you_mean_variable(std::string_view variable);

// "max-restarts" is COLRUN_MAX_RESTARTS.
inline constexpr std::string_view kVariablePrefix = "COLRUN_";
std::string variable_of(std::string_view key);

}  // namespace col::colrun
