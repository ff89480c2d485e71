// Results to make reports of.
#pragma once

#include <cstddef>
#include <string>

#include "colbench/results.hpp"

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

}  // namespace col::colbench
