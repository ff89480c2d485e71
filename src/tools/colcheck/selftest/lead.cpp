#include "colcheck/selftest/lead.hpp"

#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "colcheck/options.hpp"
#include "colcheck/selftest/self_test.hpp"
#include "common/exit_codes.hpp"

namespace col::colcheck {

int run_self_test(Lead& lead, const ContextSpec& spec, std::uint64_t seed) {
  if (spec.world_size < kSelfTestRanks)
    throw UsageError(fmt::format("--self-test needs {} ranks, and this world has {}", kSelfTestRanks, spec.world_size));
  std::vector<HuntResult> catches;
  try {
    for (const PlantedBug& bug : planted_bugs()) {
      Hunt hunt(bug, seed);
      for (auto cases = hunt.next(); !cases.empty(); cases = hunt.next()) hunt.add(lead.run(cases));
      catches.push_back(hunt.result());
    }
  } catch (const RunEnded& ended) {
    fmt::print("{}colcheck: the self-test ended early: {}\n", table_of(catches), ended.why);
    return ended.exit_code;
  }
  fmt::print("{}\n", table_of(catches));
  return all_good(catches) ? tools::exit_code::kSuccess : tools::exit_code::kWrongData;
}

}  // namespace col::colcheck
