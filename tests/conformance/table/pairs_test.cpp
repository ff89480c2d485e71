// Every pair of circumstances, as colcheck's property `exact` makes them up, with ranks that are threads, and on
// numbers of ranks that it takes only when told to. (With ranks that are processes colcheck itself runs them.)
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/col.hpp>

#include "colcheck/engine/forms.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "conformance/group/worlds.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace {

using namespace col::colcheck;
using namespace col::test;

constexpr std::uint64_t kPairsSeed = 20261121;

Natives natives(const std::string& backend) {
  Natives all;
  check_good(run_threads(2, rank_body(2, backend, [&](col::Group& group) {
                           Natives found = native_algorithms(group);
                           if (group.rank() == 0) all = std::move(found);
                         })));
  return all;
}

void run_world(const std::string& backend, int ranks, const std::vector<Case>& cases) {
  const auto outcomes = run_threads(ranks, [&](int rank, col::Context& context) {
    Rank self(context, context.init_group({.rank = rank, .world_size = ranks, .backend_name = backend}), backend,
              std::chrono::seconds(20));
    std::vector<std::string> wrong;
    for (const Case& c : cases) {
      const Finding finding = kExact.run(self, c);
      if (finding.verdict != Finding::Verdict::pass) wrong.push_back(token_of(c) + ": " + finding.text);
    }
    expect(wrong.empty(), fmt::format("{}", fmt::join(wrong, "\n")));
  });
  INFO(backend << ", " << ranks << " ranks");
  check_good(outcomes);
}

void run_pairs(std::uint64_t seed) {
  Selection selection{.seed = seed, .backends = usable_backends(), .ranks = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16}};
  for (const std::string& backend : selection.backends) selection.natives[backend] = natives(backend);
  const std::vector<Case> cases = cases_of(kExact, selection);
  fmt::print("seed {:#x}: {} cases\n", seed, cases.size());
  INFO(fmt::format("seed {:#x}", seed));
  CHECK(cases.size() > 1000);
  std::map<std::pair<std::string, int>, std::vector<Case>> worlds;
  for (const Case& c : cases) worlds[{c.backend, c.ranks}].push_back(c);
  CHECK(worlds.size() == selection.backends.size() * selection.ranks.size());
  for (const auto& [world, own] : worlds) run_world(world.first, world.second, own);
}

}  // namespace

TEST_CASE("pairs: every pair of circumstances is right", "[table][rest]") {
  run_pairs(kPairsSeed);
}

TEST_CASE("pairs: every pair of circumstances is right with other inputs each time", "[table][rest]") {
  run_pairs(fresh_seed());
}
