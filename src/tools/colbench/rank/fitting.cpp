#include "colbench/rank/fitting.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "colbench/rank/message_workload.hpp"

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

}  // namespace col::colbench
