// The values of options and their sources, before they are interpreted.
#pragma once

#include <string>
#include <vector>

#include "colrun/option_table.hpp"
#include "common/command_line.hpp"

namespace col::colrun {

using tools::UsageError;

// A later source wins over an earlier one.
enum class Source { config_file, environment, command_line };

struct Given {
  Source source = Source::command_line;
  std::string said_as;  // for errors: "-n", "COLRUN_NP", "job.conf:3: np"
  std::string text;     // for a flag: "1" or "0"
};

// Throws UsageError: "-n takes a whole number, not '4x'".
[[noreturn]] void refuse(const Given& given, const std::string& what_it_takes);

class Values {
 public:
  // For a flag, the last value counts. Throws UsageError if an option that takes one value already has one from this
  // source.
  void add(const OptionRow& row, Given given);
  // Takes over the values of `stronger`. They replace the values here; for options with several values, they are added.
  void override_by(const Values& stronger);
  void erase(Option option) { values_[index(row_of(option))].clear(); }

  // Null if no source has set it.
  const Given* find(Option option) const;
  const std::vector<Given>& all(Option option) const { return all(row_of(option)); }
  const std::vector<Given>& all(const OptionRow& row) const { return values_[index(row)]; }
  bool has(Option option) const { return !all(option).empty(); }
  // Whether a flag is on.
  bool is_on(Option option) const;

 private:
  static std::size_t index(const OptionRow& row) { return static_cast<std::size_t>(&row - option_rows().data()); }
  std::vector<std::vector<Given>> values_ = std::vector<std::vector<Given>>(option_rows().size());
};

}  // namespace col::colrun
