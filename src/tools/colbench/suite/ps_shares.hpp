// How much of a method's time is latency, how much copies, how much moved bytes. All of it pure.
#pragma once

#include <cstddef>
#include <optional>

#include "colbench/results.hpp"

namespace col::colbench {

// Seconds; they add up to the method's time.
struct Shares {
  double latency = 0;                 // its time at the smallest size
  std::optional<double> copies = {};  // what it copies within ranks would take so long, at the machine's copy bandwidth
  double bytes = 0;                   // the rest: bytes on their way between ranks, reductions, waits
};

// Bytes that the row's method copies within its ranks, for all ranks together, without the copies that carry bytes
// between them: the store's serialising and deserialising, and a plan's copy steps. Nothing if the algorithm that ran
// is not a plan.
std::optional<std::size_t> copied_bytes(const Cell& cell);

// Bytes per second, read and written, of all ranks at once at a working set of that many bytes; 0 when it was not
// measured.
double copy_bandwidth(const Machine& machine, std::size_t bytes, int ranks);

// `copied`: as copied_bytes(); no share is larger than what the ones before it have left.
Shares shares_of(double seconds, double smallest_seconds, std::optional<std::size_t> copied, double bandwidth);

}  // namespace col::colbench
