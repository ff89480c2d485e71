// One simulated job: its seed decides everything. See docs/architecture.md.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace col::test {

struct JobReport {
  std::uint64_t trace_hash = 0, trace_lines = 0, switches = 0;
  std::int64_t simulated_ns = 0;
  bool had_faults = false, had_errors = false;
  std::string plan;                   // in words
  std::vector<std::string> problems;  // empty: all was as promised
};

// `draws`: the version of what the seed is drawn for (plan.hpp). The trace goes to `trace`, unless that is null. A
// process may simulate many jobs, one after another, and has to end by _exit(): of ranks that were killed, threads are
// left.
JobReport simulate_job(std::uint64_t seed, int draws, std::FILE* trace);

}  // namespace col::test
