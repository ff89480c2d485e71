// The checker is checked: do the properties find the mistakes that are planted for them, and nothing where there is
// none?
//
//   register_planted_backends();                       // on every rank
//   for (const PlantedBug& bug : planted_bugs()) {     // on the rank that gives the orders
//     Hunt hunt(bug, seed);
//     for (auto cases = hunt.next(); !cases.empty(); cases = hunt.next()) hunt.add(results of cases);
//     results.push_back(hunt.result());
//   }
//   print table_of(results); good if all_good(results)
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "colcheck/engine/property.hpp"
#include "colcheck/report/results.hpp"
#include "colcheck/selftest/planted_backend.hpp"

namespace col::colcheck {

// The bug's backend and algorithm, on few ranks.
Selection selection_for(const PlantedBug& bug, std::uint64_t seed);
// The most ranks that a case of the self-test needs.
inline constexpr int kSelfTestRanks = 4;

// What came of the search for one bug.
struct HuntResult {
  struct Finder {
    std::string_view property;
    std::size_t cases = 0, failed = 0, skipped = 0;  // of those that were run
  };
  const PlantedBug* bug = nullptr;
  std::vector<Finder> finders;  // those that have to find it; the control's: all that find any
  CaseResult smallest;          // of the failures, the one with the fewest ranks and elements

  std::size_t cases() const;
  std::size_t failed() const;
  // Every finder has failed in some case; the control: none has, and all have passed some.
  bool is_good() const;
};

// Chooses the cases that are run over one bug's backend, and looks at what comes out.
class Hunt {
 public:
  // Throws std::logic_error when the bug is to be caught by a property that does not exist.
  Hunt(const PlantedBug& bug, std::uint64_t seed);

  // Some more cases, all with the same number of ranks, to be run in one group one after the other; none when it is
  // known whether the bug is caught. Once a property has failed in three cases, no more of its cases come.
  std::vector<Case> next();
  void add(std::span<const CaseResult> results);
  const HuntResult& result() const { return result_; }

 private:
  HuntResult::Finder* finder(std::string_view property);
  bool wants(const Case& c);

  HuntResult result_;
  std::map<int, std::vector<Case>> left_;  // by ranks, the next at the end
};

bool all_good(std::span<const HuntResult> results);
// A line for each bug, and one that sums up.
std::string table_of(std::span<const HuntResult> results);

}  // namespace col::colcheck
