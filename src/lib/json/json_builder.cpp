#include "json/json_builder.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "json/json_text.hpp"

namespace col::core {
namespace {

using Json = nlohmann::ordered_json;

bool is_flat(const Json& json) {
  return std::none_of(json.begin(), json.end(), [](const Json& item) { return item.is_structured(); });
}

void write_compact(const Json& json, std::size_t indent, std::string& text) {
  if (!json.is_structured() || is_flat(json)) {
    text += json_text(json);
    return;
  }
  text += json.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, value] : json.items()) {
    text += first ? "\n" : ",\n";
    text.append(indent + 1, ' ');
    if (json.is_object()) text += json_text(Json(key)) + ": ";
    write_compact(value, indent + 1, text);
    first = false;
  }
  text += '\n';
  text.append(indent, ' ');
  text += json.is_object() ? '}' : ']';
}

}  // namespace

struct JsonBuilder::State {
  void add(Json value) {
    if (open.back().value.is_array())
      open.back().value.push_back(std::move(value));
    else
      open.back().value[open.back().member] = std::move(value);
  }
  const Json& document() const { return open.front().value.front(); }

  struct Open {
    Json value;
    std::string member = {};  // that comes next
  };
  std::vector<Open> open = {{Json::array()}};  // the first one holds the document
};

JsonBuilder::JsonBuilder() : state_(std::make_unique<State>()) {}
JsonBuilder::~JsonBuilder() = default;

void JsonBuilder::begin_object() {
  state_->open.push_back({Json::object()});
}

void JsonBuilder::begin_list() {
  state_->open.push_back({Json::array()});
}

void JsonBuilder::end() {
  Json value = std::move(state_->open.back().value);
  state_->open.pop_back();
  state_->add(std::move(value));
}

void JsonBuilder::member(std::string_view name) {
  state_->open.back().member = name;
}

void JsonBuilder::add(JsonValue value) {
  std::visit([&](auto one) { state_->add(one); }, value);
}

void JsonBuilder::add_whole(const nlohmann::json& value) {
  state_->add(value);
}

std::string JsonBuilder::line() const {
  return json_text(state_->document());
}

std::string JsonBuilder::spaced_line() const {
  std::string text;
  bool in_string = false, escaped = false;
  for (const char c : line()) {
    text += c;
    if (c == '"' && !escaped) in_string = !in_string;
    escaped = in_string && c == '\\' && !escaped;
    if (!in_string && (c == ':' || c == ',')) text += ' ';
  }
  return text;
}

std::string JsonBuilder::compact_lists() const {
  std::string text;
  write_compact(state_->document(), 0, text);
  return text;
}

void JsonBuilder::take(Json& into) {
  into = std::move(state_->open.front().value.front());
}

}  // namespace col::core
