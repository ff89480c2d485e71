// JSON to text and back. Parser and printer are templates that take three seconds to compile, so it is done here alone.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace col::core {

// On one line, or indented by so many spaces. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

// Text that is no JSON becomes a discarded value, which is no object, or a json::parse_error.
nlohmann::json json_from(std::string_view text, bool throws = false);

}  // namespace col::core
