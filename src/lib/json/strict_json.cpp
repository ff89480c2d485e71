#include "json/strict_json.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <col/error.hpp>
#include <col/select.hpp>

namespace col::core {
namespace {

using nlohmann::json;

constexpr int kDeepest = 16;

[[noreturn]] void refuse(std::string_view source, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", source, what));
}

// "line 3, column 5" of the byte number `byte`, which counts from one.
std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n');
  return fmt::format("line {}, column {}", line, before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

// What the parser says, without its own prefix: "unexpected ']'; expected '}'".
std::string_view bare(std::string_view message) {
  for (const std::string_view mark : {" - ", "] "}) {
    if (const std::size_t at = message.find(mark); at != std::string_view::npos)
      return message.substr(at + mark.size());
  }
  return message;
}

std::string_view type_of(const json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "a true or false";
  if (value.is_string()) return "a text";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  return "a number";
}

std::string number_or_type(const json& value) {
  return value.is_number() ? value.dump() : std::string(type_of(value));
}

template <class T>
void check_whole(const JsonPlace& place, const json& value, T least, T most) {
  const auto fits = [&](auto number) {
    return std::cmp_less_equal(least, number) && std::cmp_less_equal(number, most);
  };
  const bool is_one = value.is_number_unsigned() ? fits(value.get<std::uint64_t>())
                                                 : value.is_number_integer() && fits(value.get<std::int64_t>());
  if (!is_one)
    place.fail(fmt::format("should be a whole number from {} to {}, and is {}", least, most, number_or_type(value)));
}

// Members as JSON pointers write them (RFC 6901).
std::string escaped(std::string_view member) {
  std::string text;
  for (const char c : member.substr(0, 40)) text.append(c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c));
  return text;
}

// Prepends the way from `from` down to `wanted`, which is somewhere below it, at most `depth` levels.
bool find_path(const json& from, const json* wanted, int depth, std::string& path) {
  if (&from == wanted) return true;
  if (depth == 0) return false;
  if (from.is_array()) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!find_path(from[i], wanted, depth - 1, path)) continue;
      path.insert(0, fmt::format("/{}", i));
      return true;
    }
  } else if (from.is_object()) {
    for (auto member = from.begin(); member != from.end(); ++member) {
      if (!find_path(*member, wanted, depth - 1, path)) continue;
      path.insert(0, "/" + escaped(member.key()));
      return true;
    }
  }
  return false;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return text.size() <= kShown ? fmt::format("'{}'", text) : fmt::format("'{}…'", text.substr(0, kShown));
}

JsonDocument JsonDocument::parse(std::string_view text, std::string source, UnknownMembers unknown) {
  std::vector<std::set<std::string>> seen;  // the members of every object that is open
  const json::parser_callback_t check = [&](int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kDeepest)
      refuse(source, fmt::format("lists and objects nested more than {} deep", kDeepest));
    if (event == Event::object_start) seen.emplace_back();
    if (event == Event::object_end) seen.pop_back();
    if (event == Event::key && !seen.back().insert(parsed.get_ref<const std::string&>()).second)
      refuse(source,
             fmt::format("member {} comes twice in one object", in_quotes(parsed.get_ref<const std::string&>())));
    return true;
  };
  try {
    auto value = std::make_shared<const json>(
        json::parse(text.begin(), text.end(), unknown == UnknownMembers::refused ? check : json::parser_callback_t()));
    return {std::move(value), std::move(source), unknown};
  } catch (const json::parse_error& error) {
    refuse(source, fmt::format("not valid JSON at {}: {}", line_and_column(text, error.byte), bare(error.what())));
  } catch (const json::exception& error) {  // a number that no type can hold
    refuse(source, fmt::format("not usable as JSON: {}", bare(error.what())));
  }
}

JsonDocument JsonDocument::of(const json& value, std::string source) {
  return {std::shared_ptr<const json>(std::shared_ptr<void>(), &value), std::move(source), UnknownMembers::skipped};
}

