#include "colcheck/results.hpp"

#include <algorithm>

namespace col::colcheck {

std::size_t Results::count(Finding::Verdict verdict) const {
  const auto kept =
      std::count_if(cases.begin(), cases.end(), [&](const CaseResult& result) { return result.verdict == verdict; });
  return static_cast<std::size_t>(kept) + (verdict == Finding::Verdict::pass ? passed_while_soaking : 0);
}

}  // namespace col::colcheck
