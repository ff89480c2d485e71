// The variables of the ranks.
#include <algorithm>
#include <array>

#include "colrun/env_file.hpp"
#include "colrun/option_groups.hpp"
#include "colrun/option_values.hpp"
#include "colrun/read_value.hpp"
#include "colrun/text_lines.hpp"

namespace col::colrun {
namespace {

using launch::JobSpec;

// Who a rank is, colrun alone can know.
constexpr std::array<std::string_view, 27> kOwn = {
    "COL_RANK",
    "COL_WORLD_SIZE",
    "COL_LOCAL_RANK",
    "COL_LOCAL_WORLD_SIZE",
    "COL_NODE_RANK",
    "COL_NNODES",
    "COL_JOB_ID",
    "COL_CONTROL",
    "COL_RESTART_COUNT",
    "COL_ERROR_FILE",
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
};

void check_name(const std::string& said_as, std::string_view name) {
  if (!is_variable_name(name))
    throw UsageError(fmt::format("{} takes NAME=VALUE, and '{}' is no name of a variable", said_as, name));
  if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end())
    throw UsageError(fmt::format("{}: colrun sets {} itself, for each rank; choose another name", said_as, name));
}

void add_files(const Values& values, Source source, std::vector<std::string>& set) {
  for (const Given& given : values.all(Option::env_file)) {
    if (given.source != source) continue;
    for (std::string& variable : parse_env_file(read_text(given.text), given.text)) {
      check_name(fmt::format("{} {}", given.said_as, given.text),
                 std::string_view(variable).substr(0, variable.find('=')));
      set.push_back(std::move(variable));
    }
  }
}

std::string read_removal(const Given& given) {
  std::string_view name = given.text;
  if (name.ends_with('*')) name.remove_suffix(1);
  const bool good = (name.empty() || is_variable_name(name)) && name.find('*') == std::string_view::npos;
  if (!good) refuse(given, "the name of a variable, or NAME* for all that begin with NAME");
  return given.text;
}

std::string read_rank_variable(const Given& given) {
  const std::size_t equals = given.text.find('=');
  if (equals == std::string::npos) refuse(given, "NAME=PATTERN, such as CORE=%l");
  check_name(given.said_as, std::string_view(given.text).substr(0, equals));
  const std::string pattern = read_pattern(given, given.text.substr(equals + 1));
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    if (pattern[++i] == 's')
      throw UsageError(fmt::format("{} '{}': %s is for names of files; a variable belongs to both streams",
                                   given.said_as, given.text));
  }
  return given.text;
}

}  // namespace

std::vector<OptionRow> environment_rows() {
  using enum OptionRow::Takes;
  using enum OptionRow::Shown;
  return {
      {"-x,--env", "NAME[=VALUE]", values, everyday, "a variable for the ranks; may be repeated", nullptr, Option::env},
      {"--env-file", "FILE", values, everyday, "variables from a file of NAME=value lines", nullptr, Option::env_file},
      {"--env-remove", "NAME", values, all, "a variable that ranks do not get; NAME* for all that begin so",
       [](const Given& given, JobSpec& job) { job.environment.remove.push_back(read_removal(given)); }},
      {"--rank-env", "NAME=PATTERN", values, all, "one that differs from rank to rank: CORE=%l",
       [](const Given& given, JobSpec& job) { job.environment.per_rank.push_back(read_rank_variable(given)); }},
      {"--compat", "mpi", value, all, "set OMPI_COMM_WORLD_* and PMI_* as well",
       [](const Given& given, JobSpec& job) {
         job.environment.mpi_names = read_one_of<bool>(given, {{"mpi", true}});
       }},
  };
}

std::string rank_variable(const Given& given, const Surroundings& surroundings) {
  const std::size_t equals = given.text.find('=');
  const std::string name = given.text.substr(0, equals);
  check_name(given.said_as, name);
  if (equals != std::string::npos) return given.text;
  for (const char* const* entry = surroundings.environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=') return std::string(text);
  }
  throw UsageError(
      fmt::format("{} {}: the variable is not set here; write {} {}=VALUE", given.said_as, name, given.said_as, name));
}

void read_environment(const Values& values, const Surroundings& surroundings, launch::EnvironmentSpec& environment) {
  // First, so that -x can say otherwise.
  if (values.is_on(Option::unbuffered)) environment.set.emplace_back("PYTHONUNBUFFERED=1");
  for (const Source source : {Source::config_file, Source::environment, Source::command_line}) {
    add_files(values, source, environment.set);
    for (const Given& given : values.all(Option::env)) {
      if (given.source == source) environment.set.push_back(rank_variable(given, surroundings));
    }
  }
}

}  // namespace col::colrun
