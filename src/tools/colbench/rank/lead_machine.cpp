// What rank 0 has the ranks do to learn what the machine can do.
#include <algorithm>
#include <array>

#include "colbench/machine/bound.hpp"
#include "colbench/machine/latency.hpp"
#include "colbench/rank/lead.hpp"
#include "colbench/rank/lead_parts.hpp"

namespace col::colbench {
namespace {

constexpr std::size_t kFitLevel = std::size_t{256} << 10;
// Working sets of a rank that the machine is described by, whatever is measured.
constexpr std::array<std::size_t, 3> kShownLevels = {std::size_t{32} << 10, std::size_t{512} << 10,
                                                     std::size_t{64} << 20};

}  // namespace

void Lead::calibrate_level(std::size_t bytes, int times) {
  auto& levels = results_.machine.levels;
  auto level = std::find_if(levels.begin(), levels.end(), [&](const auto& l) { return l.bytes == bytes; });
  if (level == levels.end()) level = levels.insert(levels.end(), {.bytes = bytes});
  const auto rate = [&](Kernel kernel, bool alone) {
    command({.kind = Command::Kind::kernel, .calibration = kernel, .alone = alone, .bytes = bytes});
    timed(1, false);  // warms up
    const auto ranks = static_cast<double>(alone ? 1 : context_.world_size);
    return ranks * static_cast<double>(traffic_of(kernel, bytes)) / least_of(timed(times, false));
  };
  for (int kernel = 0; kernel < kKernelCount; ++kernel)
    level->best = std::max(level->best, rate(static_cast<Kernel>(kernel), false));
  level->together = std::max(level->together, rate(Kernel::copy, false));
  level->alone = std::max(level->alone, rate(Kernel::copy, true));
  level->best = std::max({level->best, level->together, level->alone});
  level->calibrations += times * kKernelCount;
}

// The ranks may happen to be on one core, where they only see each other when one gives way; bound threads are not. And
// who shares a core changes places at the least.
double Lead::hand_over() {
  double best = command({.kind = Command::Kind::hand_over}).front().ended.front();
  for (const double other : {measure_hand_over(), results_.machine.switch_seconds})
    if (best > 0 && other > 0) best = std::min(best, other);
  return best;
}

void Lead::calibrate() {
  Machine& machine = results_.machine;
  machine.wake_up_seconds = measure_wake_up();
  machine.switch_seconds = measure_switch();
  machine.hand_over_seconds = hand_over();
  std::vector<std::size_t> levels;
  for (const std::size_t bytes : kShownLevels) levels.push_back(std::min(bytes, most_level(order_.method.ranks)));
  for (std::size_t i = 0; i < wanted_; ++i) levels.push_back(level_of(order_.cells[i]));
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  for (const std::size_t bytes : levels) calibrate_level(bytes, kCalibrations);
  for (const std::string& backend : order_.method.fits) fit(backend);
}

double Lead::message_seconds(const std::string& backend, std::size_t bytes) {
  for (std::size_t i = wanted_; i < order_.cells.size(); ++i) {
    const CellSpec& spec = order_.cells[i];
    if (spec.backend != backend || spec.bytes != bytes) continue;
    command({.kind = Command::Kind::set_up, .cell = static_cast<int>(i)});
    timed(order_.method.warm_ups, false);
    return median_of(timed(kFitSamples, false));
  }
  return 0;
}

// alpha: what a message of hardly any length takes; beta: what each byte adds; gamma and copy: the kernels of one rank.
void Lead::fit(const std::string& backend) {
  if (context_.world_size < 2) return;
  Machine::Fit fit{.backend = backend};
  const double least = message_seconds(backend, kFitted.front());
  const double middle = message_seconds(backend, kFitted[1]);
  const double most = message_seconds(backend, kFitted.back());
  fit.beta = std::max(0.0, (most - middle) / static_cast<double>(kFitted.back() - kFitted[1]));
  fit.alpha = least;
  const auto per_byte = [&](Kernel kernel) {
    command({.kind = Command::Kind::kernel, .calibration = kernel, .alone = true, .bytes = kFitLevel});
    timed(1, false);
    return least_of(timed(kCalibrations, false)) / (static_cast<double>(kFitLevel) / 2);
  };
  fit.gamma = per_byte(Kernel::reduce);
  fit.copy = per_byte(Kernel::copy);
  results_.machine.fits.push_back(fit);
}

}  // namespace col::colbench
