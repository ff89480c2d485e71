#include "colbench/suite/ps_shares.hpp"

#include <algorithm>

#include <col/plan.hpp>
#include <col/select.hpp>

namespace col::colbench {
namespace {

std::size_t copied_elements(const Plan& plan) {
  std::size_t copied = 0;
  Round round;
  for (std::size_t number = 0; number < plan.rounds; ++number) {
    round.clear();
    plan.round(number, round);
    for (const Step& step : round.steps()) {
      const bool copies = step.kind == Step::Kind::copy || (step.kind == Step::Kind::convert && step.to != step.left);
      copied += copies ? step.left.count : 0;
    }
  }
  return copied;
}

}  // namespace

std::optional<std::size_t> copied_bytes(const Cell& cell) {
  const CellSpec& spec = cell.spec;
  const auto ranks = static_cast<std::size_t>(spec.ranks);
  // Every rank's tensor into a message, and the sum out of one; on worker 0 also the first tensor into the sum, and
  // that into a message.
  if (spec.operation == Operation::store) return (2 * ranks + 2) * spec.bytes;
  if (spec.ranks == 1) return spec.bytes;
  const std::string& name = cell.algorithm;
  if (name.empty()) return std::nullopt;
  try {
    const AlgorithmSpec algorithm = AlgorithmSpec::parse(name);
    const Algorithm* known = find_algorithm(Collective::allreduce, algorithm.name);
    if (known == nullptr) return std::nullopt;
    const std::size_t element = size_of(spec.dtype);
    const PlanProblem problem({.collective = Collective::allreduce,
                               .size = spec.ranks,
                               .count = spec.bytes / element,
                               .parameters = {.radix = algorithm.radix, .segment = algorithm.segment_bytes / element}});
    if (known->refuse(problem.request(0))) return std::nullopt;
    const PlanOfRank plans = plans_of(*known, problem);
    std::size_t copied = 0;
    for (int rank = 0; rank < spec.ranks; ++rank) copied += copied_elements(plans(rank));
    return copied * element;
  } catch (const Error&) {
    return std::nullopt;  // not the name of a plan
  }
}

double copy_bandwidth(const Machine& machine, std::size_t bytes, int ranks) {
  if (machine.levels.empty()) return 0;
  const auto level = std::find_if(machine.levels.begin(), machine.levels.end(),
                                  [bytes](const Machine::Level& l) { return l.bytes >= bytes; });
  const Machine::Level& found = level != machine.levels.end() ? *level : machine.levels.back();
  return ranks == 1 ? found.alone : found.together;
}

Shares shares_of(double seconds, double smallest_seconds, std::optional<std::size_t> copied, double bandwidth) {
  Shares shares;
  shares.latency = std::min(seconds, smallest_seconds);
  double left = seconds - shares.latency;
  if (copied && bandwidth > 0) {
    // Every byte that is copied is read and written.
    shares.copies = std::min(left, 2 * static_cast<double>(*copied) / bandwidth);
    left -= *shares.copies;
  }
  shares.bytes = left;
  return shares;
}

}  // namespace col::colbench
