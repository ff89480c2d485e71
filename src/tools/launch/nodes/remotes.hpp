// Launchers on other hosts that this one starts by ssh.
//
// Each reads its job from its stdin, which stays open: its end tells the remote launcher to end its ranks at once,
// however this one, ssh or the connection came to an end. Behind the job comes its ranks' input, in frames
// (input_frames.hpp). What its ranks print comes by ssh's stdout and stderr as whole lines.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/unique_fd.hpp"
#include "launch/job_spec.hpp"
#include "launch/nodes/rendezvous.hpp"
#include "launch/output/output.hpp"

namespace col::launch {

class Remotes {
 public:
  // Events come as tag | index.
  Remotes(int epoll_fd, std::uint64_t tag, Output& output);

  // Starts one launcher on each of meeting.remotes, which will meet at `port` of this host. Throws LaunchError (125)
  // when ssh cannot be started.
  void start(const JobSpec& spec, const Rendezvous& meeting, int port);

  // What is read from `input` until its end is for ranks of that host, the index of one in meeting.remotes. No more is
  // read than the host takes.
  void give_input(std::size_t host, tools::UniqueFd input);

  void on_event(std::size_t index);
  void on_child_end(pid_t pid, int wait_status);
  // A host whose launcher ended before it had joined the job.
  struct Failure {
    std::string what;
    int exit_code;  // of the job
  };
  std::vector<Failure> take_failures();  // each is told once
  std::vector<pid_t> pids() const;       // of living ones
  bool any_left() const { return !pids().empty(); }
  // The job is over: those that still wait for something are told to end.
  void let_go();

 private:
  struct Remote {
    std::string host;
    pid_t pid = 0;          // 0: has ended
    tools::UniqueFd input;  // ssh's stdin
    std::string unsent;     // from `sent` on
    std::size_t sent = 0;
    tools::UniqueFd source;  // of its ranks' input
  };

  void pump(Remote& remote);
  bool write(Remote& remote);
  bool read(Remote& remote);
  static void end_input(Remote& remote);

  int epoll_fd_;
  std::uint64_t tag_;
  Output& output_;
  std::vector<Remote> remotes_;
  std::vector<Failure> failures_;
  bool over_ = false;
};

// The command that a remote shell is given to start colrun there: the one at the path of this one, else the one in
// PATH.
std::string remote_command(const std::string& own_path);

}  // namespace col::launch
