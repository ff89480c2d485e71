// JSON, put together value by value; json_fields.hpp makes it of structs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include <nlohmann/json_fwd.hpp>

namespace col::core {

using JsonValue = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string_view>;

// Requires: between begin_object() and end(), each value has its member() before it; the document is one value.
class JsonBuilder {
 public:
  JsonBuilder();
  ~JsonBuilder();

  void begin_object();
  void begin_list();
  void end();  // of the object or list that was begun last
  void member(std::string_view name);
  void add(JsonValue value);  // a number that is not finite is null
  void add_whole(const nlohmann::json& value);

  // On one line. Bytes that are no UTF-8 become U+FFFD, and members keep their order.
  std::string line() const;
  std::string spaced_line() const;  // the same with spaces after colons and commas
  // Indented by one space, but lists and objects that hold nothing but values stand on one line.
  std::string compact_lists() const;
  // The document itself.
  void take(nlohmann::ordered_json& into);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace col::core
