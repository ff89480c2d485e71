#include "core/duration.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>

#include <col/job.hpp>

namespace col::core {

namespace {

struct Unit {
  std::string_view suffix;
  double nanoseconds;
};
// Longest suffix first: "ms" ends with "s".
constexpr std::array<Unit, 5> kInputUnits = {{{"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}, {"", 1e9}}};

// "1.5", "90": at most three decimals, none that are zero.
std::string short_number(double value) {
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) noexcept {
  const auto unit = std::find_if(kInputUnits.begin(), kInputUnits.end(),
                                 [&](const Unit& candidate) { return text.ends_with(candidate.suffix); });
  text.remove_suffix(unit->suffix.size());
  // from_chars also takes "inf", "nan", "-1" and "1e9", which nobody means here.
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  if (text.empty() || !plain) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const double nanoseconds = std::round(number * unit->nanoseconds);
  if (nanoseconds < 1 || nanoseconds > static_cast<double>(Deadline::kMaxBudget.count())) return std::nullopt;
  return Duration(static_cast<std::int64_t>(nanoseconds));
}

std::string format_duration(Duration duration) {
  using namespace std::chrono_literals;
  if (duration < Duration::zero()) return fmt::format("-{}", format_duration(-duration));
  const auto count = static_cast<double>(duration.count());
  if (duration == Duration::zero()) return "0s";
  if (duration < 1us) return fmt::format("{}ns", duration.count());
  if (duration < 1ms) return short_number(count / 1e3) + "us";
  if (duration < 1s) return short_number(count / 1e6) + "ms";
  // Whole minutes and hours only: "90s" reads better than "1.5m".
  if (duration % 1h == Duration::zero()) return fmt::format("{}h", duration / 1h);
  if (duration % 1min == Duration::zero()) return fmt::format("{}m", duration / 1min);
  return short_number(count / 1e9) + "s";
}

}  // namespace col::core
