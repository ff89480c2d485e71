// The connection of one node's launcher to the meeting of the job's nodes (meeting.hpp).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>
#include <col/proof.hpp>

#include "common/unique_fd.hpp"
#include "launch/assignment.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

// Sent by each side every kAliveInterval; a side that has heard nothing for kSilence takes the other for lost.
inline constexpr std::chrono::seconds kAliveInterval{1};
inline constexpr std::chrono::seconds kSilence{6};

// What the meeting says.
struct LinkEvent {
  enum class Kind {
    start,    // `assignment`; for a restart `why`
    abort,    // a rank on another node has failed, or a node is lost: `abort`
    signal,   // another node was told to end the job by `signal`
    limit,    // another node found that a time limit has passed: `limit`
    done,     // the job is over: `outcome`, the same on all nodes
    refused,  // the meeting does not want this node: `why`
    lost,     // it cannot be reached any more: `why`
  } kind = Kind::lost;
  Assignment assignment = {};
  AbortCause abort = {};
  int signal = 0;
  int round = 1;  // of the signal: how many the launcher has got that has got most
  EndCause limit = EndCause::timed_out;
  JobStory outcome = {};
  std::string why = {};
};

// What a node says of itself when it comes.
struct NodeHello {
  std::string id;      // of the rendezvous
  std::string secret;  // that both sides are to know, and that is not sent; may be empty
  int node_rank = -1;  // -1: any
  std::string host;
  int local_ranks = 0;  // 0: this node only looks on
  int master_port = 0;  // a free one, should rank 0 be here
  bool wants_stories = true;
};

class NodeLink {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Says hello once it is asked, and obeys once the meeting has proven that it knows the secret, too. `peer_address` is
  // that of the meeting as this node reaches it.
  NodeLink(tools::UniqueFd socket, std::string peer_address, const NodeHello& hello, Time now);

  int fd() const noexcept { return wire_.fd(); }
  // At an event of fd(), which is to be watched edge-triggered for reading and writing.
  std::vector<LinkEvent> receive(Time now);
  // Says that this node is alive, and finds out whether the meeting is; to be called at deadline().
  void tick(Time now);
  std::optional<Time> deadline() const;
  // Nothing more is to come.
  bool lost() const noexcept { return told_lost_; }

  void tell_failure(int restart, int rank, bool collateral, const std::string& what);
  void tell_signal(int signal);
  void tell_limit(EndCause cause, int restart);
  // Another node could not be started; the job's exit code is then that one.
  void tell_unreachable(const std::string& what, int exit_code);
  void tell_end(const JobStory& story, int restart);

 private:
  std::optional<LinkEvent> on_stranger(const nlohmann::json& message);
  ProofSubject subject() const;
  LinkEvent to_event(const nlohmann::json& message) const;
  bool is_possible(const Assignment& job) const;
  void tell(nlohmann::json message);

  Wire wire_;
  std::string peer_address_;
  NodeHello hello_;
  std::string meeting_nonce_, own_nonce_;  // the latter is empty until hello is said
  bool trusts_ = false;                    // the meeting has proven who it is
  std::vector<nlohmann::json> held_back_;  // until then
  Time began_at_;
  Time heard_at_;
  Time alive_at_;
  bool told_lost_ = false;
};

}  // namespace col::launch
