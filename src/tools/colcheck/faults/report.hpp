// A rank's report about itself at the end of a drill: one line of JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace col::colcheck {

struct Report {
  std::string code = {};       // of the error that ended it, by col::to_string; "wrong_data"; empty if all went well
  int error_rank = -1;         // col::Error::rank()
  std::string message = {};    // of that error, or what is wrong with the data
  std::string doing = {};      // "start", "join", "call 2", "barrier": what ended in this way
  double seconds = 0;          // the time that this took
  std::string later = {};      // the code of the error of a call after the first error; empty if there was none
  std::string regrouped = {};  // "success", or what went wrong in a new group of the remaining ranks; empty: not tried
  std::uint64_t at_ns = 0;     // when it ended, CLOCK_MONOTONIC
  bool good() const { return code.empty(); }
};

std::uint64_t monotonic_ns();

// One line, without its end.
std::string encode(const Report& report);
// Nothing if the text is not a report.
std::optional<Report> decode_report(std::string_view line);

}  // namespace col::colcheck
