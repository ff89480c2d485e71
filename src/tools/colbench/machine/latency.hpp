// How long this machine takes to wake a thread up, and to change from one to another.
#pragma once

namespace col::colbench {

// From the write into a pipe to the return of the read that slept on it, in another thread: the median of about a
// hundred, in seconds. 0 when it cannot be measured.
double measure_wake_up();

// From one thread to another, each on a core of its own, through a cache line: half of the round trip, the best of
// many, in seconds. 0 when there is only one core, or threads cannot be bound.
double measure_hand_over();

// From one thread to another on the same core through sched_yield: the best of many, in seconds. 0 when threads cannot
// be bound to a core.
double measure_switch();

}  // namespace col::colbench
