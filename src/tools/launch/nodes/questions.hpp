// Questions to the launchers of a job's other nodes: what do your ranks do? Each is over when all have answered, or
// when its time is up; those that have not answered are then named in JobStory::silent.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "core/clock/clock.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

class Questions {
 public:
  using Time = core::Clock::time_point;
  using Done = std::function<void(JobStory)>;

  // `story`: all that is known of the job besides its ranks; JobStory::silent: of whom an answer is awaited, until the
  // meeting says whom it has asked. Returns the number of the question.
  int open(JobStory story, Time until, Done done);

  // The ranks of this node.
  void on_own(int number, JobStory story);
  // What the meeting says: whom it has asked, which start it is, and the ranks that have ended.
  void on_asked(int number, JobStory story);
  void on_answer(int number, int node_rank, JobStory story);
  void tick(Time now);
  std::optional<Time> deadline() const;

 private:
  struct Open {
    JobStory story;
    Time until;
    Done done;
    bool has_own = false, has_asked = false;
  };

  void take_ranks(Open& open, JobStory& story);
  void end_if_whole(int number);
  void end(int number);

  std::map<int, Open> open_;
  int next_ = 0;
};

}  // namespace col::launch
