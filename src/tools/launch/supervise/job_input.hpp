// The launcher's own input, and who reads it: ranks of this node, launchers on other hosts for theirs, or one rank that
// has the descriptor itself.
#pragma once

#include <memory>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/nodes/remotes.hpp"
#include "launch/output/input.hpp"
#include "launch/supervise/node_job.hpp"

namespace col::launch {

class JobInput {
 public:
  explicit JobInput(NodeJob& job);

  // Ranks of other hosts read, too: then each host has a pipe with a copy of our input, and so has this one, in the
  // place of what was given.
  void share(Remotes& remotes);
  void end_sharing() { shared_.reset(); }

  void forget_ranks();
  bool is_for(int local_rank) const;
  int nothing() const noexcept { return null_.get(); }  // for one that reads no input
  // The descriptor from which the rank is to read; `copy` may own it until the rank has been started.
  int connect(int local_rank, ChildStreams& streams, tools::UniqueFd& copy);
  void on_started(int local_rank);
  void on_all_started();
  void on_rank_end(int local_rank);

  void set_shared_stopped(bool stopped);
  void suspend() {
    if (copies_) copies_->suspend();
  }
  void resume() {
    if (copies_) copies_->resume();
  }
  // Moves bytes. Returns true if there is more to do at once.
  bool work();

 private:
  bool is_for_all() const;
  void give_away();
  void replace(int by);

  NodeJob& job_;
  tools::UniqueFd null_;
  std::unique_ptr<Input> copies_;  // null: no rank reads, or one rank has the descriptor itself
  std::vector<int> readers_;       // local ranks in the order in which copies_ knows them
  std::unique_ptr<Input> shared_;  // between nodes; null: no rank of another node reads our input
  bool is_taken_ = false;          // by a rank of the first attempt
};

}  // namespace col::launch
