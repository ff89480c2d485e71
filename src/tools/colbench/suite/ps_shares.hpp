// How much of a method's time is latency, copies and moved bytes. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>

#include "colbench/results.hpp"

namespace col::colbench {

// Seconds; they add up to the method's time.
struct Shares {
  double latency = 0;                 // its time at the smallest size
  std::optional<double> copies = {};  // the time of its copies within ranks, at the machine's copy bandwidth
  double bytes = 0;                   // the rest: bytes between ranks, reductions, waits
};

// Bytes that the row's method copies within its ranks, for all ranks together, without the copies that carry bytes
// between them: the store's serialising and deserialising, and a plan's copy steps. Nothing if the algorithm that ran
// is not a plan.
std::optional<std::size_t> copied_bytes(const Cell& cell);

// Bytes per second, read and written, of all ranks at once, for a working set of that many bytes; 0 if it was not
// measured.
double copy_bandwidth(const Machine& machine, std::size_t bytes, int ranks);

// `copied`: as from copied_bytes(). No share is larger than what the previous ones have left.
Shares shares_of(double seconds, double smallest_seconds, std::optional<std::size_t> copied, double bandwidth);

}  // namespace col::colbench
