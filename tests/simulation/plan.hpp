// The choices of a seed for a job, before it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <col/types.hpp>

#include "simulation/faults.hpp"
#include "simulation/program.hpp"

namespace col::test {

struct JobPlan {
  int ranks = 2, hosts = 1;
  bool has_pages = true;  // a control page for each host
  bool meets = false;     // by ContextSpec::meet, which makes the pages
  bool has_progress_thread = false;
  bool is_strict = false;  // COL_CHECK=strict
  bool destroys = false;   // groups one by one, before finalize()
  Duration timeout = {};
  Duration longest_delay = {};  // of most messages
  Program program = {};
  std::vector<Fault> faults = {};

  // True if something in it starts the progress thread.
  bool starts_progress_thread() const;
  int host_of(int rank) const { return rank * hosts / ranks; }
};

JobPlan choose_plan(std::uint64_t seed);
std::string describe(const JobPlan& plan);

}  // namespace col::test
