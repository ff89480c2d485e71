// What was said about the options, by whom, before it is understood.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "colrun/option_table.hpp"
#include "common/command_line.hpp"

namespace col::colrun {

using tools::UsageError;

// A later one wins over an earlier one.
enum class Source { config_file, environment, command_line };

struct Given {
  Source source = Source::command_line;
  std::string said_as;  // for errors: "-n", "COLRUN_NP", "job.conf:3: np"
  std::string text;     // of a flag: "1" or "0"
};

// Throws UsageError: "-n takes a whole number, not '4x'".
[[noreturn]] void refuse(const Given& given, const std::string& what_it_takes);

class Values {
 public:
  // Of a flag the last one counts. Throws UsageError when an option that takes one value has one from this source
  // already.
  void add(Option option, Given given);
  // Takes over what `stronger` says: in place of what is here, and beside it where an option has several values.
  void override_by(const Values& stronger);
  void erase(Option option) { values_[index(option)].clear(); }

  // Null when nothing was said.
  const Given* find(Option option) const;
  const std::vector<Given>& all(Option option) const { return values_[index(option)]; }
  bool has(Option option) const { return !all(option).empty(); }
  // Of a flag: whether it is on.
  bool is_on(Option option) const;

 private:
  static std::size_t index(Option option) noexcept { return static_cast<std::size_t>(option); }
  std::array<std::vector<Given>, kOptionCount> values_;
};

}  // namespace col::colrun
