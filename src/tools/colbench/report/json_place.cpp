#include "colbench/report/json_place.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/command_line.hpp"
#include "common/text.hpp"

namespace col::colbench {
namespace {

constexpr double kMostNanoseconds = 1e18;

double seconds_of(double nanoseconds) {
  return nanoseconds / 1e9;
}

bool is_time(const nlohmann::json& value) {
  if (!value.is_number()) return false;
  const double nanoseconds = value.get<double>();
  return nanoseconds >= 0 && nanoseconds <= kMostNanoseconds;
}

}  // namespace

void JsonPlace::fail(std::string_view what) const {
  throw tools::UsageError(tools::one_line(fmt::format("{}: {}{}{}", file_, place_, place_.empty() ? "" : ": ", what)));
}

JsonPlace JsonPlace::operator[](std::string_view member) const {
  if (!value_->is_object()) fail("an object is expected here");
  const auto found = value_->find(member);
  if (found == value_->end()) fail(fmt::format("'{}' is missing", member));
  return {*found, file_, fmt::format("{}{}{}", place_, place_.empty() ? "" : ".", member)};
}

bool JsonPlace::has(std::string_view member) const {
  return value_->is_object() && value_->contains(member);
}

std::vector<JsonPlace> JsonPlace::list() const {
  if (!value_->is_array()) fail("a list is expected here");
  std::vector<JsonPlace> items;
  for (std::size_t i = 0; i < value_->size(); ++i) {
    items.push_back({(*value_)[i], file_, fmt::format("{}[{}]", place_, i)});
  }
  return items;
}

std::vector<std::string> JsonPlace::names() const {
  if (!value_->is_object()) fail("an object is expected here");
  std::vector<std::string> names;
  for (const auto& [name, value] : value_->items()) names.push_back(name);
  return names;
}

bool JsonPlace::is_null() const {
  return value_->is_null();
}

bool JsonPlace::is_true() const {
  return value_->is_boolean() && value_->get<bool>();
}

bool JsonPlace::is_text() const {
  return value_->is_string();
}

std::string JsonPlace::text() const {
  if (!value_->is_string()) fail("a text is expected here");
  return value_->get<std::string>();
}

std::string JsonPlace::text_or_null() const {
  return is_null() ? "" : text();
}

bool JsonPlace::flag() const {
  if (!value_->is_boolean()) fail("true or false is expected here");
  return value_->get<bool>();
}

std::int64_t JsonPlace::whole(std::int64_t least, std::int64_t most) const {
  // Above what an int64 holds a number is unsigned, or no integer at all.
  const bool fits =
      value_->is_number_integer() &&
      (!value_->is_number_unsigned() ||
       value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  const std::int64_t number = fits ? value_->get<std::int64_t>() : 0;
  if (!fits || number < least || number > most) {
    fail(most == std::numeric_limits<std::int64_t>::max()
             ? fmt::format("a whole number from {} on is expected here", least)
             : fmt::format("a whole number from {} to {} is expected here", least, most));
  }
  return number;
}

std::size_t JsonPlace::size() const {
  return static_cast<std::size_t>(whole(0, std::numeric_limits<std::int64_t>::max()));
}

double JsonPlace::number() const {
  if (is_null()) return 0;
  if (!value_->is_number()) fail("a number is expected here");
  return value_->get<double>();
}

double JsonPlace::seconds() const {
  if (!is_time(*value_)) fail("a time in nanoseconds is expected here");
  return seconds_of(value_->get<double>());
}

std::vector<double> JsonPlace::all_seconds() const {
  if (!value_->is_array()) fail("a list of times in nanoseconds is expected here");
  std::vector<double> times;
  times.reserve(value_->size());
  for (const nlohmann::json& item : *value_) {
    if (!is_time(item)) {
      const JsonPlace place(item, file_, fmt::format("{}[{}]", place_, times.size()));
      place.fail("a time in nanoseconds is expected here");
    }
    times.push_back(seconds_of(item.get<double>()));
  }
  return times;
}

}  // namespace col::colbench
