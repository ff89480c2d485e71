#include "colrun/scheduler_hosts.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "colrun/option_values.hpp"
#include "colrun/text_files.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"

namespace col::colrun {
namespace {

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
