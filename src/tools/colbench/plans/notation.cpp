#include "colbench/plans/notation.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "colbench/cell/cell.hpp"
#include "colbench/report/values.hpp"
#include "common/command_line.hpp"
#include "common/numbers.hpp"

namespace col::colbench {
namespace {

// The number that `text` begins with; `text` becomes what is behind it.
std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || stop == text.data() || !std::isfinite(number) || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return number;
}

struct NamedUnit {
  std::string_view name;
  double size;
};
constexpr std::array kTimes = {NamedUnit{"ns", 1e-9}, NamedUnit{"us", 1e-6}, NamedUnit{"µs", 1e-6},
                               NamedUnit{"ms", 1e-3}, NamedUnit{"s", 1}};
constexpr std::array kPerSecond = {NamedUnit{"B/s", 1}, NamedUnit{"bit/s", 0.125}, NamedUnit{"bps", 0.125}};

// "G" and "Gi" of "GB/s" and "GiB/s"; 0 when it is neither.
double power_of(std::string_view prefix) {
  constexpr std::string_view kPrefixes = "KMGT";
  if (prefix.empty()) return 1;
  const std::size_t power = prefix.front() == 'k' ? 0 : kPrefixes.find(prefix.front());
  if (power == std::string_view::npos) return 0;
  prefix.remove_prefix(1);
  if (prefix.empty()) return std::pow(1000.0, static_cast<double>(power + 1));
  return prefix == "i" ? std::pow(1024.0, static_cast<double>(power + 1)) : 0;
}

constexpr std::string_view kNodes = "nodes:";

[[noreturn]] void refuse(const std::string& why) {
  throw tools::UsageError(why);
}

}  // namespace

std::optional<double> parse_time(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  if (text.empty()) return *number == 0 ? number : std::nullopt;
  for (const NamedUnit& unit : kTimes) {
    if (text == unit.name) return *number * unit.size;
  }
  return std::nullopt;
}

std::optional<double> parse_speed(std::string_view text) {
  const auto number = take_number(text);
  if (!number || *number == 0) return std::nullopt;
  for (const NamedUnit& unit : kPerSecond) {
    if (!text.ends_with(unit.name)) continue;
    const double power = power_of(text.substr(0, text.size() - unit.name.size()));
    if (power > 0) return *number * power * unit.size;
  }
  return std::nullopt;
}

double time_option(const std::string& name, const std::string& text) {
  if (const auto seconds = parse_time(text)) return *seconds;
  throw tools::UsageError("{} should be a time such as 5us, 1.5ms or 20ns, not '{}'", name, text);
}

double speed_option(const std::string& name, const std::string& text) {
  if (const auto speed = parse_speed(text)) return *speed;
  throw tools::UsageError("{} should be a speed such as 25GB/s or 200Gbit/s, not '{}'", name, text);
}

std::string speed_text(double bytes_per_second) {
  constexpr std::array<std::string_view, 5> kNames = {"B/s", "KB/s", "MB/s", "GB/s", "TB/s"};
  std::size_t power = 0;
  double value = bytes_per_second;
  while (value >= 999.5 && power + 1 < kNames.size()) {
    value /= 1000;
    ++power;
  }
  return fmt::format("{} {}", without_zeros(three_digits(value)), kNames[power]);
}

std::string rough_size_text(std::size_t bytes) {
  constexpr std::array<std::string_view, 5> kNames = {"", "K", "M", "G", "T"};
  if (bytes < 1024) return fmt::format("{}", bytes);
  std::size_t power = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1023.5 && power + 1 < kNames.size()) {
    value /= 1024;
    ++power;
  }
  return without_zeros(three_digits(value)) + std::string(kNames[power]);
}

std::string range_text(std::optional<std::size_t> from, std::optional<std::size_t> to) {
  if (!from && !to) return "at all sizes";
  if (!from) return fmt::format("up to {}", rough_size_text(*to));
  if (!to) return fmt::format("above {}", rough_size_text(*from));
  return fmt::format("{} to {}", rough_size_text(*from), rough_size_text(*to));
}

std::vector<int> Topology::node_of_rank() const {
  std::vector<int> node(static_cast<std::size_t>(ranks), 0);
  for (int r = 0; r < ranks; ++r) node[static_cast<std::size_t>(r)] = r / (ranks / nodes);
  return node;
}

std::string Topology::text() const {
  return nodes == 1 ? fmt::format("{} ranks", ranks)
                    : fmt::format("{} ranks, {} nodes of {}", ranks, nodes, ranks / nodes);
}

Topology parse_topology(const std::string& text, int ranks) {
  if (text == "flat") {
    if (ranks == 0) refuse("how many ranks? write --ranks 4096, or --topology nodes:512x8");
    return {ranks, 1};
  }
  const std::string_view whole = text;
  const std::size_t times = whole.find('x');
  if (!whole.starts_with(kNodes) || times == std::string_view::npos)
    refuse(fmt::format("--topology should be flat, or nodes:512x8 (512 nodes of 8 ranks), not '{}'", text));
  const auto nodes =
      tools::parse_whole_number(whole.substr(kNodes.size(), times - kNodes.size()), 1, kMostSimulatedRanks);
  const auto per_node = tools::parse_whole_number(whole.substr(times + 1), 1, kMostSimulatedRanks);
  if (!nodes || !per_node)
    refuse(fmt::format("--topology {}: should be nodes:512x8, with numbers from 1 to {}", text, kMostSimulatedRanks));
  const long long all = static_cast<long long>(*nodes) * *per_node;
  if (all > kMostSimulatedRanks)
    refuse(fmt::format("--topology {} has {} ranks; {} can be simulated", text, all, kMostSimulatedRanks));
  if (ranks != 0 && ranks != all)
    refuse(fmt::format("--topology {} has {} ranks, not the {} that are asked for; leave one of the two out", text, all,
                       ranks));
  return {static_cast<int>(all), *nodes};
}

}  // namespace col::colbench
