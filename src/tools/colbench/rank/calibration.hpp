// The messages that show what the connections between ranks can do: which messages, and the conclusions from their
// times.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "colbench/rank/orders.hpp"

namespace col::colbench {

// Lengths of the messages whose times give alpha, beta and bounds.
inline constexpr std::array<std::size_t, 4> kFitted = {8, std::size_t{64} << 10, std::size_t{512} << 10,
                                                       std::size_t{4} << 20};

// First a ping-pong of each of these lengths between rank 0 and the last rank, or the last one on another node. With
// several nodes there are more, because one flow at a time may not fill a port: all neighbours at once, all to all, and
// many messages in a row. `nodes`: as Machine::node_of_rank.
std::vector<CellSpec> cells_to_fit(const std::string& backend, int ranks, std::span<const int> nodes);

// The time of the slowest rank for each of `samples` operations, per operation; 0 for one that was not done.
std::vector<double> longest_of(std::span<const Answer> answers, int samples);

// For those cells: the least time that spec.bytes have taken through the port of one node; 0 if none passed one. For
// the shortest messages: the least time of one message.
double least_between_nodes(const CellSpec& spec, std::span<const Answer> answers, std::span<const int> nodes);

inline constexpr int kFitSamples = 30;  // of each message for the model

inline double least_of(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

}  // namespace col::colbench
