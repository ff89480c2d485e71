// Writes calibrations of this machine that no machine would find, so that each way to the same bits is taken:
//
//   keep_costs OUTCOME    keeps it in the user's cache folder, for jobs of up to 64 ranks, which believe it by
//                         COL_CALIBRATE=kept
//   keep_costs --list     prints the outcomes
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include "backend/shm/calibration/kept_costs.hpp"

using namespace col::shm_backend;

namespace {

constexpr int kMostRanks = 64;
constexpr std::uint64_t kDear = 1'000'000'000, kDearKib = 1'000'000, kSecond = 1'000'000'000'000;

struct Outcome {
  std::string_view name;
  Costs costs;
};
constexpr Outcome kOutcomes[] = {
    // Slots cost much, above all small ones, and yields nothing.
    {"kernel",
     {.line = 60'000,
      .yield = 1,
      .look = 25'000,
      .slot_start = kDear,
      .slot_kib = kDearKib,
      .best_kib = kDearKib,
      .kernel_start = 1,
      .kernel_kib = 1,
      .exchange_kib = 1,
      .step_kib = {900'000, 800'000, 700'000}}},
    // Small ones are best, and a yield takes long.
    {"slots",
     {.line = 60'000,
      .yield = kDear,
      .look = 25'000,
      .slot_start = 1,
      .slot_kib = 1,
      .best_kib = 1,
      .kernel_start = kDear,
      .kernel_kib = kDearKib,
      .exchange_kib = kDearKib,
      .step_kib = {1, 700'000, 900'000}}},
    // The kernel is slow to begin, and slots of the middle size are best.
    {"both",
     {.line = 60'000,
      .yield = 400'000,
      .look = 25'000,
      .slot_start = 200'000,
      .slot_kib = 60'000,
      .best_kib = 30'000,
      .kernel_start = 1'000'000,
      .kernel_kib = 10'000,
      .exchange_kib = 15'000,
      .step_kib = {60'000, 30'000, 60'000}}},
    {"nothing", {}},  // takes any time
    {"endless",
     {.line = kSecond,
      .yield = kSecond,
      .look = kSecond,
      .slot_start = kSecond,
      .slot_kib = kSecond,
      .best_kib = kSecond,
      .kernel_start = kSecond,
      .kernel_kib = kSecond,
      .exchange_kib = kSecond,
      .step_kib = {kSecond, kSecond, kSecond}}},
};

int keep(const Costs& costs) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    const KeptCosts kept(KeptCosts::usual_folder(), machine_kind(ranks), static_cast<std::int64_t>(std::time(nullptr)));
    kept.lock();  // makes the folder
    const std::string problem = kept.write(costs);
    if (problem.empty()) continue;
    std::fprintf(stderr, "keep_costs: cannot write '%s': %s\n", kept.path().c_str(), problem.c_str());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc == 2 ? argv[1] : "";
  for (const Outcome& outcome : kOutcomes) {
    if (wanted == outcome.name) return keep(outcome.costs);
    if (wanted == "--list") std::printf("%s\n", std::string(outcome.name).c_str());
  }
  if (wanted == "--list") return 0;
  std::fprintf(stderr, "usage: keep_costs OUTCOME | --list\n");
  return 2;
}
