#include "launch/processes/environment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

namespace col::launch {
namespace {

constexpr std::array<std::string_view, 4> kForeignPrefixes = {"PMI_", "PMIX_", "OMPI_COMM_", "MV2_COMM_"};
constexpr std::array<std::string_view, 22> kForeignNames = {
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS",
    "SLURM_TASK_PID", "PALS_RANKID", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID",
    "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
    // What nodes meet with is not for ranks.
    "COL_RDZV_TOKEN", "COL_RDZV_TOKEN_FILE", "COL_STORE_TOKEN", "COL_STORE_TOKEN_FILE",
    // A job that a rank starts has calls and epochs of its own, and its ranks are no spares.
    "COL_TRACE_DIRECTORY", "COL_EPOCH_FILE", "COL_SPARE"};

bool is_foreign(std::string_view name) {
  return std::ranges::any_of(kForeignPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); }) ||
         std::ranges::find(kForeignNames, name) != kForeignNames.end();
}

bool is_removed(const std::vector<std::string>& removed, std::string_view name) {
  return std::ranges::any_of(removed, [&](std::string_view pattern) {
    if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
    return name == pattern;
  });
}

// The first number of a list such as "4,2": the outer level is what all its threads are at once.
std::optional<int> threads_in(std::string_view value) {
  int threads = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), threads);
  return read.ec == std::errc() && threads > 0 ? std::optional(threads) : std::nullopt;
}

// "NAME=value", or "NAME". Asked of each variable for each rank: most are told by where their '=' is.
bool is_named(std::string_view entry, std::string_view name) {
  const std::size_t end = name.size();
  return entry.size() >= end && (entry.size() == end || entry[end] == '=') && entry.compare(0, end, name) == 0;
}

// Replaces what `variables` has of that name.
void put(std::vector<std::string>& variables, std::string_view assignment) {
  const std::string_view name = variable_name(assignment);
  const auto found = std::ranges::find_if(variables, [&](std::string_view entry) { return is_named(entry, name); });
  if (found == variables.end()) {
    variables.emplace_back(assignment);
  } else {
    found->assign(assignment);
  }
}

void put_all(std::vector<std::string>& variables, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) put(variables, assignment);
}

// What has a meaning in a URL is written as %XX.
std::string file_url(const std::string& path) {
  std::string url = "file://";
  for (const char letter : path) {
    if (letter == '%')
      url += "%25";
    else
      url += letter;
  }
  return url;
}

// The same for every rank of the node.
std::vector<std::string> job_variables(const Assignment& job, const JobDirectory& directory, const JobSpec& spec) {
  const int max_restarts = spec.lifecycle.max_restarts;
  const auto world = std::to_string(job.world_size);
  const auto local = std::to_string(job.local_ranks);
  const auto restart = std::to_string(job.restart);
  std::vector<std::string> variables = {
      "COL_WORLD_SIZE=" + world, "COL_LOCAL_WORLD_SIZE=" + local, fmt::format("COL_NODE_RANK={}", job.node_rank),
      fmt::format("COL_NNODES={}", job.nodes), "COL_JOB_ID=" + job.job_id, "COL_RESTART_COUNT=" + restart,
      "COL_STORE=" + (job.store_url.empty() ? file_url(directory.store()) : job.store_url),
      "COL_CONTROL=" + directory.control(), "WORLD_SIZE=" + world, "LOCAL_WORLD_SIZE=" + local,
      fmt::format("GROUP_RANK={}", job.node_rank), fmt::format("GROUP_WORLD_SIZE={}", job.nodes), "ROLE_NAME=default",
      "ROLE_WORLD_SIZE=" + world, "MASTER_ADDR=" + job.master_address, fmt::format("MASTER_PORT={}", job.master_port),
      "TORCHELASTIC_RESTART_COUNT=" + restart, fmt::format("TORCHELASTIC_MAX_RESTARTS={}", max_restarts),
      "TORCHELASTIC_RUN_ID=" + job.job_id,
      // True would promise a store of torch's on MASTER_PORT, which nobody runs.
      "TORCHELASTIC_USE_AGENT_STORE=False"};
  if (!spec.inspect.trace_path.empty()) {
    variables.push_back("COL_TRACE_DIRECTORY=" + directory.trace());
    variables.push_back(fmt::format("COL_TRACE_LIMIT={}", spec.inspect.trace_bytes));
  }
  if (spec.lifecycle.has_epochs()) variables.push_back("COL_EPOCH_FILE=" + directory.epochs());
  if (!job.store_token.empty()) variables.push_back("COL_STORE_TOKEN=" + job.store_token);
  return variables;
}

// One that `joins` has no rank: nobody knows yet which it will be.
std::vector<std::string> rank_variables(const Assignment& job, int place, const JobDirectory& directory, bool joins) {
  const auto number = std::to_string(number_of(job, place));
  const auto local = std::to_string(place);
  std::vector<std::string> variables = {"COL_LOCAL_RANK=" + local, "COL_ERROR_FILE=" + directory.error_file(place),
                                        "LOCAL_RANK=" + local,
                                        "TORCHELASTIC_ERROR_FILE=" + directory.torch_error_file(place)};
  for (const char* const name : {"COL_RANK", "RANK", "ROLE_RANK"}) {
    if (!joins) variables.push_back(fmt::format("{}={}", name, number));
  }
  if (joins) variables.push_back("COL_SPARE=" + number);
  return variables;
}

