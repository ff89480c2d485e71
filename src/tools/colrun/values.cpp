#include "colrun/values.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace col::colrun {

void refuse(const Given& given, const std::string& what_it_takes) {
  throw UsageError(fmt::format("{} takes {}, not '{}'", given.said_as, what_it_takes, given.text));
}

void Values::add(const OptionRow& row, Given given) {
  std::vector<Given>& here = values_[index(row)];
  if (row.is_flag()) here.clear();
  if (row.takes == OptionRow::Takes::value && !here.empty()) {
    const bool same = given.source == Source::command_line;
    throw UsageError(fmt::format("{} was given twice{}; give it once", same ? row.first_name() : given.said_as,
                                 same ? std::string() : fmt::format(" (first by {})", here.front().said_as)));
  }
  here.push_back(std::move(given));
}

void Values::override_by(const Values& stronger) {
  for (const OptionRow& row : option_rows()) {
    const std::vector<Given>& theirs = stronger.all(row);
    std::vector<Given>& here = values_[index(row)];
    if (row.takes != OptionRow::Takes::values && !theirs.empty()) here.clear();
    for (const Given& given : theirs) {
      // Somebody may repeat on the command line what a file says as well; a fault is not to be injected twice.
      std::erase_if(here, [&](const Given& known) { return known.text == given.text; });
      here.push_back(given);
    }
  }
}

const Given* Values::find(Option option) const {
  return has(option) ? &all(option).back() : nullptr;
}

bool Values::is_on(Option option) const {
  return has(option) && all(option).back().text == "1";
}

}  // namespace col::colrun
