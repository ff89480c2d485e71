// JSON that somebody else wrote, read strictly, so that a slip is named and never skipped.
//
// Every failure is an invalid_argument that names the source, the place (as a JSON pointer, "/rules/3/bytes") and what
// should be there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace col::core {

class JsonPlace;

// What becomes of members that the reader does not know. Skipped: those that a newer writer has added.
enum class UnknownMembers { refused, skipped };

// A parsed document. Immutable. Memory and time are bounded by the text's length.
class JsonDocument {
 public:
  // Refuses malformed text (naming line and column). Where unknown members are refused, also members that come twice,
  // and nesting deeper than any of our formats. `source` names the document in messages: "plan 'my.json'".
  static JsonDocument parse(std::string_view text, std::string source,
                            UnknownMembers unknown = UnknownMembers::refused);
  // What has been parsed already, however deep it is, and outlives this; unknown members are skipped.
  static JsonDocument of(const nlohmann::json& value, std::string source);

  JsonPlace root() const;
  const std::string& source() const noexcept { return source_; }

 private:
  JsonDocument(std::shared_ptr<const nlohmann::json> value, std::string source, UnknownMembers unknown)
      : value_(std::move(value)), source_(std::move(source)), unknown_(unknown) {}
  friend class JsonPlace;
  std::shared_ptr<const nlohmann::json> value_;  // shared with nobody; it may be somebody else's
  std::string source_;
  UnknownMembers unknown_;
};

// A value in a document, which must outlive it. Cheap to copy.
class JsonPlace {
 public:
  // Throws "<source>: at <place>: <what>".
  [[noreturn]] void fail(std::string_view what) const;

  // Checks that this is an object with nothing besides `known`.
  void expect_members(std::span<const std::string_view> known) const;
  bool refuses_unknown() const noexcept { return document_->unknown_ == UnknownMembers::refused; }
  std::vector<std::string> names() const;               // of the members; fails when this is no object
  bool has(std::string_view member) const;              // false when this is no object
  JsonPlace operator[](std::string_view member) const;  // fails when this is no object or lacks it
  std::size_t size(std::string_view of_what) const;     // fails when this is no array
  JsonPlace at(std::size_t index) const;                // Requires: index < size()
  bool is_array() const noexcept;
  bool is_text() const noexcept;
  bool is_null() const noexcept;
  const nlohmann::json& whole_value() const noexcept { return *value_; }  // whatever it is

  // Each of these fails when the value is of another type or outside its range.
  const std::string& text() const;
  bool flag() const;
  std::size_t number(std::size_t least, std::size_t most) const;
  template <class T>  // of that type's range, too
  T whole(std::int64_t least = std::numeric_limits<std::int64_t>::min(),
          std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const {
    using Limits = std::numeric_limits<T>;
    const T low = std::cmp_less(least, Limits::min()) ? Limits::min() : static_cast<T>(least);
    const T high = std::cmp_greater(most, Limits::max()) ? Limits::max() : static_cast<T>(most);
    if constexpr (std::is_signed_v<T>)
      return static_cast<T>(integer(low, high));
    else
      return static_cast<T>(number(low, high));
  }
  double real(double least = std::numeric_limits<double>::lowest(),
              double most = std::numeric_limits<double>::max()) const;
  std::uint64_t hexadecimal() const;                                  // of a text: "0x2a"
  std::size_t one_of(std::span<const std::string_view> names) const;  // which of them the text is
 private:
  std::int64_t integer(std::int64_t least, std::int64_t most) const;

  friend class JsonDocument;
  JsonPlace(const JsonDocument& document, const nlohmann::json& value) : document_(&document), value_(&value) {}
  const JsonDocument* document_;
  const nlohmann::json* value_;
};

// A user's text for a message: in quotes, cut when it is long.
std::string in_quotes(std::string_view text);

}  // namespace col::core