JsonPlace JsonDocument::root() const {
  return {*this, *value_};
}

void JsonPlace::fail(std::string_view what) const {
  std::string path;
  find_path(*document_->value_, value_, kDeepest, path);
  refuse(document_->source_, fmt::format("{}{}{}", path.empty() ? "" : "at ", path.empty() ? "" : path + ": ", what));
}

void JsonPlace::expect_members(std::span<const std::string_view> known) const {
  for (const std::string& name : names()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view nearest = nearest_name(name, known);
    const std::string hint = nearest.empty() ? fmt::format("; known here: {}", fmt::join(known, ", "))
                                             : fmt::format("; did you mean '{}'?", nearest);
    fail(fmt::format("unknown member {}{}", in_quotes(name), hint));
  }
}

std::vector<std::string> JsonPlace::names() const {
  if (!value_->is_object()) fail(fmt::format("should be an object, and is {}", type_of(*value_)));
  std::vector<std::string> names;
  for (const auto& [name, value] : value_->items()) names.push_back(name);
  return names;
}

bool JsonPlace::has(std::string_view member) const {
  return value_->contains(member);
}

JsonPlace JsonPlace::operator[](std::string_view member) const {
  if (!value_->is_object()) fail(fmt::format("should be an object, and is {}", type_of(*value_)));
  const auto found = value_->find(member);
  if (found == value_->end()) fail(fmt::format("lacks the member '{}'", member));
  return {*document_, *found};
}

std::size_t JsonPlace::size(std::string_view of_what) const {
  if (!is_array()) fail(fmt::format("should be a list of {}, and is {}", of_what, type_of(*value_)));
  return value_->size();
}

JsonPlace JsonPlace::at(std::size_t index) const {
  return {*document_, (*value_)[index]};
}

bool JsonPlace::is_array() const noexcept {
  return value_->is_array();
}

bool JsonPlace::is_text() const noexcept {
  return value_->is_string();
}

bool JsonPlace::is_null() const noexcept {
  return value_->is_null();
}

const std::string& JsonPlace::text() const {
  if (!value_->is_string()) fail(fmt::format("should be a text, and is {}", type_of(*value_)));
  return value_->get_ref<const std::string&>();
}

bool JsonPlace::flag() const {
  if (!value_->is_boolean()) fail(fmt::format("should be true or false, and is {}", type_of(*value_)));
  return value_->get<bool>();
}

std::size_t JsonPlace::number(std::size_t least, std::size_t most) const {
  check_whole(*this, *value_, least, most);
  return value_->get<std::size_t>();
}

std::int64_t JsonPlace::integer(std::int64_t least, std::int64_t most) const {
  check_whole(*this, *value_, least, most);
  return value_->get<std::int64_t>();
}

double JsonPlace::real(double least, double most) const {
  const double number = value_->is_number() ? value_->get<double>() : 0;
  if (!value_->is_number() || !(number >= least && number <= most))
    fail(fmt::format("should be a number from {} to {}, and is {}", least, most, number_or_type(*value_)));
  return number;
}

std::uint64_t JsonPlace::hexadecimal() const {
  const std::string& digits = text();
  const char* end = digits.data() + digits.size();
  std::uint64_t number = 0;
  const bool is_one = digits.size() > 2 && digits.starts_with("0x") &&
                      std::from_chars(digits.data() + 2, end, number, 16) == std::from_chars_result{end, std::errc()};
  if (!is_one) fail(fmt::format("should be a hexadecimal number as text, \"0x2a\", and is {}", in_quotes(digits)));
  return number;
}

std::size_t JsonPlace::one_of(std::span<const std::string_view> names) const {
  const auto found = std::find(names.begin(), names.end(), text());
  if (found == names.end())
    fail(fmt::format("should be one of {}, and is {}", fmt::join(names, ", "), in_quotes(text())));
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace col::core
