// A running job that is looked at again and again. The ranks of this host are in its page; those of other hosts are
// asked for, from the job's launcher.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/report/job_story.hpp"
#include "launch/report/why.hpp"
#include "launch/times/call_watch.hpp"
#include "launch/top/rates.hpp"

namespace col::launch {

// Where a job is found.
struct JobPlace {
  std::string id;
  std::string directory;              // its own; a restart makes a new page there. Empty: it has none, and no launcher
  std::shared_ptr<ControlPage> page;  // null: no rank is on this host
};

struct JobLook {
  JobStory story;                         // with the ranks of hosts that do not answer any more, as they were
  Why found;                              // of those that answer
  std::vector<RankRates> rates;           // as many as ranks
  std::vector<std::string> notices = {};  // hosts that do not answer
};

class LiveJob {
 public:
  using Clock = core::Clock;

  explicit LiveJob(JobPlace place);

  // Asks for the ranks of other hosts, unless an answer is awaited. Returns whether it has asked.
  bool ask();
  // A descriptor that is readable when there is an answer; -1: none is awaited.
  int fd() const { return asking_ ? asking_->fd() : -1; }
  // Takes an answer. Returns whether there was one.
  bool hear();
  // Waits for the answer, for less than a second.
  void wait();

  JobLook look();
  // Whether its ranks on this host have ended, and those of other hosts, too, or the launcher cannot be asked for them.
  bool is_over() const;
  // A job whose ranks are started again has another page in the same place.
  bool finds_restart();
  // The ranks of all hosts, anew. Blocks for as long as AskingLauncher::wait(); then it is what this host knows.
  JobStory whole(const AskedFor& what) const;

 private:
  struct Heard {
    RankStory rank;
    Clock::time_point at;
  };

  void take_over(JobStory story);
  bool others_live() const;
  void add_others(JobLook& look, JobStory& fresh, Clock::time_point now) const;

  JobPlace place_;
  UseMeter meter_;  // of the ranks of this host
  RateMeter rates_;
  std::optional<AskingLauncher> asking_;
  std::optional<JobStory> job_;  // what the launcher has last said; its ranks are in heard_
  Clock::time_point heard_at_{};
  std::map<int, Heard> heard_;
  bool can_ask_ = true;      // there is a launcher
  bool waits_long_ = false;  // somebody does: calls are asked for, which tell why
};

}  // namespace col::launch