std::vector<std::string> mpi_variables(const Assignment& job, int local_rank) {
  const int rank = job.first_rank + local_rank;
  return {fmt::format("OMPI_COMM_WORLD_RANK={}", rank), fmt::format("OMPI_COMM_WORLD_SIZE={}", job.world_size),
          fmt::format("OMPI_COMM_WORLD_LOCAL_RANK={}", local_rank),
          fmt::format("OMPI_COMM_WORLD_LOCAL_SIZE={}", job.local_ranks),
          fmt::format("OMPI_COMM_WORLD_NODE_RANK={}", local_rank)};
}

std::vector<std::string> pmi_variables(const Assignment& job, int local_rank) {
  return {fmt::format("PMI_RANK={}", job.first_rank + local_rank), fmt::format("PMI_SIZE={}", job.world_size)};
}

}  // namespace

std::string_view variable_name(std::string_view assignment) noexcept {
  return assignment.substr(0, assignment.find('='));
}

int most_threads(const JobSpec& spec, const char* inherited, int otherwise) {
  constexpr std::string_view kName = "OMP_NUM_THREADS";
  // The last one counts.
  const auto take_from = [&](const std::vector<std::string>& variables, std::optional<std::string_view>& value) {
    for (const std::string& entry : variables) {
      if (variable_name(entry) == kName) value = std::string_view(entry).substr(kName.size() + 1);
    }
  };
  std::optional<std::string_view> of_all;
  if (inherited != nullptr && !is_removed(spec.environment.remove, kName)) of_all = inherited;
  take_from(spec.environment.set, of_all);
  take_from(spec.environment.per_rank, of_all);
  int most = 1;
  for (const Program& program : spec.programs) {
    std::optional<std::string_view> own = of_all;
    take_from(program.environment, own);
    most = std::max(most, own ? threads_in(*own).value_or(1) : otherwise);
  }
  return most;
}

Environment::Environment(const char* const* inherited, const EnvironmentParts& parts)
    : assignment_(parts.assignment),
      directory_(parts.directory),
      host_(parts.host),
      per_rank_(parts.spec.environment.per_rank),
      mpi_names_(parts.spec.environment.mpi_names),
      pmi_(parts.spec.environment.pmi),
      gpus_(parts.gpus) {
  inherit(inherited, parts.spec.environment.remove);
  put_all(shared_, parts.spec.environment.set);
  const std::size_t before_launcher = shared_.size();
  const Variables of_job = job_variables(assignment_, directory_, parts.spec);
  put_all(shared_, of_job);
  for (const std::string& entry : of_job) fixed_.emplace_back(variable_name(entry));
  // What the user wants for a rank or a program may not replace what the launcher says of it either.
  for (std::size_t program = 0; program < parts.spec.programs.size(); ++program) {
    of_program_.push_back(parts.spec.programs[program].environment);
    program_.insert(program_.end(), static_cast<std::size_t>(parts.spec.programs[program].ranks), program);
  }
  const bool has_omp_threads =
      std::any_of(shared_.begin(), shared_.begin() + static_cast<std::ptrdiff_t>(before_launcher),
                  [](std::string_view entry) { return variable_name(entry) == "OMP_NUM_THREADS"; });
  if (!has_omp_threads) {
    cpus_ = parts.cpus();
    omp_threads_ = std::max(1, cpus_ / std::max(1, assignment_.local_ranks));
    shared_.push_back(fmt::format("OMP_NUM_THREADS={}", omp_threads_));
  }
}

void Environment::inherit(const char* const* inherited, const Variables& removed) {
  // Names that the launcher sets for each rank alone are not in `shared_` to be replaced there.
  const Variables own = rank_variables(assignment_, 0, directory_, false);
  std::unordered_set<std::string_view> taken;
  for (const std::string& entry : own) taken.insert(variable_name(entry));
  for (; *inherited != nullptr; ++inherited) {
    const std::string_view name = variable_name(*inherited);
    if (is_foreign(name) || is_removed(removed, name)) continue;
    // The first of a name counts, as for getenv().
    if (taken.insert(name).second) shared_.emplace_back(*inherited);
  }
}

std::vector<char*> Environment::of_rank(int local_rank, int pmi_fd, bool joins) {
  const auto index = static_cast<std::size_t>(local_rank);
  own_.clear();
  const RankNames names = names_of(assignment_, local_rank, host_);
  for (const std::string& entry : per_rank_) {
    const std::string_view name = variable_name(entry);
    put(own_, fmt::format("{}={}", name, expand_pattern(std::string_view(entry).substr(name.size() + 1), names)));
  }
  if (index < program_.size()) put_all(own_, of_program_[program_[index]]);
  if (index >= program_.size() && !of_program_.empty()) put_all(own_, of_program_.front());  // a spare
  if (index < gpus_.size()) put(own_, "CUDA_VISIBLE_DEVICES=" + gpus_[index]);
  if (mpi_names_ && !joins) put_all(own_, mpi_variables(assignment_, local_rank));
  if ((mpi_names_ || pmi_) && !joins) put_all(own_, pmi_variables(assignment_, local_rank));
  if (pmi_fd >= 0) put(own_, fmt::format("PMI_FD={}", pmi_fd));
  std::erase_if(
      own_, [&](std::string_view entry) { return std::ranges::find(fixed_, variable_name(entry)) != fixed_.end(); });
  put_all(own_, rank_variables(assignment_, local_rank, directory_, joins));
  std::vector<char*> pointers;
  pointers.reserve(shared_.size() + own_.size() + 1);
  std::vector<std::string_view> replaced;
  for (const std::string& entry : own_) replaced.push_back(variable_name(entry));
  for (std::string& entry : shared_) {
    const bool stays = std::ranges::none_of(replaced, [&](std::string_view name) { return is_named(entry, name); });
    if (stays) pointers.push_back(entry.data());
  }
  for (std::string& entry : own_) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace col::launch
