// Checks on messages that work with Catch2 2 and 3 alike: CHECK(missing(message, {"rank 3", "--model"}) == "").
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

// Says which of `parts` are not in `text`; empty when all are.
inline std::string missing(const std::string& text, std::initializer_list<std::string_view> parts) {
  std::string report;
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) report += "no '" + std::string(part) + "' in '" + text + "'\n";
  }
  return report;
}
