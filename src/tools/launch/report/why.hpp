// Who waits for whom in a job, and what the end of that chain is: one sentence, from what the ranks say in the control
// page. It serves a job that runs, one that has ended, and one that was written down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/report.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/wait_graph.hpp"

namespace col::launch {

struct Why {
  enum class Cause {
    nothing,       // nobody waits
    moves,         // ranks wait for one another, and nobody is missing: data is on its way
    own_code,      // a rank is in none of col's calls, or computes in one
    not_waited,    // a rank has started the operation, and does not wait for it
    stopped,       // by a signal or a debugger
    left,          // by col::finalize(), with less calls than the others
    dead,          // its process has ended
    wrong_tag,     // a message is there, with another tag
    calls_differ,  // ranks of a group have made different calls
    circle,        // they all wait, in a circle
    no_answer      // nobody of those that are known is missing, and there are hosts that do not answer
  };
  Cause cause = Cause::nothing;
  std::string sentence;       // without a full stop
  std::vector<int> culprits;  // the likeliest first; of a circle, all that are in it; empty: nobody
  std::vector<int> waiting;   // ranks that wait, ascending
  double seconds = 0;         // how long the first of them has waited; 0: not known
};

std::string_view to_string(Why::Cause cause) noexcept;

// "allreduce #417 of group 'dp' (1,000 float32)", "recv of a message with tag 5 from rank 0 of group 'dp'".
std::string describe_call(const RankActivity& call);
// The same with what may differ from rank to rank: "…, 'backward', called in train.py:88".
std::string describe_fully(const RankActivity& call);

// Requires: RankStory::last is from one moment for all ranks.
Why why(const JobStory& story);

// "computing", "waiting", "stopped", "asleep" (a spare), "dead": of one rank, at the time of the story.
std::string_view state_of_rank(const WaitGraph& graph, std::size_t index);

// Ranks that do the same share a row.
tools::Part why_part(const JobStory& story, const Why& found);

}  // namespace col::launch
