// Four times as many ranks as the machine has cores: most of the awaited ranks do not run.
#include <algorithm>
#include <optional>
#include <thread>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/program.hpp"

namespace col::colcheck {
namespace {

constexpr unsigned kRanksPerCore = 4;
constexpr std::size_t kQuickLength = 6, kLength = 24;

// The fewest that are enough, so that there are cases on as many machines as can be; nothing when none of the selection
// are.
std::optional<int> enough(const Selection& selection) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  const auto found = std::find_if(selection.ranks.begin(), selection.ranks.end(),
                                  [&](int n) { return static_cast<unsigned>(n) >= kRanksPerCore * cores; });
  if (found == selection.ranks.end()) return std::nullopt;
  return *found;
}

void cases(const Selection& selection, std::vector<Case>& all) {
  const bool quick = selection.effort == Effort::quick;
  const auto ranks = enough(selection);
  if (!ranks || !selection.wants_algorithm("")) return;
  std::size_t number = 0;
  for (const std::string& backend : selection.backends) {
    // In the first few, ranks wait for all others.
    for (int i = 0; i < kPrimitiveCount; i += quick ? 6 : 1) {
      Case c;
      c.property = "many_ranks";
      c.backend = backend;
      c.ranks = *ranks;
      c.primitive = static_cast<Primitive>((i + static_cast<int>(number) / 4) % kPrimitiveCount);
      c.variant = quick ? kQuickLength : kLength;
      c.seed = mix(selection.seed, 57, ++number);
      all.push_back(std::move(c));
    }
  }
}

// The variant is the number of calls.
Finding run(Rank& rank, const Case& c) {
  std::string problem = run_program(rank.group(), {.about = c.primitive}, c.seed, c.variant);
  rank.group().barrier();
  return Finding::of(std::move(problem));
}

}  // namespace

const Property kManyRanks{"many_ranks", "four times as many ranks as cores get the right data, only later",
                          Property::Kind::group, &cases, &run};

}  // namespace col::colcheck
