#include "colcheck/results.hpp"

#include <algorithm>

namespace col::colcheck {

std::size_t Results::count(Finding::Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(cases.begin(), cases.end(), [&](const CaseResult& result) { return result.verdict == verdict; }));
}

}  // namespace col::colcheck
