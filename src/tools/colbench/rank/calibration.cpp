#include "colbench/rank/calibration.hpp"

#include <map>

#include <fmt/format.h>

#include "colbench/machine/bound.hpp"
#include "colbench/machine/latency.hpp"
#include "colbench/rank/lead.hpp"
#include "colbench/stats/sample.hpp"

namespace col::colbench {
namespace {

// Ranks this far apart are neighbours on different nodes, where nodes have ranks that follow each other.
int distance_to_next_node(std::span<const int> nodes) {
  const auto next = std::ranges::find_if(nodes, [&](int node) { return node != nodes.front(); });
  return static_cast<int>(next - nodes.begin());
}

// Bytes that leave each node in one operation of all to all.
std::map<int, double> leaving_bytes(const CellSpec& spec, std::span<const int> nodes) {
  const std::size_t block = block_count(spec, spec.ranks) * size_of(spec.dtype);
  std::map<int, double> bytes;
  for (const int node : nodes) {
    const auto elsewhere = static_cast<double>(std::ranges::count_if(nodes, [&](int other) { return other != node; }));
    bytes[node] += elsewhere * static_cast<double>(block);
  }
  return bytes;
}

double seconds_of(const Answer& answer, std::size_t sample) {
  return sample < answer.ended.size() ? answer.ended[sample] / answer.operations : 0;
}

// The most bytes per second through one node's port, of the pairs' messages in one operation.
double best_rate(const CellSpec& spec, std::span<const Answer> answers, std::span<const int> nodes,
                 std::size_t sample) {
  std::map<int, double> rates;
  double best = 0;
  for (int rank = 0; rank < spec.ranks; ++rank) {
    const auto partner = partner_of(spec, rank, spec.ranks);
    if (!partner || !partner->begins) continue;
    const auto first = static_cast<std::size_t>(rank), second = static_cast<std::size_t>(partner->rank);
    const double seconds = std::max(seconds_of(answers[first], sample), seconds_of(answers[second], sample));
    if (nodes[first] == nodes[second] || seconds <= 0) continue;
    const double rate = static_cast<double>(spec.bytes) / seconds;
    // What hardly has a length waits for its way, not for the port: what others send meanwhile does not add to it.
    for (const int node : {nodes[first], nodes[second]})
      rates[node] = spec.bytes == kFitted.front() ? std::max(rates[node], rate) : rates[node] + rate;
    best = std::max({best, rates[nodes[first]], rates[nodes[second]]});
  }
  return best;
}

constexpr std::size_t kFitLevel = std::size_t{256} << 10;
constexpr std::size_t kSmallFitLevel = std::size_t{16} << 10;  // in the nearest cache
constexpr double kMostWindowed = 0.02;                         // seconds of a message, for a window of them
// Working sets of a rank that the machine is described by, whatever is measured.
constexpr std::array<std::size_t, 3> kShownLevels = {std::size_t{32} << 10, std::size_t{512} << 10,
                                                     std::size_t{64} << 20};

}  // namespace

std::vector<CellSpec> cells_to_fit(const std::string& backend, int ranks, std::span<const int> nodes) {
  std::vector<CellSpec> cells;
  CellSpec spec{.operation = Operation::pingpong, .backend = backend, .dtype = DType::uint8, .ranks = ranks};
  for (int last = ranks - 1; !nodes.empty() && !spec.pair; --last)
    if (nodes[static_cast<std::size_t>(last)] != nodes.front()) spec.pair = std::pair(0, last);
  const auto add_all_lengths = [&] {
    for (const std::size_t bytes : kFitted) {
      spec.bytes = bytes;
      cells.push_back(spec);
    }
  };
  add_all_lengths();
  if (nodes.empty()) return cells;
  CellSpec window = spec;
  window.operation = Operation::oneway;
  spec.pair.reset();
  spec.groups = fmt::format("bisect:{}", distance_to_next_node(nodes));
  add_all_lengths();
  cells.push_back({.operation = Operation::alltoall,
                   .backend = backend,
                   .algorithm = "linear",
                   .dtype = DType::uint8,
                   .bytes = kFitted.back(),
                   .ranks = ranks});
  cells.push_back(window);
  return cells;
}

std::vector<double> longest_of(std::span<const Answer> answers, int samples) {
  std::vector<double> seconds(static_cast<std::size_t>(samples));
  for (const Answer& answer : answers) {
    if (!answer.takes_part) continue;
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = std::max(seconds[i], seconds_of(answer, i));
  }
  return seconds;
}

double least_between_nodes(const CellSpec& spec, std::span<const Answer> answers, std::span<const int> nodes) {
  double rate = 0;
  std::size_t samples = 0;
  for (const Answer& answer : answers) samples = std::max(samples, answer.ended.size());
  if (spec.operation == Operation::alltoall) {
    double most = 0;
    for (const auto& [node, bytes] : leaving_bytes(spec, nodes)) most = std::max(most, bytes);
    for (const double seconds : longest_of(answers, static_cast<int>(samples)))
      if (seconds > 0) rate = std::max(rate, most / seconds);
  } else {
    for (std::size_t i = 0; i < samples; ++i) rate = std::max(rate, best_rate(spec, answers, nodes, i));
  }
  return rate > 0 ? static_cast<double>(spec.bytes) / rate : 0;
}

// ---- Rank 0's part --------------------------------------------------------------------------------------------------

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

namespace {

// A launcher may have bound this rank, rank 0, to fewer.
double on_all_cores(std::span<const Whereabouts> ranks, double (*measure)()) {
  const OnCores all(cores_beside(ranks, ranks.front()));
  return measure();
}

}  // namespace

// The ranks may happen to be on one core, where they only see each other when one gives way; bound threads are not. And
// who shares a core changes places at the least.
double Lead::hand_over() {
  double best = command({.kind = Command::Kind::hand_over}).front().ended.front();
  for (const double other : {on_all_cores(player_.whereabouts(), measure_hand_over), results_.machine.switch_seconds})
    if (best > 0 && other > 0) best = std::min(best, other);
  return best;
}

void Lead::calibrate() {
  Machine& machine = results_.machine;
  machine.wake_up_seconds = on_all_cores(player_.whereabouts(), measure_wake_up);
  machine.switch_seconds = measure_switch();
  machine.hand_over_seconds = hand_over();
  std::vector<std::size_t> levels;
  for (const std::size_t bytes : kShownLevels) levels.push_back(std::min(bytes, most_level(order_.method.ranks)));
  for (std::size_t i = 0; i < wanted_; ++i) levels.push_back(level_of(order_.cells[i]));
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  for (const std::size_t bytes : levels) calibrate_level(bytes, order_.calibrations);
  for (const std::string& backend : order_.method.fits) fit(backend);
}

// Of the cell at `index` of those for fitting, as longest_of(). Between nodes, the best is kept.
std::vector<double> Lead::measure_messages(Machine::Fit& fit, std::size_t index, int samples) {
  const CellSpec spec = order_.cells[index];
  // Where the wire is slow, a window only takes long.
  if (spec.operation == Operation::oneway && !fit.best.empty() && fit.best.back().seconds > kMostWindowed) return {};
  command({.kind = Command::Kind::set_up, .cell = static_cast<int>(index)});
  take(order_.method.warm_ups, false);
  const std::vector<Answer> answers = take(samples, false);
  const double best = is_one_node() ? 0 : least_between_nodes(spec, answers, results_.machine.node_of_rank);
  if (best > 0) add_best_message(fit, {spec.bytes, best, samples});
  return longest_of(answers, samples);
}

// alpha: what a message of hardly any length takes; beta: what each byte adds; gamma and copy: the kernels of one rank.
void Lead::fit(const std::string& backend) {
  if (context_.world_size < 2) return;
  Machine::Fit fit{.backend = backend};
  std::vector<double> medians;
  for (std::size_t i = wanted_; i < order_.cells.size(); ++i) {
    if (order_.cells[i].backend != backend) continue;
    const bool is_model = medians.size() < kFitted.size();
    const auto seconds = measure_messages(fit, i, is_model ? kFitSamples : order_.calibrations);
    if (is_model) medians.push_back(median(seconds));
  }
  fit.alpha = medians.front();
  fit.beta = std::max(0.0, (medians.back() - medians[1]) / static_cast<double>(kFitted.back() - kFitted[1]));
  const auto per_byte = [&](Kernel kernel, std::size_t level) {
    command({.kind = Command::Kind::kernel, .calibration = kernel, .alone = true, .bytes = level});
    timed(1, false);
    return least_of(timed(order_.calibrations, false)) / (static_cast<double>(level) / 2);
  };
  fit.gamma = per_byte(Kernel::reduce, kFitLevel);
  fit.copy = per_byte(Kernel::copy, kFitLevel);
  if (!is_one_node()) fit.best_gamma = std::min(fit.gamma, per_byte(Kernel::reduce, kSmallFitLevel));
  results_.machine.fits.push_back(fit);
}

}  // namespace col::colbench
