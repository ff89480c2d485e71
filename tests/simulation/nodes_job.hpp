// A simulated job of several nodes: their launchers meet, start their ranks again and again, and end together. The
// meeting, its sockets, the job's store and each node's link to them are the launcher's own; the ranks are played.
#pragma once

#include <cstdint>
#include <cstdio>

#include "simulation/job.hpp"

namespace col::test {

// As simulate_job(). There is one version of draws.
JobReport simulate_nodes(std::uint64_t seed, int draws, std::FILE* trace);

}  // namespace col::test
