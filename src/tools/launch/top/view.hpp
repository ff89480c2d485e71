// The live view of a running job: `coljob top` and `colrun --watch`.
#pragma once

#include <memory>
#include <string>

#include <col/job.hpp>

#include "common/style.hpp"

namespace col::launch {

struct ViewSpec {
  std::string tool;  // the name in what it says at its end
  std::string job_id;
  std::string path;  // of the control page; a restart makes a new one there
  std::shared_ptr<ControlPage> page;
  tools::Style style = {};
  double patience = 2;  // seconds; a wait that has lasted for longer is a hang
};

// Shows the job twice a second, until its user or the job ends it. Requires: is_live_terminal(), and one thread. Dies
// of a signal that would have ended the program, with the terminal as it was. Returns whether the job has ended.
bool run_view(const ViewSpec& spec);

// One frame of all ranks as text, with rates of half a second.
std::string one_frame(const ViewSpec& spec, std::size_t columns);

}  // namespace col::launch
