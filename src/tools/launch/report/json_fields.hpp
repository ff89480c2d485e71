// Reads the members of a JSON object from an untrusted source.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/report/story_json.hpp"

namespace col::launch {

// Every function throws StoryError if the member is missing, or is not what was asked for.
class JsonFields {
 public:
  using Json = nlohmann::ordered_json;

  // `what` is the object's name in messages.
  JsonFields(const Json& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object.is_object()) throw StoryError(fmt::format("{}: must be an object", what_));
  }

  const Json& at(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) throw StoryError(fmt::format("{}: '{}' is missing", what_, name));
    return *found;
  }
  bool is_null(const char* name) const { return at(name).is_null(); }
  JsonFields object(const char* name) const { return {at(name), fmt::format("{}: '{}'", what_, name)}; }

  bool flag(const char* name) const {
    if (!at(name).is_boolean()) fail(name, "must be true or false");
    return at(name).get<bool>();
  }

  template <std::integral Integer>
  Integer whole(const char* name, Integer least = 0, Integer most = std::numeric_limits<Integer>::max()) const {
    const Json& value = at(name);
    bool fits = false;
    if (value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      fits = std::cmp_less_equal(least, number) && std::cmp_less_equal(number, most);
    } else if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      fits = std::cmp_less_equal(least, number) && std::cmp_less_equal(number, most);
    }
    if (!fits) fail(name, fmt::format("must be a whole number from {} to {}", least, most));
    return value.get<Integer>();
  }

  // At most a million years, so that computed values are still numbers.
  double seconds(const char* name) const {
    constexpr double kMost = 3e13;
    const double value = at(name).is_number() ? at(name).get<double>() : kMost * 2;
    if (!(std::abs(value) <= kMost)) fail(name, "must be a number of seconds");
    return value;
  }

  std::string text(const char* name, std::size_t most_bytes) const {
    return text_of(at(name), fmt::format("'{}'", name), most_bytes);
  }

  std::vector<std::string> texts(const char* name, std::size_t most, std::size_t most_bytes) const {
    const Json& value = at(name);
    if (!value.is_array() || value.size() > most) fail(name, fmt::format("must be a list of at most {} texts", most));
    std::vector<std::string> texts;
    for (const Json& entry : value)
      texts.push_back(text_of(entry, fmt::format("every text of '{}'", name), most_bytes));
    return texts;
  }

  [[noreturn]] void fail(const char* name, std::string_view why) const {
    throw StoryError(fmt::format("{}: '{}' {}", what_, name, why));
  }

 private:
  std::string text_of(const Json& value, const std::string& name, std::size_t most_bytes) const {
    if (!value.is_string() || value.get_ref<const std::string&>().size() > most_bytes)
      throw StoryError(fmt::format("{}: {} must be text of at most {} bytes", what_, name, most_bytes));
    return value.get<std::string>();
  }

  const Json& object_;
  std::string what_;
};

}  // namespace col::launch
