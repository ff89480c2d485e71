// A value somewhere in a JSON document that may be anything: read strictly, so that what is wrong is named.
#pragma once

#include <cstddef>
#include <cstdint>

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace col::colbench {

// Refers to the document, which must outlive it. Every failure is a tools::UsageError, one line: "FILE: cells[3].spec:
// 'dtype' is missing".
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, std::string file) : value_(&value), file_(std::move(file)) {}

  // A member of an object. Fails if this is not an object, or lacks the member.
  JsonPlace operator[](std::string_view member) const;
  // Whether this is an object with such a member.
  bool has(std::string_view member) const;
  // The elements of an array. Fails if this is not an array.
  std::vector<JsonPlace> list() const;
  // The names of an object's members. Fails if this is not an object.
  std::vector<std::string> names() const;
  bool is_null() const;
  bool is_true() const;
  bool is_text() const;

  // Each fails when the value is of another type or outside the range.
  std::string text() const;
  std::string text_or_null() const;  // null is the empty text
  bool flag() const;
  std::int64_t whole(std::int64_t least, std::int64_t most) const;
  int small(int least, int most) const { return static_cast<int>(whole(least, most)); }
  std::size_t size() const;
  double number() const;   // finite; null is 0
  double seconds() const;  // from nanoseconds, not negative
  std::vector<double> all_seconds() const;

  [[noreturn]] void fail(std::string_view what) const;  // "FILE: PLACE: what"

 private:
  JsonPlace(const nlohmann::json& value, std::string file, std::string place)
      : value_(&value), file_(std::move(file)), place_(std::move(place)) {}

  const nlohmann::json* value_;
  std::string file_;
  std::string place_ = {};
};

}  // namespace col::colbench
