// How long this machine takes to wake up a thread, and to switch between threads.
#pragma once

#include <col/types.hpp>

namespace col::colbench {

// From the write into a pipe to the return of the read that slept on it, in another thread: the median of about a
// hundred, in seconds. 0 if it cannot be measured.
double measure_wake_up();

// From one thread to another through a cache line, each on its own core: half of the round trip, the best of many, in
// seconds. 0 if there is only one core, if threads cannot be bound, or if one of them does not get its core within 2 s.
double measure_hand_over();

// From one thread to another on the same core through sched_yield: the best of many, in seconds. 0 if threads cannot be
// bound to a core, or do not get it within 2 s.
double measure_switch();

// Two threads, bound to those cores, give each other turns. Returns the shortest time of many bursts, for one turn, in
// seconds. 0 if they cannot be bound, or have not ended after `limit`: another process may keep a core for ever.
double shortest_turn(int first_cpu, int second_cpu, Duration limit);

}  // namespace col::colbench
