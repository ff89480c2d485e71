// Where the nodes of a job meet: who is in, who starts what, and how the job ends.
//
//                      all nodes are here, or enough and no more come
//     gathering ──────────────────────────────────────────────────────► running
//        ▲  │ not enough within the time                                  │ a rank fails, a node is lost or comes,
//        │  ▼                                                             │ a signal, a time limit: all nodes are told
//        │ over ◄─────────────────────────────────────────────────────── ending   until each has ended its ranks
//        └──────────── again: restarts left, or another number of nodes ──┘
//
// The members are the launchers of the nodes. The number of its connection identifies each. A member without ranks only
// watches, and is told how the job ends: it is the launcher that has started the others by ssh, on a host that is not
// in the list.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/exit_codes.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/job_result.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/nodes/node_messages.hpp"
#include "launch/nodes/pulse.hpp"
#include "launch/report/job_story.hpp"
#include "net/listener.hpp"

namespace col::launch {

struct MeetingSpec {
  int min_nodes = 1;
  int max_nodes = 1;
  std::string id;      // of the rendezvous
  std::string secret;  // empty: no secret is required
  std::string job_id;
  std::string tool = "colrun";
  std::string host = {};  // where the ranks' store and the meeting listen; empty: everywhere
  Milliseconds join_timeout{600'000};
  Pulse pulse = Pulse();
  int max_restarts = 0;
  bool others_may_come = true;  // in place of a lost node; false if this launcher starts all of them itself
  bool keep_going = false;      // a failed rank does not end the others
  bool has_epochs = false;      // the ranks of the last epoch decide how the job has ended
  ExitPolicy exit_policy = ExitPolicy::first;
};

// The store of one generation, made when it starts.
struct MeetingStore {
  int port = 0;
  std::string salt;  // the salt of its token: store_token_of()
};

// The meeting decides only; it makes no system calls.
class Meeting {
 public:
  using Time = core::Clock::time_point;
  using Member = int;
  // With fewer than max_nodes: how much longer to wait for more nodes once there are enough.
  static constexpr std::chrono::milliseconds kLastCall{3'000};
  // After a failure that is only the consequence of another one: how long to wait for news of that one.
  static constexpr std::chrono::milliseconds kSettle{250};

  Meeting(MeetingSpec spec, std::function<MeetingStore(int restart)> make_store, Time now);

  // A launcher has connected, and is asked who it is. It must prove that it knows the secret, and is told nothing
  // before.
  void on_call(Member from);
  // `address`: the address from which the member has connected. A member whose message cannot be understood is lost.
  void on_message(Member from, const std::string& address, const nlohmann::json& message, Time now);
  void on_lost(Member member, const std::string& why, Time now);
  void tick(Time now);
  std::optional<Time> deadline() const;

  struct Letter {
    Member to = 0;
    nlohmann::json message;
    bool last = false;  // close the connection after this is sent
  };
  std::vector<Letter> take_letters();
  // Whether all members were told how the job ended.
  bool over() const noexcept { return state_ == State::over; }
  bool has(Member member) const { return nodes_.contains(member); }
  std::size_t nodes() const noexcept { return nodes_.size(); }

 private:
  enum class State { gathering, running, ending, over };

  struct Node {
    std::string host;
    std::string address;
    int wanted_rank = -1;
    int local_ranks = 0;
    int master_port = 0;
    bool wants_stories = true;
    int node_rank = -1;  // in this generation; -1: not in it
    int first_rank = 0;
    int order = 0;  // order of arrival
    bool ended = false;
    int signals = 0;                              // how many signals its launcher got that end the job
    std::optional<PmiServer::Entries> exchanged;  // what its ranks have put, while they wait in a barrier of PMI
  };
  struct Failure {
    int rank = -1;
    bool collateral = false;
    std::string what;
  };

  // What a member wants to know of the others, and has not heard of all.
  struct Question {
    Member asker = 0;
    int number = 0;  // by which the asker knows it
    std::set<Member> awaited = {};
  };

  void take(Member from, const std::string& address, const nlohmann::json& message, Time now);
  void on_hello(Member from, const std::string& address, const Hello& hello, Time now);
  void on_failed(Member from, const Failed& failed, Time now);
  void on_exchanged(Member from, Exchanged exchanged);
  void on_clock(Member from, const ClockAsked& clock);
  void on_traced(Member from, const nlohmann::json& message);
  void on_ended(Member from, const Ended& ended, Time now);
  void on_ask(Member from, const Ask& ask);
  void on_answer(Member from, Answer answer);
  void take_story(const Node& node, JobStory story);
  bool is_of_this_generation(std::optional<int> restart) const;
  void refuse(Member to, const std::string& why);

  int ranked_nodes() const;  // number of nodes with ranks
  std::string missing_nodes() const;
  bool is_elastic() const { return spec_.min_nodes < spec_.max_nodes; }
  void look_whether_all_are_here(Time now);
  std::vector<Member> order_nodes() const;
  void start(Time now);
  void tell_abort(const std::string& code, int rank, const std::string& message, Member except);
  void begin_ending(Time now);
  void look_whether_all_have_ended(Time now);
  void decide(Time now);
  void gather_again(const std::string& why, Time now);
  void finish(JobResult result);
  void finish_with_error(const std::string& error, EndCause cause, int exit_code = tools::exit_code::kLauncher);
  const Failure* culprit() const;
  void send(Member to, nlohmann::json message, bool last = false);
  void send_others(Member except, const nlohmann::json& message);

  MeetingSpec spec_;
  std::function<MeetingStore(int)> make_store_;
  State state_ = State::gathering;
  // members that have connected but not proven who they are, with the nonce of each
  std::map<Member, std::string> strangers_;
  std::map<Member, Node> nodes_;
  std::vector<Letter> letters_;
  Time join_deadline_;
  std::optional<Time> last_call_;
  std::optional<Time> abort_at_;  // when to report a collateral failure
  int arrivals_ = 0;
  int generation_ = 0;
  int started_nodes_ = 0;          // in this generation
  std::string again_because_;      // why the previous generation has ended
  int restarts_ = 0;               // restarts that count towards the limit
  bool members_change_ = false;    // a node came: all start again
  std::vector<Failure> failures_;  // of this generation, in the order of their reports
  std::vector<std::string> lost_;  // hosts, since the last start
  int signal_ = 0;
  int signal_round_ = 0;  // the largest number that one node has got
  std::optional<EndCause> limit_;
  int launcher_code_ = 0;
  std::string launcher_error_;         // from a node that could not start its ranks
  std::optional<JobResult> closed_;    // from a node whose output nobody reads any more
  std::size_t processes_left_ = 0;     // on all nodes
  std::map<int, Question> questions_;  // by the number that the others know
  int next_question_ = 0;
  std::vector<RankStory> stories_;
  JobStory first_story_;  // from the node with rank 0: what is said about the job as a whole
  bool have_story_ = false;
  std::string why_over_;  // for those that come afterwards
};

// Serves the meeting's port and the job's store, until the job is over and its members have gone.
void serve_meeting(net::Listener listener, const MeetingSpec& spec);

// Forks the process in which the nodes of a job meet, a child of the watcher on one of them. It does not belong to the
// ranks, and holds nothing of theirs. It serves the meeting's port and the job's store, and ends with the job or with
// the watcher. `close_in_child`: descriptors of the watcher that must end with the watcher. Throws LaunchError (125).
pid_t start_meeting(net::Listener listener, const MeetingSpec& spec, const std::vector<int>& close_in_child);

}  // namespace col::launch
