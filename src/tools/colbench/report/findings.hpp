// What a reader should take away from a run, in sentences. All of it pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "colbench/results.hpp"

namespace col::colbench {

struct Findings {
  std::string subject;                 // "allreduce, broadcast"
  std::string headline;                // "✔ 12 rows measured; every row is verified"
  std::string_view tone;               // "good", "bad", or "odd" when nothing is wrong but something is missing
  std::vector<std::string> sentences;  // furthest from the bound, nearest to it, invalid rows, rows not measured
};
Findings findings_of(const Results& results);

}  // namespace col::colbench
