// Times of this machine: its clock, how long it takes to wake up a thread and to switch between threads, and probes.
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <string>

#include <col/types.hpp>

#include "colbench/cell/results.hpp"

namespace col::colbench {

// CLOCK_MONOTONIC, which is equal for all processes of a host.
std::int64_t now_ns() noexcept;

// While it lives, the calling thread, and threads that it starts, may run on all of `cpus`: a rank that its launcher
// has bound to one core measures the machine, not that core. Does nothing if the set is empty, or if the system refuses
// it.
class OnCores {
 public:
  explicit OnCores(const cpu_set_t& cpus) noexcept;
  ~OnCores();
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;

 private:
  cpu_set_t before_;
  bool changed_ = false;
};

// From the write into a pipe to the return of the read that slept on it, in another thread: the median of about a
// hundred, in seconds. 0 if it cannot be measured.
double measure_wake_up();

// From one thread to another through a cache line, each on its own core: half of the round trip, the best of many, in
// seconds. 0 if there is only one core, if threads cannot be bound, or if they do not get their cores within 2 s.
double measure_hand_over();

// From one thread to another on the same core through sched_yield: the best of many, in seconds. 0 if threads cannot be
// bound to a core, or do not get it within 2 s.
double measure_switch();

// Two threads, bound to those cores, give each other turns. Returns the shortest time of many bursts, for one turn, in
// seconds; of those that are done after `limit`: another process may keep a core for ever. 0 without any, or if the
// threads cannot be bound.
double shortest_turn(int first_cpu, int second_cpu, Duration limit);

// ---- The same small work again and again, to see whether the machine changes ----------------------------------------

// The time that it takes now: about 2 ms, on this thread.
Probe take_probe();

// "the machine changed its state in 3 of 20 launches: …": these are launches beside which the machine was slower or
// faster by more than a tenth than in the middle of the run. Empty if there are none, or if nothing is known. Pure.
std::string state_text(const Results& results);

// How much slower the machine was in one of the runs than in the other, by the larger of the probes' two ratios: 0.08
// for 8 %. Nothing if a run has no probes. Pure.
std::optional<double> state_difference(const Results& a, const Results& b);

}  // namespace col::colbench
