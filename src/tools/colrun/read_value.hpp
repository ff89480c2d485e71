// Option values that several groups use. Each function throws UsageError with the option's name.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "colrun/values.hpp"
#include "launch/job/job_spec.hpp"

namespace col::colrun {

int read_number(const Given& given, int least, int most);
launch::Milliseconds read_time(const Given& given, launch::Milliseconds least);
// A pattern of rank_pattern.hpp.
std::string read_pattern(const Given& given, const std::string& pattern);

// "none, core or numa".
std::string alternatives(const std::vector<std::string_view>& names);

template <class Value>
Value read_one_of(const Given& given, std::initializer_list<std::pair<std::string_view, Value>> known) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : known) {
    if (given.text == name) return value;
    names.push_back(name);
  }
  refuse(given, alternatives(names));
}

}  // namespace col::colrun
