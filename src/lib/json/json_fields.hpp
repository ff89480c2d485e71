// Structs as JSON objects: one list of the fields of a struct serves for writing and for reading.
//
//   template <class Visit>
//   void fields(Point& point, Visit& visit) {
//     auto& [x, y, name] = point;  // a member that is added does not compile until somebody has decided about it
//     visit("x", x);
//     visit("y", y, within(0, 9));  // not as any number: see "How values stand in JSON"
//     visit.optional("name", name);
//   }
//
//   std::string text = json_line(point);
//   Point same = parsed_json<Point>(text, "a point");
//
// What stands in a text as it is: numbers, flags, texts, durations (as their count), structs with fields; lists of
// these, pairs (as lists of two), maps (as lists of pairs), and optionals (null when there is nothing). fields() lies
// in the namespace of its struct. A writer does not change what it visits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "json/json_builder.hpp"
#include "json/strict_json.hpp"

namespace col::core {

// Of members that are not in the JSON.
template <class... Members>
void stays(const Members&...) {}

// ---- Visitors -------------------------------------------------------------------------------------------------------

// As it is.
struct Plain {};

// Both visitors have the same members. `as`: how the value stands in JSON.
class JsonWriter {
 public:
  explicit JsonWriter(JsonBuilder& out) : out_(out) {}

  // A member that there always is.
  template <class T, class As = Plain>
  void operator()(std::string_view name, const T& value, const As& as = {}) {
    out_.member(name);
    write_json(out_, value, as);
  }
  // One that older writers have left out.
  template <class T, class As = Plain>
  void optional(std::string_view name, const T& value, const As& as = {}) {
    (*this)(name, value, as);
  }
  // One that is left out unless `is_set`.
  template <class T, class As = Plain>
  void if_set(std::string_view name, const T& value, bool is_set, const As& as = {}) {
    if (is_set) (*this)(name, value, as);
  }
  // One that only repeats what others say: `make()` is written, and nothing read.
  template <class Make, class As = Plain>
  void derived(std::string_view name, const Make& make, const As& as = {}) {
    (*this)(name, make(), as);
  }
  // An object around some of the fields: `body` visits them with the visitor that it gets.
  template <class Body>
  void object(std::string_view name, const Body& body) {
    out_.member(name);
    write_object(out_, body);
  }
  // What must hold after reading: else `what` is wrong with that member.
  void require(bool, std::string_view, std::string_view) {}

 private:
  JsonBuilder& out_;
};

// A member that is missing is refused at the end: if another one is not known, it is more likely to be the mistake.
class JsonReader {
 public:
  explicit JsonReader(const JsonPlace& place) : place_(place) {}

  template <class T, class As = Plain>
  void operator()(std::string_view name, T&& value, const As& as = {}) {
    if (!place_.has(name) && missing_.empty()) missing_ = name;
    optional(name, value, as);
  }
  template <class T, class As = Plain>
  void optional(std::string_view name, T&& value, const As& as = {}) {
    known_.push_back(name);
    if (place_.has(name)) read_json(place_[name], value, as);
  }
  template <class T, class As = Plain>
  void if_set(std::string_view name, T&& value, bool, const As& as = {}) {
    optional(name, value, as);
  }
  template <class Make, class As = Plain>
  void derived(std::string_view name, const Make&, const As& = {}) {
    known_.push_back(name);
  }
  template <class Body>
  void object(std::string_view name, const Body& body) {
    known_.push_back(name);
    read_object(place_[name], body);
  }
  void require(bool holds, std::string_view name, std::string_view what) {
    if (!holds && place_.has(name)) place_[name].fail(what);
  }
  // Once all have been visited.
  void finish() const {
    if (place_.refuses_unknown()) place_.expect_members(known_);
    if (!missing_.empty()) (void)place_[missing_];
  }

