// How options read their values: for OptionRow::set. All that reads throws UsageError with the option's name.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/command_line.hpp"
#include "common/numbers.hpp"

namespace col::tools {

// The name of an option, as it was said, or its value.
using Word = const std::string;

// "-n takes a whole number, not '4x'".
[[noreturn]] void refuse(Word& option, Word& text, std::string_view what_it_takes);

// Completions offer `choices`.
inline Take completed(Take take, std::vector<std::string_view> choices) {
  take.choices = std::move(choices);
  return take;
}

// `place` becomes what `read(name, value)` returns.
template <class Place, class Read>
Take into(Place& place, Read read) {
  Take take = [&place, read](Word& option, Word& text) { place = read(option, text); };
  if constexpr (requires { read.choices(); }) take.choices = read.choices();
  return take;
}
// The same for a row that may be repeated.
template <class Value, class Read>
auto added_to(std::vector<Value>& list, Read read) {
  return [&list, read](Word& option, Word& text) { list.push_back(read(option, text)); };
}
inline std::string as_written(Word&, Word& text) {
  return text;
}
// For a flag.
template <class Place>
auto becomes(Place& place, Place result) {
  return [&place, result](Word&, Word&) { place = result; };
}

// Returns `parse(text)`; if that is nothing, the error says that the option takes `what`.
template <class Parse>
auto parsed_by(Parse parse, std::string_view what) {
  return [=](Word& option, Word& text) {
    auto value = parse(text);
    if (!value) refuse(option, text, what);
    return *std::move(value);
  };
}

int read_number(Word& option, Word& text, int least, int most);
inline auto number_between(int least, int most) {
  return [=](Word& option, Word& text) { return read_number(option, text, least, most); };
}

// "none, core or numa".
std::string alternatives(const std::vector<std::string_view>& names);

template <class Value>
struct OneOf {
  std::vector<std::pair<std::string_view, Value>> known;

  std::vector<std::string_view> choices() const {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : known) names.push_back(name);
    return names;
  }
  Value operator()(Word& option, Word& text) const {
    for (const auto& [name, value] : known) {
      if (text == name) return value;
    }
    refuse(option, text, alternatives(choices()));
  }
};
template <class Value>
OneOf<Value> one_of(std::vector<std::pair<std::string_view, Value>> known) {
  return {std::move(known)};
}

}  // namespace col::tools
