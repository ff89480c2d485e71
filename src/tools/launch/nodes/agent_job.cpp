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
#include "launch/launch_error.hpp"
#include "launch/nodes/input_hosts.hpp"
#include "launch/nodes/node_messages.hpp"

namespace col::launch {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

constexpr int kVersion = 1;
constexpr InputSpec kNoInput{.to = InputSpec::To::none};
// What ranks on other hosts get of this one's environment, besides what -x says.
constexpr std::array<std::string_view, 6> kForwarded = {"COL_", "COLRUN_", "NCCL_", "GLOO_", "OMP_", "UCX_"};
// Of these, what belongs to this host or to the job around it.
constexpr std::array<std::string_view, 6> kKept = {"COL_RANK",   "COL_CONTROL", "COL_STORE",
                                                   "COL_JOB_ID", "COL_RDZV",    "COL_ERROR_FILE"};

bool starts_with_one(std::string_view text, const auto& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

Texts forwarded_environment() {
  Texts variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (starts_with_one(*entry, kForwarded) && !starts_with_one(*entry, kKept)) variables.emplace_back(*entry);
  }
  return variables;
}

// Arguments and variables are bytes, JSON has characters: each byte travels as the character of its number.
std::string byte_to_character(const std::string& bytes) {
  std::string text;
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < 0x80) {
      text += letter;
    } else {
      text += static_cast<char>(0xC0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return text;
}

std::string character_to_byte(const std::string& text) {
  std::string bytes;
  for (std::size_t index = 0; index < text.size(); ++index) {
    const auto first = static_cast<unsigned char>(text[index]);
    if (first < 0x80 || index + 1 == text.size()) {
      bytes += text[index];
    } else {
      bytes += static_cast<char>(((first & 0x03) << 6) | (static_cast<unsigned char>(text[++index]) & 0x3F));
    }
  }
  return bytes;
}

// `value` with all texts in it changed; names of members stay.
json mapped(json value, std::string (*change)(const std::string&)) {
  if (value.is_string()) return change(value.get_ref<const std::string&>());
  if (value.is_structured()) {
    for (json& part : value) part = mapped(std::move(part), change);
  }
  return value;
}

json to_json(const Program& program, int ranks) {
  return {{"command", program.command}, {"ranks", ranks}, {"environment", program.environment}};
}

json to_json(const OutputSpec& output) {
  return {{"label", output.label}, {"timestamps", output.timestamps},       {"file", output.file_pattern},
          {"tee", output.tee},     {"console_ranks", output.console_ranks}, {"merge", output.merge},
          {"pty", output.pty}};
}

json to_json(const InputSpec& input) {
  return {{"to", static_cast<int>(input.to)}, {"rank", input.rank}};
}

json to_json(const BindingSpec& binding) {
  return {{"to", static_cast<int>(binding.to)},
          {"lists", binding.lists},
          {"map_by", static_cast<int>(binding.map_by)},
          {"gpus_per_rank", binding.gpus_per_rank}};
}

json to_json(const Injection& injection) {
  return {{"kind", static_cast<int>(injection.kind)},
          {"rank", injection.rank},
          {"at_ms", injection.at.count()},
          {"duration_ms", injection.duration.count()},
          {"factor", injection.factor}};
}

json to_json(const std::optional<Milliseconds>& limit) {
  return limit ? json(limit->count()) : json();
}

std::optional<Milliseconds> limit_from(const json& text) {
  return text.is_null() ? std::nullopt : std::optional(Milliseconds(text.get<std::int64_t>()));
}

// One of the values up to `last`.
template <typename Enum>
Enum choice_from(const json& text, Enum last) {
  const int value = text.get<int>();
  if (value < 0 || value > static_cast<int>(last))
    throw LaunchError(tools::exit_code::kLauncher, fmt::format("the job has a choice that is none ({})", value));
  return static_cast<Enum>(value);
}

Program program_from(const json& text) {
  Program program;
  program.command = text.at("command").get<Texts>();
  program.ranks = text.at("ranks").get<int>();
  program.environment = text.at("environment").get<Texts>();
  if (program.command.empty() || program.ranks < 1 || program.ranks > kMaxRanks)
    throw LaunchError(tools::exit_code::kLauncher, "the job has a program without ranks or without a command");
  return program;
}

OutputSpec output_from(const json& text) {
  OutputSpec output;
  output.label = text.at("label").get<std::string>();
  output.timestamps = text.at("timestamps").get<bool>();
  output.file_pattern = text.at("file").get<std::string>();
  output.tee = text.at("tee").get<bool>();
  output.console_ranks = text.at("console_ranks").get<std::vector<int>>();
  output.merge = text.at("merge").get<bool>();
  output.pty = text.at("pty").get<bool>();
  return output;
}

InputSpec input_from(const json& text) {
  const int to = text.at("to").get<int>();
  if (to < 0 || to > static_cast<int>(InputSpec::To::none))
    throw LaunchError(tools::exit_code::kLauncher, "the job says in no known way which ranks have input");
  return {.to = static_cast<InputSpec::To>(to), .rank = text.at("rank").get<int>()};
}

BindingSpec binding_from(const json& text) {
  BindingSpec binding;
  binding.to = choice_from(text.at("to"), BindingSpec::To::list);
  binding.lists = text.at("lists").get<std::vector<std::vector<int>>>();
  binding.map_by = choice_from(text.at("map_by"), BindingSpec::MapBy::numa);
  binding.gpus_per_rank = text.at("gpus_per_rank").get<int>();
  return binding;
}

Injection injection_from(const json& text) {
  Injection injection;
  injection.kind = choice_from(text.at("kind"), Injection::Kind::slow);
  injection.rank = text.at("rank").get<int>();
  injection.at = Milliseconds(text.at("at_ms").get<std::int64_t>());
  injection.duration = Milliseconds(text.at("duration_ms").get<std::int64_t>());
  injection.factor = text.at("factor").get<double>();
  return injection;
}

}  // namespace

std::string agent_job_text(const JobSpec& spec, const Rendezvous& meeting, const HostSpec& host, int port) {
  json programs = json::array();
  for (std::size_t program = 0; program < spec.programs.size(); ++program)
    programs.push_back(to_json(spec.programs[program], remote_ranks(meeting, host, program)));
  json injections = json::array();
  for (const Injection& injection : spec.injections) injections.push_back(to_json(injection));
  std::error_code no_directory;
  const json job = {{"version", kVersion},
                    {"tool", spec.tool},
                    {"directory", std::filesystem::current_path(no_directory).string()},
                    {"forwarded", forwarded_environment()},
                    {"programs", programs},
                    {"output", to_json(spec.output)},
                    {"input", to_json(reads_input(spec, meeting, host) ? spec.input : kNoInput)},
                    {"binding", to_json(spec.binding)},
                    {"injections", injections},
                    {"environment",
                     {{"set", spec.environment.set},
                      {"remove", spec.environment.remove},
                      {"per_rank", spec.environment.per_rank},
                      {"mpi_names", spec.environment.mpi_names}}},
                    {"timeout_ms", to_json(spec.lifecycle.timeout)},
                    {"exit_timeout_ms", to_json(spec.lifecycle.exit_timeout)},
                    {"grace_ms", spec.lifecycle.grace.count()},
                    {"term_grace_ms", spec.lifecycle.term_grace.count()},
                    {"keep_going", spec.lifecycle.keep_going},
                    {"max_restarts", spec.lifecycle.max_restarts},
                    {"stacks_on_failure", spec.inspect.stacks_on_failure},
                    {"stacks_on_timeout", spec.inspect.stacks_on_timeout},
                    {"report_bindings", spec.inspect.report_bindings},
                    {"meeting",
                     {{"addresses", own_addresses()},
                      {"port", port},
                      {"id", meeting.id},
                      {"secret", meeting.secret},
                      {"node_rank", host.node_rank},
                      {"timeout_ms", meeting.timeout.count()}}}};
  return mapped(job, byte_to_character).dump();
}

AgentJob parse_agent_job(const std::string& text) {
  try {
    const json job = mapped(json::parse(text), character_to_byte);
    if (job.at("version").get<int>() != kVersion)
      throw LaunchError(tools::exit_code::kLauncher,
                        "the hosts have different versions of colrun; install the same one");
    AgentJob agent;
    JobSpec& spec = agent.spec;
    spec.tool = job.at("tool").get<std::string>();
    agent.directory = job.at("directory").get<std::string>();
    agent.environment = job.at("forwarded").get<Texts>();
    for (const json& program : job.at("programs")) spec.programs.push_back(program_from(program));
    if (spec.programs.empty()) throw LaunchError(tools::exit_code::kLauncher, "the job has no program");
    spec.output = output_from(job.at("output"));
    spec.input = input_from(job.at("input"));
    spec.binding = binding_from(job.at("binding"));
    for (const json& injection : job.at("injections")) spec.injections.push_back(injection_from(injection));
    const json& environment = job.at("environment");
    spec.environment.set = environment.at("set").get<Texts>();
    spec.environment.remove = environment.at("remove").get<Texts>();
    spec.environment.per_rank = environment.at("per_rank").get<Texts>();
    spec.environment.mpi_names = environment.at("mpi_names").get<bool>();
    spec.lifecycle.timeout = limit_from(job.at("timeout_ms"));
    spec.lifecycle.exit_timeout = limit_from(job.at("exit_timeout_ms"));
    spec.lifecycle.grace = Milliseconds(job.at("grace_ms").get<std::int64_t>());
    spec.lifecycle.term_grace = Milliseconds(job.at("term_grace_ms").get<std::int64_t>());
    spec.lifecycle.keep_going = job.at("keep_going").get<bool>();
    spec.lifecycle.max_restarts = job.at("max_restarts").get<int>();
    spec.inspect.stacks_on_failure = job.at("stacks_on_failure").get<bool>();
    spec.inspect.stacks_on_timeout = job.at("stacks_on_timeout").get<bool>();
    spec.inspect.report_bindings = job.at("report_bindings").get<bool>();
    const json& meeting = job.at("meeting");
    Rendezvous& rendezvous = agent.rendezvous;
    rendezvous.alone = false;
    rendezvous.reports = false;
    for (const json& address : meeting.at("addresses"))
      rendezvous.endpoints.push_back({address.get<std::string>(), meeting.at("port").get<int>()});
    rendezvous.id = meeting.at("id").get<std::string>();
    rendezvous.secret = meeting.at("secret").get<std::string>();
    rendezvous.node_rank = meeting.at("node_rank").get<int>();
    rendezvous.timeout = Milliseconds(meeting.at("timeout_ms").get<std::int64_t>());
    return agent;
  } catch (const json::exception& error) {
    throw LaunchError(tools::exit_code::kLauncher,
                      fmt::format("what came in is no job of colrun's ({}); --agent is for colrun itself, which starts "
                                  "it on other hosts by ssh",
                                  error.what()));
  }
}

}  // namespace col::launch
