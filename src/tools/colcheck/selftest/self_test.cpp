#include "colcheck/selftest/self_test.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colcheck/properties/list.hpp"
#include "common/option_values.hpp"

namespace col::colcheck {
namespace {

// Cases of one group. Enough for a call to find what an earlier one left behind.
constexpr std::size_t kPortion = 100;
// More failures of a property say nothing new.
constexpr std::size_t kEnough = 3;

bool is_smaller(const Case& a, const Case& b) {
  const auto weight = [](const Case& c) {
    return std::tuple(c.ranks, c.count * size_of(c.dtype), c.asynchronous, c.in_place, token_of(c).size());
  };
  return weight(a) < weight(b);
}

const Property* property_named(std::string_view name, const PlantedBug& bug) {
  const Property* const property = find_property(name);
  if (property == nullptr)
    throw std::logic_error(fmt::format("{} is to be caught by '{}', and there is no such property", bug.name, name));
  return property;
}

// The control's are those that find any of the others.
std::vector<const Property*> properties_for(const PlantedBug& bug) {
  std::vector<const Property*> chosen;
  for (const PlantedBug& other : planted_bugs()) {
    if (other.is_control() || (!bug.is_control() && &other != &bug)) continue;
    for (const std::string_view name : tools::split(other.caught_by, ',')) {
      const Property* const property = property_named(name, other);
      if (std::find(chosen.begin(), chosen.end(), property) == chosen.end()) chosen.push_back(property);
    }
  }
  return chosen;
}

std::string finders_of(const HuntResult& one) {
  std::vector<std::string> found, missed;
  for (const HuntResult::Finder& finder : one.finders) {
    if (finder.failed > 0)
      found.push_back(fmt::format("{} ({} of {})", finder.property, finder.failed, finder.cases));
    else
      missed.push_back(fmt::format("{} ({} cases)", finder.property, finder.cases));
  }
  if (one.bug->is_control())
    return found.empty() ? "nobody, as it should be" : fmt::format("{}", fmt::join(found, ", "));
  std::string text = found.empty() ? "nobody" : fmt::format("{}", fmt::join(found, ", "));
  if (!missed.empty()) text += fmt::format("; MISSED by {}", fmt::join(missed, ", "));
  return text;
}

}  // namespace

Selection selection_for(const PlantedBug& bug, std::uint64_t seed) {
  Selection selection;
  selection.seed = seed;
  selection.backends = {bug.backend()};
  selection.ranks = {2, 3, kSelfTestRanks};
  for (const std::string_view name : tools::split(bug.algorithms, ',')) selection.algorithms.emplace_back(name);
  for (int c = 0; c <= static_cast<int>(Collective::barrier); ++c)
    selection.natives[bug.backend()][static_cast<Collective>(c)] = {Native{std::string(kPlantedAlgorithm)}};
  return selection;
}

std::size_t HuntResult::cases() const {
  return std::accumulate(finders.begin(), finders.end(), std::size_t{0},
                         [](std::size_t sum, const Finder& finder) { return sum + finder.cases; });
}

std::size_t HuntResult::failed() const {
  return std::accumulate(finders.begin(), finders.end(), std::size_t{0},
                         [](std::size_t sum, const Finder& finder) { return sum + finder.failed; });
}

bool HuntResult::is_good() const {
  return !finders.empty() && std::all_of(finders.begin(), finders.end(), [this](const Finder& finder) {
    return bug->is_control() ? finder.failed == 0 && finder.cases > finder.skipped : finder.failed > 0;
  });
}

Hunt::Hunt(const PlantedBug& bug, std::uint64_t seed) {
  result_.bug = &bug;
  const Selection selection = selection_for(bug, seed);
  for (const Property* property : properties_for(bug)) {
    result_.finders.push_back({.property = property->name});
    for (Case& c : cases_of(*property, selection)) left_[c.ranks].push_back(std::move(c));
  }
  for (auto& [ranks, cases] : left_) std::reverse(cases.begin(), cases.end());
}

std::vector<Case> Hunt::next() {
  std::vector<Case> chosen;
  while (!left_.empty() && chosen.empty()) {
    // The most ranks first: most bugs show there.
    const auto last = std::prev(left_.end());
    std::vector<Case>& cases = last->second;
    while (!cases.empty() && chosen.size() < kPortion) {
      if (wants(cases.back())) chosen.push_back(std::move(cases.back()));
      cases.pop_back();
    }
    if (cases.empty()) left_.erase(last);
  }
  return chosen;
}

void Hunt::add(std::span<const CaseResult> results) {
  for (const CaseResult& result : results) {
    HuntResult::Finder* const by = finder(result.c.property);
    if (by == nullptr) continue;
    ++by->cases;
    if (result.verdict == Finding::Verdict::skip) ++by->skipped;
    if (result.verdict != Finding::Verdict::fail) continue;
    if (result_.failed() == 0 || is_smaller(result.c, result_.smallest.c)) result_.smallest = result;
    ++by->failed;
  }
}

HuntResult::Finder* Hunt::finder(std::string_view property) {
  const auto found = std::find_if(result_.finders.begin(), result_.finders.end(),
                                  [&](const HuntResult::Finder& finder) { return finder.property == property; });
  return found == result_.finders.end() ? nullptr : &*found;
}

bool Hunt::wants(const Case& c) {
  const HuntResult::Finder* const by = finder(c.property);
  return by != nullptr && by->failed < kEnough;
}

bool all_good(std::span<const HuntResult> results) {
  return !results.empty() &&
         std::all_of(results.begin(), results.end(), [](const HuntResult& one) { return one.is_good(); });
}

std::string table_of(std::span<const HuntResult> results) {
  std::size_t width = 0, planted = 0, caught = 0, passed = 0;
  for (const HuntResult& one : results) width = std::max(width, one.bug->name.size());
  std::string text;
  for (const HuntResult& one : results) {
    text += fmt::format("{} {:{}}  caught by {}\n", one.is_good() ? "✔" : "✘", one.bug->name, width, finders_of(one));
    if (one.failed() > 0)
      text += fmt::format("  {:{}}  {} [{}]\n", "", width, one.smallest.text, token_of(one.smallest.c));
    if (one.bug->is_control()) passed += one.cases() - one.failed();
    if (!one.bug->is_control()) ++planted;
    if (!one.bug->is_control() && one.is_good()) ++caught;
  }
  return text + fmt::format("{} of {} planted bugs caught; without a bug, {} cases pass\n", caught, planted, passed);
}

}  // namespace col::colcheck
