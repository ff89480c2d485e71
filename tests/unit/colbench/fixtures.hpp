// What the tests of colbench share: results to make reports of, and how to look at texts.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/commands/command.hpp"

namespace col::colbench {

// A good, verified cell of 2 ranks over shm: `samples` of them in 6 launches, spread by a few percent around `seconds`
// (whole nanoseconds), and the bound at 80 % of it.
Cell sample_cell(Operation operation, const std::string& algorithm, std::size_t bytes, double seconds,
                 std::size_t samples = 42);

// What ran and where, warnings, and no cell yet.
Results sample_run();
// The same with good cells on two backends, one of few samples, one in groups, one between a pair of ranks, a barrier,
// an invalid one, one with wrong data and two that were not measured for the same reason.
Results sample_results();

// What must not be found in any report as it is: markup, quotes, an escape, a NUL, bytes that are not UTF-8.
inline const std::string kNasty =
    std::string("<b a=\"1\">&amp; ' ]]> </script> \x1b[31m \x01 \xff\xc0\xaf \xed\xa0\x80 \xc2\x9b a\nb `id` $(id)") +
    '\0' + "Z";

// How often `part` is in `text`.
std::size_t occurrences(const std::string& text, const std::string& part);
inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::vector<std::string> lines_of(const std::string& text);
std::string content_of(const std::string& path);

// What the UsageError that a call throws says, which must be one line; "nothing" when it throws none.
std::string complaint_of(const std::function<void()>& call);
// Of a command that must not go on to measure.
std::string complaint_of(int (*command)(const Invocation&), const std::vector<std::string>& arguments);

}  // namespace col::colbench
