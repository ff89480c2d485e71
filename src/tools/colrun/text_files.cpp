#include "colrun/text_files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "colrun/option_values.hpp"
#include "common/command_line.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"

namespace col::colrun {
namespace {

using tools::UsageError;

using Clock = core::Clock;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::chrono::seconds kLongest{10};

[[noreturn]] void cannot_read(const std::string& path, const std::string& why) {
  throw UsageError("cannot read '{}': {}", path, why);
}

[[noreturn]] void cannot_read(const std::string& path, int error) {
  cannot_read(path, fmt::format("{}; {}", strerror(error),
                                error == EISDIR   ? "name a file in it"
                                : error == EACCES ? "see its permissions"
                                                  : "check the path"));
}

// Until there is something to read, or the end.
void wait_for(int fd, Clock::time_point deadline, const std::string& path) {
  pollfd event{fd, POLLIN, 0};
  while (true) {
    const auto left = deadline - Clock::now();
    if (left <= Duration::zero()) cannot_read(path, fmt::format("no end of it after {} s", kLongest.count()));
    const int ready = core::poll_for({&event, 1}, left);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) cannot_read(path, errno);
  }
}

constexpr std::string_view kSlots = "slots=";

// The host of one line; throws UsageError.
launch::HostSpec parse_line(const std::string& line, const std::string& place) {
  const auto words = parse_words(line).value_or(std::vector<std::string>());
  auto host = words.empty() ? std::nullopt : parse_host(words.front());
  if (!host)
    throw UsageError(
        "{}: '{}' is no host; write host, user@host or host:4 (1 to {} ranks; […] around an IPv6 address), or host "
        "slots=4",
        place, words.empty() ? line : words.front(), launch::kMaxRanks);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with(kSlots) || host->slots)
      throw UsageError("{}: '{}' is not known here; a host may be followed by slots=N, once", place, word);
    host->slots = tools::parse_whole_number(word.substr(kSlots.size()), 1, launch::kMaxRanks);
    if (!host->slots)
      throw UsageError("{}: slots= takes a whole number from 1 to {}, not '{}'", place, launch::kMaxRanks,
                       word.substr(6));
  }
  return *host;
}

using launch::HostSpec;
using launch::Scheduler;

void add_slots(std::vector<HostSpec>& hosts, std::string_view name, int slots, const std::string& place) {
  const auto host = parse_host(name);
  if (!host || host->slots) throw UsageError("{}: '{}' is no host; name the hosts with --host", place, name);
  const auto same = std::ranges::find(hosts, host->name, &HostSpec::name);
  HostSpec& entry = same != hosts.end() ? *same : hosts.emplace_back(*host);
  entry.slots = entry.slots.value_or(0) + slots;
}

std::vector<HostSpec> from_lines(std::string_view variable, const std::string& path) {
  std::vector<HostSpec> hosts;
  each_line(read_text(path), [&](int number, std::string_view line) {
    add_slots(hosts, line, 1, fmt::format("{}: {}:{}", variable, path, number));
  });
  if (hosts.empty()) throw UsageError("{}: {} names no host; name the hosts with --host", variable, path);
  return hosts;
}

std::string_view take_word(std::string_view& text) {
  text = tools::trimmed(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

std::vector<HostSpec> from_pairs(const std::string& variable, std::string_view text) {
  std::vector<HostSpec> hosts;
  std::string_view rest = text;
  while (!tools::trimmed(rest).empty()) {
    const std::string_view name = take_word(rest);
    const auto slots = tools::parse_whole_number(take_word(rest), 1, launch::kMaxRanks);
    if (!slots)
      throw UsageError("{}='{}' is no list of hosts and numbers, such as 'a 4 b 2'; name the hosts with --host",
                       variable, text);
    add_slots(hosts, name, *slots, variable);
  }
  return hosts;
}

[[noreturn]] void refuse_outside(std::string_view scheduler, std::string_view variables, std::string_view submit) {
  throw UsageError("--scheduler {}, but {}; start colrun inside of a job ({}), or name the hosts with --host",
                   scheduler, variables, submit);
}

}  // namespace

std::string read_text(const std::string& path) {
  const tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) cannot_read(path, errno);
  const auto deadline = Clock::now() + kLongest;
  std::string text;
  std::array<char, 16384> piece;
  while (true) {
    wait_for(file.get(), deadline, path);
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got == 0) break;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) cannot_read(path, errno);
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > kMostBytes) cannot_read(path, "it is larger than 1 MiB; is it the right file?");
  }
  if (text.find('\0') != std::string::npos)
    cannot_read(path, "it is no text: there is a NUL byte in it; is it the right file?");
  return text;
}

