#include "colcheck/faults/report.hpp"

#include <chrono>

#include <nlohmann/json.hpp>

namespace col::colcheck {

std::uint64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

std::string encode(const Report& report) {
  const nlohmann::json value = {{"code", report.code},           {"rank", report.error_rank},
                                {"message", report.message},     {"doing", report.doing},
                                {"seconds", report.seconds},     {"later", report.later},
                                {"regrouped", report.regrouped}, {"at_ns", report.at_ns}};
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::optional<Report> decode_report(std::string_view line) {
  try {
    const auto value = nlohmann::json::parse(line);
    Report report;
    report.code = value.at("code").get<std::string>();
    report.error_rank = value.at("rank").get<int>();
    report.message = value.at("message").get<std::string>();
    report.doing = value.at("doing").get<std::string>();
    report.seconds = value.at("seconds").get<double>();
    report.later = value.at("later").get<std::string>();
    report.regrouped = value.at("regrouped").get<std::string>();
    report.at_ns = value.at("at_ns").get<std::uint64_t>();
    return report;
  } catch (const nlohmann::json::exception&) {  // a rank that was killed in the middle of its line
    return std::nullopt;
  }
}

}  // namespace col::colcheck
