#include "colbench/machine/probe.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "colbench/rank/start_line.hpp"
#include "colbench/stats/quantile.hpp"

namespace col::colbench {
namespace {

constexpr int kTries = 5;  // the best counts: one may be interrupted
constexpr int kSteps = 50'000;
constexpr std::size_t kCopied = std::size_t{4} << 20;
// What probes of a quiet machine differ by: its clock has a few steps, 8 % apart on the machine of
// docs/benchmarking.md.
constexpr double kSteady = 0.10;

template <class Work>
double best_of(Work work) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t begin = now_ns();
    work();
    const double seconds = static_cast<double>(now_ns() - begin) * 1e-9;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

struct Kind {
  const char* name;
  double Probe::*seconds;
};
constexpr std::array kKinds = {Kind{"spin", &Probe::spin_seconds}, Kind{"copy", &Probe::copy_seconds}};

double median_of(const Results& results, double Probe::*seconds) {
  std::vector<double> values;
  for (const Probe& probe : results.probes) values.push_back(probe.*seconds);
  return median_in_place(values);
}

}  // namespace

Probe take_probe() {
  static volatile std::uint64_t kept = 1;
  static std::vector<char> from(kCopied, 1), to(kCopied, 2);
  Probe probe;
  probe.spin_seconds = best_of([] {
    std::uint64_t x = kept;
    for (int i = 0; i < kSteps; ++i) x = x * 6364136223846793005U + 1442695040888963407U;  // each waits for the last
    kept = x;
  });
  probe.copy_seconds = best_of([] {
    std::memcpy(to.data(), from.data(), kCopied);
    kept = static_cast<std::uint64_t>(to[kept % kCopied]);
  });
  return probe;
}

std::string state_text(const Results& results) {
  const std::vector<Probe>& probes = results.probes;
  std::string worst;
  double most = 0;
  std::size_t changed = 0;
  for (std::size_t launch = 0; launch + 1 < probes.size(); ++launch) {
    bool is_other = false;
    for (const Kind& kind : kKinds) {
      const double middle = median_of(results, kind.seconds);
      const auto [low, high] = std::minmax(probes[launch].*kind.seconds, probes[launch + 1].*kind.seconds);
      // Both times: what disturbs one probe may have been over, or not begun, while the ranks ran.
      const double slower = middle > 0 ? low / middle - 1 : 0, faster = middle > 0 ? middle / high - 1 : 0;
      const double difference = std::max(slower, faster);
      if (difference <= kSteady) continue;
      is_other = true;
      if (difference <= most) continue;
      most = difference;
      worst = fmt::format("a fixed {} was {:.0f} % {} around launch {}", kind.name, 100 * difference,
                          slower > faster ? "slower" : "faster", launch + 1);
    }
    changed += is_other;
  }
  if (changed == 0) return {};
  return fmt::format("the machine changed its state in {} of {} launches: {} than in the middle of the run", changed,
                     probes.size() - 1, worst);
}

std::optional<double> state_difference(const Results& a, const Results& b) {
  double most = 0;
  for (const Kind& kind : kKinds) {
    const double of_a = median_of(a, kind.seconds), of_b = median_of(b, kind.seconds);
    if (of_a <= 0 || of_b <= 0) return std::nullopt;
    most = std::max({most, of_a / of_b - 1, of_b / of_a - 1});
  }
  return most;
}

}  // namespace col::colbench
