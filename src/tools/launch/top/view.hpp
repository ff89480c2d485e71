// The live view of a running job: `coljob top` and `colrun --watch`.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <cstddef>
#include <string>

#include "common/style.hpp"
#include "common/unique_fd.hpp"
#include "launch/job/job_spec.hpp"
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

// `colrun --watch`: a live view of the job that this process runs. The view is a process of its own. What the ranks
// print meanwhile goes to a file without a name, and from there to the terminal once the view has ended.
class Watching {
 public:
  // Gives the job that file for its output, and no input from the terminal. Throws LaunchError if there is no terminal,
  // or no room.
  explicit Watching(JobSpec& spec);
  ~Watching() { finish(); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  // Shows the job. `lifeline`: a descriptor that the view must not keep open. Throws LaunchError.
  void start(const std::string& job_id, int lifeline);
  // Call it now and then: finds the end of the view, and passes on what the ranks have printed since.
  void work();
  bool is_shown() const { return view_ > 0; }
  // Ends the view, and passes on the rest.
  void finish();

 private:
  void pass_output();

  int out_;  // the user's
  tools::UniqueFd file_;
  off_t passed_ = 0;  // so much of the file
  pid_t view_ = 0;    // 0: there is none
  termios before_{};
};

}  // namespace col::launch
