#include "colbench/suite/notes.hpp"

#include <string_view>

#include <fmt/format.h>

#include "colbench/report/summary.hpp"
#include "common/text.hpp"

namespace col::colbench {

std::string notes_text(const Results& results, tools::Style style) {
  std::string text;
  const auto say = [&](const std::string& line) { text += "# " + tools::one_line(line, !style.utf8) + "\n"; };
  for (const std::string& warning : results.warnings) say(warning);
  for (const Reason& reason : reasons_of(results)) {
    const std::string_view verdict = reason.measured ? "count for nothing: " : "not measured: ";
    const bool said = reason.text.starts_with(verdict);
    say(fmt::format("{} of {} {}{}", reason.cells.size(), tools::counted(results.cells.size(), "row"),
                    said ? "" : verdict, reason.text));
  }
  const Summary summary = summary_of(results);
  if (summary.measured > 0) say(verification_text(summary));
  if (!results.ended_early.empty()) say("ended before all was measured: " + results.ended_early);
  return text;
}

}  // namespace col::colbench
