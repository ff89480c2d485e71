// Launchers on other hosts that this one starts by ssh.
//
// Each reads its job from its stdin, which stays open. The end of stdin tells the remote launcher to end its ranks at
// once, whatever the reason: the end of this launcher, of ssh, or of the connection. After the job comes its ranks'
// input, in frames (wire.hpp). The output of its ranks comes as whole lines by ssh's stdout and stderr.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/nodes/node_messages.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "launch/output/output.hpp"
#include "launch/processes/events.hpp"

namespace col::launch {

class Remotes {
 public:
  Remotes(Events& events, Output& output);

  // Starts one launcher on each of meeting.remotes. They meet at `port` of this host. Throws LaunchError (125) if ssh
  // cannot be started.
  void start(const JobSpec& spec, const Rendezvous& meeting, int port);

  // All data from `input` goes to ranks of that host (an index in meeting.remotes). It reads only as much as the host
  // takes.
  void give_input(std::size_t host, tools::UniqueFd input);

  void on_child_end(pid_t pid, int wait_status);
  using Time = core::Clock::time_point;
  // Hosts whose launchers ended before they had joined the job, each once. An ssh that ended with 0 may have left its
  // work in the background: then `unless_came` is set.
  std::vector<Unreachable> take_failures(Time now);
  std::optional<Time> deadline() const;  // when to ask for them
  bool any_left() const;                 // whether an ssh still runs
  // The job is over: launchers that still wait for something are told to end.
  void let_go();

 private:
  struct Remote {
    std::string host;
    int node_rank = 0;
    pid_t pid = 0;          // 0: has ended
    tools::UniqueFd input;  // ssh's stdin
    std::string unsent;     // the part from `sent` on
    std::size_t sent = 0;
    std::size_t written = 0;                 // to `input`
    bool was_read = false;                   // `input` has ended, and something of it had been read: perhaps the job
    tools::UniqueFd source;                  // the source of its ranks' input
    std::optional<Time> awaited_until = {};  // ssh has ended with 0, and its launcher is to join by then
  };

  void on_event(std::size_t index);
  void pump(Remote& remote);
  bool write(Remote& remote);
  bool read(Remote& remote);
  static void end_input(Remote& remote);
  static void look_for_reader(Remote& remote);

  EventSource events_;
  Output& output_;
  std::string ssh_;  // as the user wrote it
  std::vector<Remote> remotes_;
  std::vector<Unreachable> failures_;
  bool over_ = false;
};

// The command for a remote shell that starts colrun there: the one at the same path as this one, else the one in PATH.
std::string remote_command(const std::string& own_path);

}  // namespace col::launch
