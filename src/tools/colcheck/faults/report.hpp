// What a rank of a drill says about itself when it is done: one line of JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace col::colcheck {

struct Report {
  std::string code = {};       // of the error that ended it, by col::to_string; "wrong_data"; empty when all went well
  int error_rank = -1;         // col::Error::rank()
  std::string message = {};    // of that error; what is wrong with the data
  std::string doing = {};      // "start", "join", "call 2", "barrier": what ended so
  double seconds = 0;          // that this took
  std::string later = {};      // the code that a call after the error ended with; empty when there was none
  std::string regrouped = {};  // "success", or what went wrong in a new group of those left; empty: not tried
  std::uint64_t at_ns = 0;     // when it ended, CLOCK_MONOTONIC
  bool good() const { return code.empty(); }
};

std::uint64_t monotonic_ns();

// One line, without its end.
std::string encode(const Report& report);
// Nothing if the text is not a report.
std::optional<Report> decode_report(std::string_view line);

}  // namespace col::colcheck
