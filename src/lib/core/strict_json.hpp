// JSON files that people write: read strictly, so that a slip is named and never skipped.
//
// Every failure is an invalid_argument that names the source, the place (as a JSON pointer, "/rules/3/bytes") and what
// should be there.
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

// A parsed document. Immutable. Memory and time are bounded by the text's length.
class JsonDocument {
 public:
  // Refuses malformed text (naming line and column), members that come twice, and nesting deeper than any of our
  // formats. `source` names the document in messages: "plan 'my.json'".
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

// A value in a document, which must outlive it. Cheap to copy.
class JsonPlace {
 public:
  // Throws "<source>: at <place>: <what>".
  [[noreturn]] void fail(std::string_view what) const;

  // Checks that this is an object with all of `required` and nothing besides these and `optional`.
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

  // Each of these fails when the value is of another type or outside its range.
  const std::string& text() const;
  bool flag() const;
  std::size_t number(std::size_t least, std::size_t most) const;

 private:
  friend class JsonDocument;
  JsonPlace(const JsonDocument& document, const nlohmann::json& value) : document_(&document), value_(&value) {}
  const JsonDocument* document_;
  const nlohmann::json* value_;
};

// A user's text for a message: in quotes, cut when it is long.
std::string in_quotes(std::string_view text);

}  // namespace col::core
