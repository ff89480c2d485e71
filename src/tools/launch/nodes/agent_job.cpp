#include "launch/nodes/agent_job.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/exit_codes.hpp"
#include "launch/launch_error.hpp"
#include "launch/nodes/input_hosts.hpp"
#include "launch/nodes/job_fields.hpp"
#include "launch/nodes/node_messages.hpp"

namespace col::launch {
namespace {

using nlohmann::json;
using tools::exit_code::kLauncher;
using Texts = std::vector<std::string>;

constexpr int kVersion = 2;
// Which of this environment's variables ranks on other hosts get, in addition to those of -x.
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

// Of job_fields.hpp.
template <class T>
concept Struct = std::is_class_v<T> && std::is_aggregate_v<T>;
template <class T>
concept Structs = Struct<typename T::value_type>;

class Writer {
 public:
  template <class T>
  void operator()(const char* name, T& value) {
    object_[name] = written(value);
  }
  template <class Enum>
  void choice(const char* name, Enum value, Enum) {
    object_[name] = static_cast<int>(value);
  }

  template <class T>
  static json written(T& value) {
    if constexpr (Struct<T>) {
      Writer writer;
      fields(value, writer);
      return std::move(writer.object_);
    } else if constexpr (requires { value.count(); }) {
      return value.count();
    } else if constexpr (requires { value.has_value(); }) {
      return value ? written(*value) : json();
    } else if constexpr (Structs<T>) {
      json list = json::array();
      for (auto& part : value) list.push_back(written(part));
      return list;
    } else {
      return value;
    }
  }

 private:
  json object_ = json::object();
};

class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, T& value) const {
    read(object_.at(name), value);
  }
  // One of the values up to `last`.
  template <class Enum>
  void choice(const char* name, Enum& value, Enum last) const {
    const int number = object_.at(name).get<int>();
    if (number < 0 || number > static_cast<int>(last))
      throw LaunchError(kLauncher, fmt::format("the job has a choice that is none ({}: {})", name, number));
    value = static_cast<Enum>(number);
  }

  template <class T>
  static void read(const json& text, T& value) {
    if constexpr (Struct<T>) {
      Reader reader(text);
      fields(value, reader);
    } else if constexpr (requires { value.count(); }) {
      value = T(text.get<typename T::rep>());
    } else if constexpr (requires { value.has_value(); }) {
      if (text.is_null())
        value.reset();
      else
        read(text, value.emplace());
    } else if constexpr (Structs<T>) {
      value.clear();
      for (const json& part : text) read(part, value.emplace_back());
    } else {
      text.get_to(value);
    }
  }

 private:
  const json& object_;
};

void check_programs(const JobSpec& spec) {
  if (spec.programs.empty()) throw LaunchError(kLauncher, "the job has no program");
  for (const Program& program : spec.programs) {
    if (program.command.empty() || program.ranks < 1 || program.ranks > kMaxRanks)
      throw LaunchError(kLauncher, "the job has a program without ranks or without a command");
  }
}

}  // namespace

std::string agent_job_text(const JobSpec& asked, const Rendezvous& meeting, const HostSpec& host, int port) {
  JobSpec spec = asked;
  for (std::size_t program = 0; program < spec.programs.size(); ++program)
    spec.programs[program].ranks = remote_ranks(meeting, host, program);
  if (!reads_input(asked, meeting, host)) spec.input = {.to = InputSpec::To::none};
  std::error_code no_directory;
  const json job = {{"version", kVersion},
                    {"directory", std::filesystem::current_path(no_directory).string()},
                    {"forwarded", forwarded_environment()},
                    {"job", Writer::written(spec)},
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
      throw LaunchError(kLauncher, "the hosts have different versions of colrun; install the same one");
    AgentJob agent;
    agent.directory = job.at("directory").get<std::string>();
    agent.environment = job.at("forwarded").get<Texts>();
    Reader::read(job.at("job"), agent.spec);
    check_programs(agent.spec);
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
    throw LaunchError(kLauncher,
                      fmt::format("what came in is no job of colrun's ({}); --agent is for colrun itself, which starts "
                                  "it on other hosts by ssh",
                                  error.what()));
  }
}

}  // namespace col::launch
