// Tells what the ranks of a job are doing, while it runs: asked by a signal, by coljob, by another node, by
// --report-hang.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/nodes/ask_desk.hpp"
#include "launch/nodes/asked_for.hpp"
#include "launch/nodes/node_link.hpp"
#include "launch/nodes/questions.hpp"
#include "launch/report/why.hpp"
#include "launch/supervise/node_job.hpp"
#include "launch/supervise/rank_stacks.hpp"

namespace col::launch {

class Asking {
 public:
  using Time = NodeJob::Time;

  explicit Asking(NodeJob& job) : job_(job), stacks_(job.events) {}

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
  JobStory view_of_job() const;
  JobStory own_view(const AskedFor& what);
  int ranks_of_job() const;
  void on_request(const AskDesk::Request& request);
  void take_stacks(const AskedFor& what, std::function<void(JobStory)> then);
  void work_on_stacks(Time now);
  void tell_stacks(const RankStacks::Stacks& stacks);
  void say_why(const JobStory& story, const Why& found);
  void on_hang_view(const JobStory& story);

  NodeJob& job_;
  std::unique_ptr<AskDesk> desk_;  // null: this is the only node, or it has no ranks now
  Questions questions_;
  RankStacks stacks_;                                                         // of ranks that go on
  std::vector<std::function<void(const RankStacks::Stacks&)>> stack_askers_;  // to be told then
  std::optional<Time> asked_why_;  // the last SIGQUIT that did not end the job
  Time next_hang_look_{};
  bool looks_for_hang_ = false;  // the other nodes have been asked
};

}  // namespace col::launch
