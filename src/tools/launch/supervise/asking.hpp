// Tells what the ranks of a job are doing, while it runs: asked by a signal, by coljob, by another node, by
// --report-hang.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/clock/clock.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/nodes/node_link.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/stacks.hpp"
#include "launch/report/why.hpp"
#include "launch/supervise/node_job.hpp"

namespace col::launch {

// Questions to the launchers of a job's other nodes: what do your ranks do? Each is over when all have answered, or
// when its time is up; those that have not answered are then named in JobStory::silent.
class Questions {
 public:
  using Time = core::Clock::time_point;
  using Done = std::function<void(JobStory)>;

  // `story`: all that is known of the job besides its ranks; JobStory::silent: of whom an answer is awaited, until the
  // meeting says whom it has asked. Returns the number of the question.
  int open(JobStory story, Time until, Done done);

  // The ranks of this node.
  void on_own(int number, JobStory story);
  // The meeting says: whom it has asked, which start it is, and the ranks that have ended.
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

class Asking {
 public:
  using Time = NodeJob::Time;

  explicit Asking(NodeJob& job) : job_(job) {}

  // Lets coljob ask, by a socket in this directory.
  void open_desk(const std::string& directory);
  // Calls `done` with the ranks of all nodes: at once if this is the only one, else when they have answered or their
  // time is up.
  void ask_all(const AskedFor& what, Questions::Done done);
  // Another node asks.
  void on_asked(const LinkEvent& event);
  Questions& questions() noexcept { return questions_; }  // to the other nodes
  // The ranks have ended, and what is asked about them has no answer any more.
  void forget();

  // The first SIGQUIT asks what the ranks wait for; one that follows soon ends the job.
  bool only_asks_why(Time now);
  void say_why();
  // Looks when a wait can have lasted for long enough. Of several nodes, the first one does.
  void report_hang(Time now);
  std::optional<Time> next_hang_look() const;

  void tick(Time now);
  std::optional<Time> deadline() const;

 private:
  using Stacks = std::vector<std::pair<pid_t, Stack>>;

  JobStory view_of_job() const;
  JobStory own_view(const AskedFor& what);
  int ranks_of_job() const;
  void on_request(const AskDesk::Request& request);
  void take_stacks(const AskedFor& what, std::function<void(JobStory)> then);
  void work_on_stacks(Time now);
  void tell_stacks(const Stacks& stacks);
  void say_why(const JobStory& story, const Why& found);
  void on_hang_view(const JobStory& story);

  NodeJob& job_;
  std::unique_ptr<AskDesk> desk_;  // null: this is the only node, or it has no ranks now
  Questions questions_;
  std::optional<StackTaker> stacks_;                              // of ranks that go on
  std::vector<std::function<void(const Stacks&)>> stack_askers_;  // to be told then
  std::optional<Time> asked_why_;                                 // the last SIGQUIT that did not end the job
  Time next_hang_look_{};
  bool looks_for_hang_ = false;  // the other nodes have been asked
};

}  // namespace col::launch
