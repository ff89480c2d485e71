#include "colbench/report/values.hpp"

#include <cmath>

#include <fmt/format.h>

namespace col::colbench {
std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string time_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds == 0) return "0";
  constexpr double kLeastMicroseconds = 0.0995;  // below it two decimals of a microsecond say too little
  constexpr double kNextUnit = 999.5;
  if (seconds * 1e6 < kLeastMicroseconds) return three_digits(seconds * 1e9) + " ns";
  if (seconds * 1e6 < kNextUnit) return three_digits(seconds * 1e6) + " us";
  if (seconds * 1e3 < kNextUnit) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

std::string time_text(std::optional<double> seconds) {
  return seconds ? time_text(*seconds) : "-";
}

std::string bandwidth_text(double bytes_per_second) {
  const double value = bytes_per_second / 1e9;
  if (!std::isfinite(value) || value <= 0) return "-";
  if (value < 0.0005) return "<0.001";
  if (value < 0.9995) return fmt::format("{:.3f}", value);
  return three_digits(value);
}

std::string percent_text(double fraction) {
  const double percent = 100 * fraction;
  if (!std::isfinite(percent) || percent < 0) return "-";
  if (percent > 0 && percent < 0.05) return "<0.1";
  return percent < 9.95 ? fmt::format("{:.1f}", percent) : fmt::format("{:.0f}", percent);
}

std::string seed_text(unsigned long long seed) {
  return fmt::format("{:#x}", seed);
}

}  // namespace col::colbench
