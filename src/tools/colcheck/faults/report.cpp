#include "colcheck/faults/report.hpp"

#include <chrono>

#include <col/error.hpp>

#include "json/json_fields.hpp"

namespace col::colcheck {

std::uint64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

template <class Visit>
void fields(Report& report, Visit& visit) {
  auto& [code, error_rank, message, doing, seconds, later, regrouped, at_ns] = report;
  visit("code", code);
  visit("rank", error_rank);
  visit("message", message);
  visit("doing", doing);
  visit("seconds", seconds);
  visit("later", later);
  visit("regrouped", regrouped);
  visit("at_ns", at_ns);
}

std::string encode(const Report& report) {
  return core::json_line(report);
}

std::optional<Report> decode_report(std::string_view line) {
  try {
    return core::parsed_json<Report>(line, "report");
  } catch (const Error&) {  // a rank that was killed in the middle of its line
    return std::nullopt;
  }
}

}  // namespace col::colcheck
