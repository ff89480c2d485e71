#include "launch/nodes/agent_job.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/exit_codes.hpp"
#include "json/json_fields.hpp"
#include "json/json_text.hpp"
#include "json/packed_json.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/node_messages.hpp"
#include "launch/nodes/wire.hpp"

namespace col::launch {
namespace {

// Ranks are dealt out to the hosts in the order of the list.
int first_rank(const JobSpec& spec, const Rendezvous& meeting, int node_rank) {
  const bool after_this = meeting.node_rank >= 0 && meeting.node_rank < node_rank;
  int ranks = after_this ? spec.local_ranks() : 0;
  for (const HostSpec& host : meeting.remotes) {
    if (host.node_rank < node_rank) ranks += host.slots.value_or(0);
  }
  return ranks;
}

bool reads(const JobSpec& spec, const Rendezvous& meeting, int node_rank, int ranks) {
  if (spec.stdin_fd < 0 || ranks == 0) return false;
  if (spec.input.to != InputSpec::To::rank) return spec.input.to == InputSpec::To::all;
  const int first = first_rank(spec, meeting, node_rank);
  return spec.input.rank >= first && spec.input.rank < first + ranks;
}

using nlohmann::json;
using tools::exit_code::kLauncher;
using Texts = std::vector<std::string>;

constexpr int kVersion = 7;
constexpr std::size_t kMaxBytes = 16 * 1024 * 1024;
constexpr std::size_t kMaxVersionBytes = 64 * 1024;  // of the line that says it, which was the whole job once
// What ranks on other hosts get of this one's environment, besides what -x says.
constexpr std::array<std::string_view, 6> kForwarded = {"COL_", "COLRUN_", "NCCL_", "GLOO_", "OMP_", "UCX_"};
// Of these, what belongs to this host or to the job around it.
constexpr std::array<std::string_view, 6> kKept = {"COL_RANK",   "COL_CONTROL", "COL_STORE",
                                                   "COL_JOB_ID", "COL_RDZV",    "COL_ERROR_FILE"};

bool starts_with_one(std::string_view text, const auto& prefixes) {
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
}

Texts forwarded_environment() {
  Texts variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (starts_with_one(*entry, kForwarded) && !starts_with_one(*entry, kKept)) variables.emplace_back(*entry);
  }
  return variables;
}

[[noreturn]] void refuse(std::string_view why) {
  throw LaunchError(kLauncher,
                    "what came in is no job of colrun's ({}); --agent is for colrun itself, which starts "
                    "it on other hosts by ssh",
                    why);
}

void check_programs(const JobSpec& spec) {
  if (spec.programs.empty()) throw LaunchError(kLauncher, "the job has no program");
  for (const Program& program : spec.programs) {
    if (program.command.empty() || program.ranks < 1 || program.ranks > kMaxRanks)
      throw LaunchError(kLauncher, "the job has a program without ranks or without a command");
  }
}

using tools::exit_code::kLauncher;

}  // namespace

bool reads_input(const JobSpec& spec, const Rendezvous& meeting, const HostSpec& host) {
  return reads(spec, meeting, host.node_rank, host.slots.value_or(0));
}

bool reads_input_here(const JobSpec& spec, const Rendezvous& meeting) {
  return reads(spec, meeting, meeting.node_rank, spec.local_ranks());
}

bool has_one_rank(const JobSpec& spec, const Rendezvous& meeting) {
  int ranks = spec.local_ranks();
  for (const HostSpec& host : meeting.remotes) ranks += host.slots.value_or(0);
  return ranks == 1 && (meeting.max_nodes == 1 || !meeting.remotes.empty());
}

template <class Visit>
void fields(AgentJob& agent, Visit& visit) {
  auto& [spec, rendezvous, directory, environment] = agent;
  visit("directory", directory);
  visit("forwarded", environment);
  visit("job", spec);
  visit("meeting", rendezvous);
}

namespace {

// The part of a job that every version of colrun understands: a line of text, of which it reads the version first.
struct Version {
  int version = 0;
};
template <class Visit>
void fields(Version& version, Visit& visit) {
  visit("version", version.version);
}

void check_version(std::string_view line) {
  const json value = core::json_from(line, /*throws=*/true);
  Version read;
  core::read_json(core::JsonDocument::of(value, "the job").root(), read);
  if (read.version != kVersion)
    throw LaunchError(kLauncher, "the hosts have different versions of colrun; install the same one");
}

// Runs `read`; what it refuses is no job.
template <class Read>
auto refusing(const Read& read) {
  try {
    return read();
  } catch (const json::exception& error) {
    refuse(error.what());
  } catch (const Error& error) {
    refuse(error.message());
  }
}

}  // namespace

std::string agent_job_bytes(const JobSpec& asked, const Rendezvous& meeting, const HostSpec& host, int port) {
  JobSpec spec = asked;
  for (std::size_t program = 0; program < spec.programs.size(); ++program)
    spec.programs[program].ranks = remote_ranks(meeting, host, program);
  if (!reads_input(asked, meeting, host)) spec.input = {.to = InputSpec::To::none};
  spec.output.joined = !has_one_rank(asked, meeting);
  std::error_code no_directory;
  AgentJob agent = {.spec = std::move(spec),
                    .directory = std::filesystem::current_path(no_directory).string(),
                    .environment = forwarded_environment()};
  for (const std::string& address : own_addresses()) agent.rendezvous.endpoints.push_back({address, port});
  agent.rendezvous.id = meeting.id;
  agent.rendezvous.secret = meeting.secret;
  agent.rendezvous.node_rank = host.node_rank;
  agent.rendezvous.timeout = meeting.timeout;
  return core::json_line(Version{kVersion}) + "\n" + frames::frame_of(core::packed(core::json_of(agent)));
}

std::optional<std::size_t> agent_job_size(std::string_view begun) {
  const std::size_t line = begun.find('\n');
  if (line == std::string_view::npos && begun.size() <= kMaxVersionBytes) return std::nullopt;
  refusing([&] { check_version(begun.substr(0, line)); });
  const std::string_view rest = begun.substr(line + 1);
  if (rest.size() < frames::kHeadBytes) return std::nullopt;
  const std::size_t length = frames::length_in(rest);
  if (length > kMaxBytes) refuse("it is too long");
  const std::size_t size = line + 1 + frames::kHeadBytes + length;
  return size <= begun.size() ? std::optional(size) : std::nullopt;
}

AgentJob parse_agent_job(std::string_view bytes) {
  if (agent_job_size(bytes) != bytes.size()) refuse("it is not whole");
  return refusing([&] {
    const json job = core::unpacked(bytes.substr(bytes.find('\n') + 1 + frames::kHeadBytes), "the job");
    const core::JsonDocument document = core::JsonDocument::of(job, "the job");
    AgentJob agent;
    core::read_json(document.root(), agent);
    check_programs(agent.spec);
    agent.rendezvous.alone = false;
    agent.rendezvous.reports = false;
    return agent;
  });
}

}  // namespace col::launch
