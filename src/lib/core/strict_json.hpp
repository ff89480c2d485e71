// Strict reading of JSON files that people write: a mistake is reported and never skipped.
//
// Every failure is an invalid_argument that names the source, the place (as a JSON pointer, "/rules/3/bytes") and the
// expected value.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace col::core {

class JsonPlace;

// A parsed document. It never changes. The length of the text bounds memory and time.
class JsonDocument {
 public:
  // Refuses malformed text (and names line and column), members that come twice, and nesting deeper than in any of our
  // formats. `source` is the name of the document in messages: "plan 'my.json'".
  static JsonDocument parse(std::string_view text, std::string source);
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;

  JsonPlace root() const;
  const std::string& source() const noexcept { return source_; }

 private:
  JsonDocument(std::unique_ptr<const nlohmann::json> value, std::string source);
  friend class JsonPlace;
  std::unique_ptr<const nlohmann::json> value_;  // on the heap: the type is incomplete here
  std::string source_;
};

// A value in a document. The document must outlive it. Cheap to copy.
class JsonPlace {
 public:
  // Throws "<source>: at <place>: <what>".
  [[noreturn]] void fail(std::string_view what) const;

  // Checks that this is an object that has all members of `required`, and otherwise only members of `optional`.
  void expect_members(std::span<const std::string_view> required,
                      std::span<const std::string_view> optional = {}) const;
  bool has(std::string_view member) const;              // Requires: an object
  JsonPlace operator[](std::string_view member) const;  // fails when this is no object or lacks it
  std::size_t size(std::string_view of_what) const;     // fails when this is no array
  JsonPlace at(std::size_t index) const;                // Requires: index < size()
  bool is_object() const noexcept;
  bool is_array() const noexcept;
  bool is_text() const noexcept;
  bool is_null() const noexcept;

  // Each of these fails if the value has another type or is outside of its range.
  const std::string& text() const;
  bool flag() const;
  std::size_t number(std::size_t least, std::size_t most) const;

 private:
  friend class JsonDocument;
  JsonPlace(const JsonDocument& document, const nlohmann::json& value) : document_(&document), value_(&value) {}
  const JsonDocument* document_;
  const nlohmann::json* value_;
};

// A user's text for a message: in quotes, and cut if it is long.
std::string in_quotes(std::string_view text);

}  // namespace col::core
