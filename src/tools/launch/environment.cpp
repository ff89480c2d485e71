#include "launch/environment.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/unique_fd.hpp"
#include "launch/launch_error.hpp"

namespace col::launch {
namespace {

using Variables = std::vector<std::pair<std::string_view, std::string>>;

constexpr std::array<std::string_view, 4> kForeignPrefixes = {"PMI_", "PMIX_", "OMPI_COMM_", "MV2_COMM_"};
constexpr std::array<std::string_view, 15> kForeignNames = {
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS",    "SLURM_PROCID",       "SLURM_LOCALID",      "SLURM_NODEID",
    "SLURM_GTIDS",     "SLURM_TASK_PID",     "PALS_RANKID",        "PALS_LOCAL_RANKID",  "PALS_LOCAL_SIZE",
    "FLUX_TASK_RANK",  "FLUX_TASK_LOCAL_ID", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK"};

bool is_foreign(std::string_view name) {
  return std::any_of(kForeignPrefixes.begin(), kForeignPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); }) ||
         std::find(kForeignNames.begin(), kForeignNames.end(), name) != kForeignNames.end();
}

// The same for every rank.
Variables job_variables(int ranks, int master_port, const std::string& job_id, const JobDirectory& directory) {
  const std::string size = std::to_string(ranks);
  return {{"COL_WORLD_SIZE", size},
          {"COL_LOCAL_WORLD_SIZE", size},
          {"COL_NODE_RANK", "0"},
          {"COL_NNODES", "1"},
          {"COL_JOB_ID", job_id},
          {"COL_RESTART_COUNT", "0"},
          {"COL_STORE", "file://" + directory.store()},
          {"COL_CONTROL", directory.control()},
          {"WORLD_SIZE", size},
          {"LOCAL_WORLD_SIZE", size},
          {"GROUP_RANK", "0"},
          {"GROUP_WORLD_SIZE", "1"},
          {"ROLE_NAME", "default"},
          {"ROLE_WORLD_SIZE", size},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(master_port)},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_MAX_RESTARTS", "0"},
          {"TORCHELASTIC_RUN_ID", job_id},
          {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
}

Variables rank_variables(int rank, const JobDirectory& directory) {
  const std::string number = std::to_string(rank);
  return {{"COL_RANK", number},
          {"COL_LOCAL_RANK", number},
          {"COL_ERROR_FILE", directory.error_file(rank)},
          {"RANK", number},
          {"LOCAL_RANK", number},
          {"ROLE_RANK", number},
          {"TORCHELASTIC_ERROR_FILE", directory.torch_error_file(rank)}};
}

bool has_name(const Variables& variables, std::string_view name) {
  return std::any_of(variables.begin(), variables.end(), [&](const auto& entry) { return entry.first == name; });
}

std::string assignment(const Variables::value_type& variable) {
  return fmt::format("{}={}", variable.first, variable.second);
}

}  // namespace

int usable_cpus() noexcept {
  // More CPUs than a fixed cpu_set_t holds make the call fail: then one counts all that are on line.
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int count = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0
                        ? CPU_COUNT(&allowed)
                        : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, count);
}

int pick_free_port() {
  tools::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket || ::bind(socket.get(), generic, length) != 0 || ::getsockname(socket.get(), generic, &length) != 0) {
    throw LaunchError(tools::exit_code::kLauncher,
                      fmt::format("cannot get a free port of 127.0.0.1 for MASTER_PORT: {}; is the loopback interface "
                                  "up?",
                                  strerror(errno)));
  }
  return ntohs(address.sin_port);
}

Environment::Environment(const char* const* inherited, int ranks, int cpus, int master_port, std::string job_id,
                         JobDirectory directory)
    : ranks_(ranks), directory_(std::move(directory)) {
  const Variables job = job_variables(ranks, master_port, job_id, directory_);
  const Variables rank = rank_variables(0, directory_);
  bool has_omp_threads = false;
  for (; *inherited != nullptr; ++inherited) {
    const std::string_view entry = *inherited;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (is_foreign(name) || has_name(job, name) || has_name(rank, name)) continue;
    has_omp_threads = has_omp_threads || name == "OMP_NUM_THREADS";
    shared_.emplace_back(entry);
  }
  for (const auto& variable : job) shared_.push_back(assignment(variable));
  if (!has_omp_threads) {
    omp_threads_ = std::max(1, cpus / ranks_);
    shared_.push_back(fmt::format("OMP_NUM_THREADS={}", omp_threads_));
  }
}

std::vector<char*> Environment::of_rank(int rank) {
  own_.clear();
  for (const auto& variable : rank_variables(rank, directory_)) own_.push_back(assignment(variable));
  std::vector<char*> pointers;
  pointers.reserve(shared_.size() + own_.size() + 1);
  for (std::string& entry : shared_) pointers.push_back(entry.data());
  for (std::string& entry : own_) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace col::launch
