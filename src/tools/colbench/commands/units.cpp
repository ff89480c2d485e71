#include "colbench/commands/units.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "common/command_line.hpp"

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

struct Unit {
  std::string_view name;
  double size;
};
constexpr std::array kTimes = {Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"µs", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
constexpr std::array kPerSecond = {Unit{"B/s", 1}, Unit{"bit/s", 0.125}, Unit{"bps", 0.125}};

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

// Three digits: "5.21", "52.1", "521".
std::string digits(double value) {
  const int behind = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, behind);
}

std::string without_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

}  // namespace

std::optional<double> parse_time(std::string_view text) {
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  if (text.empty()) return *number == 0 ? number : std::nullopt;
  for (const Unit& unit : kTimes) {
    if (text == unit.name) return *number * unit.size;
  }
  return std::nullopt;
}

std::optional<double> parse_speed(std::string_view text) {
  const auto number = take_number(text);
  if (!number || *number == 0) return std::nullopt;
  for (const Unit& unit : kPerSecond) {
    if (!text.ends_with(unit.name)) continue;
    const double power = power_of(text.substr(0, text.size() - unit.name.size()));
    if (power > 0) return *number * power * unit.size;
  }
  return std::nullopt;
}

double time_option(const std::string& name, const std::string& text) {
  if (const auto seconds = parse_time(text)) return *seconds;
  throw tools::UsageError(fmt::format("{} should be a time such as 5us, 1.5ms or 20ns, not '{}'", name, text));
}

double speed_option(const std::string& name, const std::string& text) {
  if (const auto speed = parse_speed(text)) return *speed;
  throw tools::UsageError(fmt::format("{} should be a speed such as 25GB/s or 200Gbit/s, not '{}'", name, text));
}

std::string speed_text(double bytes_per_second) {
  constexpr std::array<std::string_view, 5> kNames = {"B/s", "KB/s", "MB/s", "GB/s", "TB/s"};
  std::size_t power = 0;
  double value = bytes_per_second;
  while (value >= 999.5 && power + 1 < kNames.size()) {
    value /= 1000;
    ++power;
  }
  return fmt::format("{} {}", without_zeros(digits(value)), kNames[power]);
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
  return without_zeros(digits(value)) + std::string(kNames[power]);
}

}  // namespace col::colbench
