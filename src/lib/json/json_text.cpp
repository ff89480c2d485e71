#include "json/json_text.hpp"

#include <nlohmann/json.hpp>

namespace col::core {

std::string json_text(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

nlohmann::json json_from(std::string_view text, bool throws) {
  return nlohmann::json::parse(text.begin(), text.end(), nullptr, throws);
}

}  // namespace col::core