void each_line(std::string_view text, const std::function<void(int number, std::string_view line)>& use) {
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = tools::trimmed(tools::take(text, '\n'));
    if (!line.empty() && line[0] != '#') use(number, line);
  }
}

std::optional<std::string> unquoted(std::string_view text) {
  if (text.empty() || (text[0] != '\'' && text[0] != '"')) return std::string(text);
  const char quote = text[0];
  std::string content;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) return i + 1 == text.size() ? std::optional(content) : std::nullopt;
    if (quote == '\'' || text[i] != '\\' || i + 1 == text.size()) {
      content += text[i];
      continue;
    }
    const char next = text[++i];
    if (next == 'n' || next == 't')
      content += next == 'n' ? '\n' : '\t';
    else if (next == '"' || next == '\\')
      content += next;
    else
      content.append({'\\', next});
  }
  return std::nullopt;
}

std::vector<std::string> parse_env_file(std::string_view text, const std::string& path) {
  constexpr std::string_view kExport = "export ";
  std::vector<std::string> variables;
  each_line(text, [&](int number, std::string_view line) {
    if (line.starts_with(kExport)) line = tools::trimmed(line.substr(kExport.size()));
    const std::size_t equals = line.find('=');
    const std::string_view name = line.substr(0, equals);
    if (equals == std::string_view::npos || !is_variable_name(name))
      throw UsageError("{}:{}: '{}' is no variable; write NAME=value", path, number, line);
    const auto value = unquoted(tools::trimmed(line.substr(equals + 1)));
    if (!value)
      throw UsageError("{}:{}: the quotes of {} do not match; write one pair around all of the value", path, number,
                       name);
    variables.push_back(fmt::format("{}={}", name, *value));
  });
  return variables;
}

std::vector<launch::HostSpec> parse_hostfile(std::string_view text, const std::string& path) {
  std::vector<launch::HostSpec> hosts;
  each_line(text, [&](int number, std::string_view line) {
    const std::string place = fmt::format("{}:{}", path, number);
    launch::HostSpec host = parse_line(std::string(tools::trimmed(line.substr(0, line.find('#')))), place);
    if (is_known(hosts, host.name))
      throw UsageError("{}: {} was there before; write 'slots=N' for N ranks there", place, host.name);
    hosts.push_back(std::move(host));
  });
  if (hosts.empty()) throw UsageError("{} names no host; write one a line", path);
  return hosts;
}

bool gives_hosts(Scheduler scheduler) {
  return scheduler == Scheduler::pbs || scheduler == Scheduler::lsf;
}

std::vector<HostSpec> scheduler_hosts(Scheduler scheduler, const Surroundings& surroundings) {
  if (scheduler == Scheduler::pbs) {
    const auto path = surroundings.variable("PBS_NODEFILE");
    if (!path) refuse_outside("pbs", "PBS_NODEFILE is not set", "qsub");
    return from_lines("PBS_NODEFILE", std::string(*path));
  }
  if (const auto path = surroundings.variable("LSB_DJOB_HOSTFILE"))
    return from_lines("LSB_DJOB_HOSTFILE", std::string(*path));
  const auto pairs = surroundings.variable("LSB_MCPU_HOSTS");
  if (!pairs) refuse_outside("lsf", "neither LSB_DJOB_HOSTFILE nor LSB_MCPU_HOSTS is set", "bsub");
  return from_pairs("LSB_MCPU_HOSTS", *pairs);
}

}  // namespace col::colrun