 private:
  JsonPlace place_;
  std::vector<std::string_view> known_ = {};
  std::string_view missing_ = {};  // the first one
};

// An object of what `body` visits with the JsonWriter that it gets.
template <class Body>
void write_object(JsonBuilder& out, const Body& body) {
  out.begin_object();
  JsonWriter writer(out);
  body(writer);
  out.end();
}

template <class Body>
void read_object(const JsonPlace& place, const Body& body) {
  JsonReader reader(place);
  body(reader);
  reader.finish();
}

// ---- Values ---------------------------------------------------------------------------------------------------------

template <class T>
concept Struct = std::is_class_v<T> && std::is_aggregate_v<T>;
template <class T>
concept Whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T, class As = Plain>
void write_json(JsonBuilder& out, const T& value, const As& as = {}) {
  if constexpr (requires { as.write(out, value); }) {
    as.write(out, value);
  } else if constexpr (requires { value.has_value(); }) {
    if (value)
      write_json(out, *value, as);
    else
      out.add(nullptr);
  } else if constexpr (Struct<T>) {
    // The list of the fields is the same for reading.
    write_object(out, [&](JsonWriter& writer) { fields(const_cast<T&>(value), writer); });
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out.add(std::string_view(value));
  } else if constexpr (requires { typename T::period; }) {
    write_json(out, value.count());
  } else if constexpr (Whole<T>) {
    using Widest = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    out.add(Widest{value});
  } else if constexpr (std::is_arithmetic_v<T>) {
    out.add(value);
  } else {
    out.begin_list();
    if constexpr (requires { value.first; }) {
      write_json(out, value.first, as);
      write_json(out, value.second, as);
    } else {
      for (const auto& part : value) write_json(out, part, as);
    }
    out.end();
  }
}

// Fails as JsonPlace does, when what is there is anything else.
template <class T, class As = Plain>
void read_json(const JsonPlace& place, T& value, const As& as = {}) {
  if constexpr (requires { as.read(place, value); }) {
    as.read(place, value);
  } else if constexpr (requires { value.has_value(); }) {
    if (place.is_null())
      value.reset();
    else
      read_json(place, value.emplace(), as);
  } else if constexpr (Struct<T>) {
    read_object(place, [&](JsonReader& reader) { fields(value, reader); });
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = place.text();
  } else if constexpr (requires { typename T::period; }) {
    value = T(place.whole<typename T::rep>());
  } else if constexpr (Whole<T>) {
    value = place.whole<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    value = place.flag();
  } else if constexpr (std::is_same_v<T, double>) {
    value = place.real();
  } else if constexpr (requires { value.first; }) {
    if (place.size("two values") != 2) place.fail("should be a list of two values");
    read_json(place.at(0), value.first, as);
    read_json(place.at(1), value.second, as);
  } else {
    value.clear();
    for (std::size_t i = 0; i < place.size("values"); ++i) {
      if constexpr (requires { typename T::mapped_type; }) {
        std::pair<typename T::key_type, typename T::mapped_type> part;
        read_json(place.at(i), part, as);
        value.insert(std::move(part));
      } else {
        read_json(place.at(i), value.emplace_back(), as);
      }
    }
  }
}

template <class T, class Json = nlohmann::ordered_json>
Json json_of(const T& value) {
  JsonBuilder out;
  write_json(out, value);
  Json json;
  out.take(json);
  return json;
}

template <class T>
std::string json_line(const T& value) {
  JsonBuilder out;
  write_json(out, value);
  return out.line();
}

template <class T>
T parsed_json(std::string_view text, std::string source, UnknownMembers unknown = UnknownMembers::refused) {
  const JsonDocument document = JsonDocument::parse(text, std::move(source), unknown);
  T value;
  read_json(document.root(), value);
  return value;
}

// ---- How values stand in JSON ---------------------------------------------------------------------------------------
// Each of these also serves for the values in lists, pairs and optionals. What has no write() is written as it is.

// A number of a range; with whole limits whatever it is.
struct Within {
  template <class T>
  void read(const JsonPlace& place, T& value) const requires std::is_arithmetic_v<T> {
    if constexpr (Whole<T>)
      value = place.whole<T>(least, most);
    else
      value = place.real(static_cast<double>(least), static_cast<double>(most));
  }
  std::int64_t least;
  std::uint64_t most;
};
constexpr Within within(std::int64_t least, std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  return {least, most};
}

// A text of at most so many bytes.
struct ShortText {
  void read(const JsonPlace& place, std::string& value) const {
    value = place.text();
    if (value.size() > most) place.fail(fmt::format("should have at most {} bytes, and has {}", most, value.size()));
  }
  std::size_t most;
};

// A list of at most so many values, which stand there as `as` says.
template <class As = Plain>
struct ShortList {
  template <class T>
  void read(const JsonPlace& place, std::vector<T>& value) const {
    const std::size_t size = place.size("values");
    if (size > most) place.fail(fmt::format("should have at most {} values, and has {}", most, size));
    read_json(place, value, as);
  }
  std::size_t most;
  As as = {};
};

// `absent` is null.
template <class T, class As = Plain>
struct NullFor {
  void write(JsonBuilder& out, const T& value) const {
    if (value == absent)
      out.add(nullptr);
    else
      write_json(out, value, as);
  }
  void read(const JsonPlace& place, T& value) const {
    if (place.is_null())
      value = absent;
    else
      read_json(place, value, as);
  }
  T absent;
  As as = {};
};
using TextOrNull = NullFor<std::string>;

// The value of an enumeration that begins at 0, by its name.
template <class Enum>
struct Named {
  void write(JsonBuilder& out, const Enum& value) const { out.add(name(value)); }
  void read(const JsonPlace& place, Enum& value) const {
    std::vector<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(last); ++i) names.push_back(name(static_cast<Enum>(i)));
    value = static_cast<Enum>(place.one_of(names));
  }
  Enum last;
  std::string_view (*name)(Enum);
};
template <class Enum>
Named(Enum, std::string_view (*)(Enum)) -> Named<Enum>;

// The same by its number.
template <class Enum>
struct Numbered {
  void write(JsonBuilder& out, const Enum& value) const { out.add(static_cast<std::int64_t>(value)); }
  void read(const JsonPlace& place, Enum& value) const {
    value = static_cast<Enum>(place.whole<int>(0, static_cast<std::uint64_t>(last)));
  }
  Enum last;
};
template <class Enum>
Numbered(Enum) -> Numbered<Enum>;

// 64 bits as text, "0x2a": not every reader of JSON has them for a number.
struct Hexadecimal {
  void write(JsonBuilder& out, std::uint64_t value) const { write_json(out, fmt::format("{:#x}", value)); }
  void read(const JsonPlace& place, std::uint64_t& value) const { value = place.hexadecimal(); }
};

}  // namespace col::core
