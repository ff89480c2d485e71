// The live view of a running job: `coljob top` and `colrun --watch`.
#pragma once

#include <cstddef>
#include <string>

#include "common/style.hpp"
#include "launch/top/live_job.hpp"

namespace col::launch {

struct ViewSpec {
  std::string tool;  // the name in what it says at its end
  JobPlace job;
  tools::Style style = {};
  double patience = 2;  // seconds; a wait that has lasted for longer is a hang
};

// Shows the job twice a second, until its user or the job ends it. Requires: is_live_terminal(), and one thread. Dies
// of a signal that would have ended the program, with the terminal as it was. Returns whether the job has ended.
bool run_view(const ViewSpec& spec);

// One frame of all ranks as text, with rates of half a second.
std::string one_frame(const ViewSpec& spec, std::size_t columns);

}  // namespace col::launch
