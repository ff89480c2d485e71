#include "colrun/hostfile.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "colrun/option_values.hpp"
#include "colrun/text_lines.hpp"
#include "common/numbers.hpp"

namespace col::colrun {
namespace {

constexpr std::string_view kSlots = "slots=";

bool is_known(const std::vector<launch::HostSpec>& hosts, const std::string& name) {
  return std::any_of(hosts.begin(), hosts.end(), [&](const launch::HostSpec& host) { return host.name == name; });
}

// The host of one line; throws UsageError.
launch::HostSpec parse_line(const std::string& line, const std::string& place) {
  const auto words = parse_words(line).value_or(std::vector<std::string>());
  auto host = words.empty() ? std::nullopt : parse_host(words.front());
  if (!host)
    throw UsageError(fmt::format("{}: '{}' is no host; write host, user@host or host:4 ([…] around an IPv6 address)",
                                 place, words.empty() ? line : words.front()));
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with(kSlots) || host->slots)
      throw UsageError(fmt::format("{}: '{}' is not known here; a host may be followed by slots=N, once", place, word));
    host->slots = tools::parse_whole_number(word.substr(kSlots.size()), 1, launch::kMaxRanks);
    if (!host->slots)
      throw UsageError(fmt::format("{}: slots= takes a whole number from 1 to {}, not '{}'", place, launch::kMaxRanks,
                                   word.substr(6)));
  }
  return *host;
}

}  // namespace

std::vector<launch::HostSpec> parse_host_list(const Given& given) {
  std::vector<launch::HostSpec> hosts;
  std::string_view text = given.text;
  while (true) {
    const std::size_t comma = text.find(',');
    const auto host = parse_host(text.substr(0, comma));
    if (!host) refuse(given, "hosts such as a,ada@b:4 ([…] around an IPv6 address)");
    if (is_known(hosts, host->name))
      throw UsageError(
          fmt::format("{} names {} twice; write {}:N for N ranks there", given.said_as, host->name, host->name));
    hosts.push_back(*host);
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

std::vector<launch::HostSpec> parse_hostfile(std::string_view text, const std::string& path) {
  std::vector<launch::HostSpec> hosts;
  each_line(text, [&](int number, std::string_view line) {
    const std::string place = fmt::format("{}:{}", path, number);
    launch::HostSpec host = parse_line(std::string(trimmed(line.substr(0, line.find('#')))), place);
    if (is_known(hosts, host.name))
      throw UsageError(fmt::format("{}: {} was there before; write 'slots=N' for N ranks there", place, host.name));
    hosts.push_back(std::move(host));
  });
  if (hosts.empty()) throw UsageError(fmt::format("{} names no host; write one a line", path));
  return hosts;
}

}  // namespace col::colrun
