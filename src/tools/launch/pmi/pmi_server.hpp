// What a launcher has to answer to ranks that are MPI programs of MPICH's family: PMI-1, lines of text over a socket
// that each rank inherits as PMI_FD. By it they learn their place, and exchange the addresses at which they talk.
//
// The protocol is that of MPICH's "simple PMI" (https://www.mpich.org, src/pmi in its sources): "cmd=put kvsname=…
// key=… value=…", each answered by one line. What a rank has put is seen by all after the next barrier.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/job/assignment.hpp"
#include "launch/processes/events.hpp"

namespace col::launch {

class PmiServer {
 public:
  using Entries = std::map<std::string, std::string, std::less<>>;

  // Calls `heard` when it has answered a rank.
  PmiServer(const Assignment& assignment, Events& events, std::function<void(int local_rank)> heard);

  // The end of the socket for a rank that is about to be started; the rank closes it when it ends. Throws LaunchError
  // if the system has no more descriptors.
  tools::UniqueFd add_rank(int local_rank);

  // The exit code with which a rank asks to be ended (MPI_Abort), once: it then waits for that.
  std::optional<int> take_abort(int local_rank);
  // What the ranks of this node have put since their last barrier, once all of them wait in the next; nothing before.
  std::optional<Entries> take_barrier();
  // The barrier is over, on all nodes: `all` is what their ranks have put.
  void end_barrier(const Entries& all);

 private:
  struct Rank {
    tools::UniqueFd socket;  // empty: it has ended, or speaks no PMI
    std::string unread;
    std::optional<int> asks_to_end_with = {};
    bool waits = false;  // in a barrier
    bool skips = false;  // the lines of a command that is not served, until the last
  };

  void on_readable(int local_rank);
  void on_line(Rank& rank, std::string_view line);
  std::string answer(Rank& rank, std::string_view line);
  std::string answer_get(std::string_view key) const;
  void say(Rank& rank, const std::string& line);

  Assignment assignment_;
  EventSource events_;
  std::vector<Rank> ranks_;
  Entries known_;  // to all, since the last barrier
  Entries put_;    // since then, by the ranks of this node
};

}  // namespace col::launch
