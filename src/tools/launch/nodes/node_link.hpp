// The connection of one node's launcher to the meeting of the job's nodes (meeting.hpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <col/job.hpp>
#include <col/proof.hpp>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/assignment.hpp"
#include "launch/nodes/node_messages.hpp"
#include "launch/nodes/pulse.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/pmi/pmi_server.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

// A message from the meeting.
struct LinkEvent {
  enum class Kind {
    start,      // `assignment`; for a restart `why`
    abort,      // a rank on another node has failed, or a node is lost: `abort`
    signal,     // another node was told to end the job by `signal`
    limit,      // another node found that a time limit has passed: `limit`
    traced,     // a part of a trace, from another node: `part`, of start `restart`
    exchanged,  // the ranks of all nodes are in a barrier of PMI: `entries`, what they have put
    ask,        // another node wants to know what the ranks here do: `question`, `what`
    asked,      // whom the meeting has asked `question`: `outcome`
    answer,     // what `node_rank` says to `question`: `outcome`
    done,       // the job is over: `outcome`, the same on all nodes
    refused,    // the meeting refuses this node: `why`
    lost,       // the meeting cannot be reached any more: `why`
  } kind = Kind::lost;
  Assignment assignment = {};
  AbortCause abort = {};
  int signal = 0;
  int round = 1;  // for a signal: the largest number of signals that one launcher has got
  EndCause limit = EndCause::timed_out;
  PmiServer::Entries entries = {};
  std::string part = {};
  int restart = 0;
  int question = -1;  // -1: what was said cannot be understood
  int node_rank = -1;
  AskedFor what = {};
  JobStory outcome = {};
  std::string why = {};
};

// What a node says about itself when it connects.
struct NodeHello {
  std::string id;      // of the rendezvous
  std::string secret;  // both sides must know it; it is not sent; may be empty
  int node_rank = -1;  // -1: any
  std::string host;
  int local_ranks = 0;  // 0: this node only watches
  int master_port = 0;  // a free one, in case rank 0 is here
  bool wants_stories = true;
  bool asks_for_clock = false;  // not said: only what this node does
};

class NodeLink {
 public:
  using Time = core::Clock::time_point;

  // Says hello once it is asked. It obeys once the meeting has proven that it knows the secret too. `peer_address` is
  // the meeting's address as this node reaches it.
  NodeLink(tools::UniqueFd socket, std::string peer_address, const NodeHello& hello, Time now, Pulse pulse = Pulse());

  int fd() const noexcept { return wire_.fd(); }
  // Call it at an event of fd(), which must be watched edge-triggered for reading and writing.
  std::vector<LinkEvent> receive(Time now);
  // Says that this node is alive. Call it, and receive(), at deadline(): silence is no event.
  void tick(Time now);
  std::optional<Time> deadline() const;
  // Whether nothing more will come.
  bool lost() const noexcept { return told_lost_; }

  // Says one of node_messages.hpp.
  template <class Message>
  void tell(const Message& message) {
    send(message_of(message));
  }
  // How far this host's clock is ahead of the meeting's; nothing if this is not known.
  std::optional<ClockShift> clock() const { return clock_.shift(); }

 private:
  std::optional<LinkEvent> heard(const nlohmann::json& message);
  std::optional<LinkEvent> on_stranger(const nlohmann::json& message);
  ProofSubject subject() const;
  LinkEvent to_event(const nlohmann::json& message) const;
  bool is_possible(const Assignment& job) const;
  void send(nlohmann::json message);
  void ask_for_clock();
  void on_clock(const ClockAsked& clock);

  Wire wire_;
  std::string peer_address_;
  NodeHello hello_;
  std::string meeting_nonce_, own_nonce_;  // own_nonce_ is empty until hello is said
  bool trusts_ = false;                    // the meeting has proven who it is
  std::vector<nlohmann::json> held_back_;  // messages until then
  Time silent_since() const noexcept { return trusts_ ? heard_at_ : began_at_; }

  const Pulse pulse_;
  OwnPauses pauses_;
  ClockSamples clock_;
  Time began_at_;
  Time heard_at_;
  Time alive_at_;
  bool told_lost_ = false;
};

}  // namespace col::launch
