// The messages between nodes. Data from the network is never trusted to have the right form: it is read strictly, and
// whoever sends something else has lost its connection. What strangers say may lack members, as another version may
// have others.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <col/error.hpp>
#include <col/proof.hpp>

#include "json/json_fields.hpp"
#include "launch/job/assignment.hpp"
#include "launch/job/job_result.hpp"
#include "launch/job/job_spec.hpp"
#include "launch/pmi/pmi_server.hpp"
#include "launch/report/job_story.hpp"

namespace col::launch {

inline constexpr int kNodeProtocol = 7;

// The subject of the proof between a node and the meeting: both belong to rendezvous `id`.
ProofSubject node_proof_subject(std::string_view id, std::string_view meeting_nonce, std::string_view node_nonce);
// The token of the ranks' store. The meeting sends only its salt, so a listener cannot make the token without the
// secret.
std::string store_token_of(std::string_view secret, std::string_view id, int restart, std::string_view salt);

// JSON that somebody else reads: a story of ranks.
struct AnyJson {
  void write(core::JsonBuilder& out, const nlohmann::json& value) const { out.add_whole(value); }
  void read(const core::JsonPlace& place, nlohmann::json& value) const { value = place.whole_value(); }
};

// ---- Messages: one struct each, and its members in JSON are those that its fields() visits. The first ones are
// between strangers.

struct Challenge {  // by the meeting, to whoever calls
  static constexpr std::string_view kSay = "challenge";
  int protocol = 0;
  std::string nonce = {};
};
template <class Visit>
void fields(Challenge& message, Visit& visit) {
  auto& [protocol, nonce] = message;
  visit.optional("protocol", protocol);
  visit.optional("nonce", nonce);
}

struct Hello {  // by a node
  static constexpr std::string_view kSay = "hello";
  int protocol = 0;
  std::string id = {}, nonce = {}, proof = {};
  int node_rank = -1;
  std::string host = {};
  int local_ranks = 0, master_port = 0;
  bool wants_stories = false;
};
template <class Visit>
void fields(Hello& message, Visit& visit) {
  auto& [protocol, id, nonce, proof, node_rank, host, local_ranks, master_port, wants_stories] = message;
  visit.optional("protocol", protocol);
  visit.optional("id", id);
  visit.optional("nonce", nonce);
  visit.optional("proof", proof);
  visit.optional("node_rank", node_rank);
  visit.optional("host", host);
  visit.optional("local_ranks", local_ranks);
  visit.optional("master_port", master_port);
  visit.optional("wants_stories", wants_stories);
}

struct Welcome {  // by the meeting
  static constexpr std::string_view kSay = "welcome";
  std::string proof = {};
};
template <class Visit>
void fields(Welcome& message, Visit& visit) {
  auto& [proof] = message;
  visit.optional("proof", proof);
}

struct Refused {  // by the meeting: its last word
  static constexpr std::string_view kSay = "refused";
  std::string why = {};
};
template <class Visit>
void fields(Refused& message, Visit& visit) {
  auto& [why] = message;
  visit.optional("why", why);
}

struct Alive {
  static constexpr std::string_view kSay = "alive";
};
template <class Visit>
void fields(Alive&, Visit&) {}

struct Start {  // by the meeting
  static constexpr std::string_view kSay = "start";
  Assignment assignment = {.nodes = 0, .local_ranks = 0, .world_size = 0, .master_address = {}};
  std::string why = {};
  int store_port = 0;
  std::string store_salt = {};
};
template <class Visit>
void fields(Start& message, Visit& visit) {
  auto& [assignment, why, store_port, store_salt] = message;
  auto& [node_rank, nodes, first_rank, local_ranks, world_size, restart, job_id, store_url, store_token, master_address,
         master_port, ranks_of_nodes] = assignment;
  visit("node_rank", node_rank);
  visit("nodes", nodes);
  visit("first_rank", first_rank);
  visit("local_ranks", local_ranks);
  visit("world_size", world_size);
  visit("restart", restart);
  visit("why", why);
  visit("job_id", job_id);
  visit("store_port", store_port);
  visit("store_salt", store_salt);
  visit("master_address", master_address);
  visit("master_port", master_port);
  visit("ranks_of_nodes", ranks_of_nodes, core::ShortList<core::Within>{kMaxRanks, core::within(0, kMaxRanks)});
  core::stays(store_url, store_token);  // each node makes its own
}

struct Abort {  // by the meeting
  static constexpr std::string_view kSay = "abort";
  std::string code = {};
  int rank = -1;
  std::string message = {};
};
template <class Visit>
void fields(Abort& message, Visit& visit) {
  auto& [code, rank, text] = message;
  visit("code", code);
  visit("rank", rank);
  visit("message", text);
}

struct SignalCame {  // by both
  static constexpr std::string_view kSay = "signal";
  int signal = 0;
  std::optional<int> round = {};  // by the meeting only, as in LinkEvent
};
template <class Visit>
void fields(SignalCame& message, Visit& visit) {
  auto& [signal, round] = message;
  visit("signal", signal);
  visit.if_set("round", round, round.has_value());
}

struct LimitPassed {  // by both
  static constexpr std::string_view kSay = "limit";
  std::optional<int> restart = {};  // by nodes only: of which start it is
  std::string cause = {};
};
template <class Visit>
void fields(LimitPassed& message, Visit& visit) {
  auto& [restart, cause] = message;
  visit.if_set("restart", restart, restart.has_value());
  visit("cause", cause);
}

LimitPassed limit_passed(EndCause cause, int restart);

struct Failed {  // by a node: one of its ranks has failed
  static constexpr std::string_view kSay = "failed";
  std::optional<int> restart = {};
  int rank = -1;
  bool collateral = false;
  std::string what = {};
};
template <class Visit>
void fields(Failed& message, Visit& visit) {
  auto& [restart, rank, collateral, what] = message;
  visit.if_set("restart", restart, restart.has_value());
  visit("rank", rank);
  visit("collateral", collateral);
  visit("what", what);
}

struct Ended {  // by a node: all of its ranks have ended
  static constexpr std::string_view kSay = "ended";
  std::optional<int> restart = {};
  nlohmann::json story = {};  // story_from_json() checks it
};
template <class Visit>
void fields(Ended& message, Visit& visit) {
  auto& [restart, story] = message;
  visit.if_set("restart", restart, restart.has_value());
  visit("story", story, AnyJson());
}

// All ranks of a node are in a barrier of PMI: what they have put since the last. The meeting answers when all nodes
// have said so, with what all of them have put.
struct Exchanged {  // by both
  static constexpr std::string_view kSay = "exchanged";
  std::optional<int> restart = {};  // by nodes only
  PmiServer::Entries entries = {};
};
template <class Visit>
void fields(Exchanged& message, Visit& visit) {
  auto& [restart, entries] = message;
  visit.if_set("restart", restart, restart.has_value());
  visit("entries", entries);
}

// What the ranks of the job are doing, while it runs. A launcher asks; the meeting passes the question on to all others
// that have ranks, and their answers back.
struct Ask {  // by a node; by the meeting with a number of its own
  static constexpr std::string_view kSay = "ask";
  int question = -1;
  int calls = 0;  // these as in AskedFor
  bool stacks = false, use = false;
};
template <class Visit>
void fields(Ask& message, Visit& visit) {
  auto& [question, calls, stacks, use] = message;
  visit("question", question);
  visit("calls", calls);
  visit("stacks", stacks);
  visit("use", use);
}
inline Ask ask_of(int question, const AskedFor& what) {
  return {.question = question, .calls = what.calls, .stacks = what.stacks, .use = what.use};
}

struct Asked {  // by the meeting, to who has asked: whom it has asked, and what is known of ranks that have ended
  static constexpr std::string_view kSay = "asked";
  int question = -1;
  nlohmann::json story = {};
};
template <class Visit>
void fields(Asked& message, Visit& visit) {
  auto& [question, story] = message;
  visit("question", question);
  visit("story", story, AnyJson());
}

struct Answer {  // by both
  static constexpr std::string_view kSay = "answer";
  int question = -1;
  int node_rank = -1;  // by the meeting only
  nlohmann::json story = {};
};
template <class Visit>
void fields(Answer& message, Visit& visit) {
  auto& [question, node_rank, story] = message;
  visit("question", question);
  visit("node_rank", node_rank);
  visit("story", story, AnyJson());
}

struct Unreachable {  // by the node that should have started another one
  static constexpr std::string_view kSay = "unreachable";
  std::string what = {};
  int exit_code = 0;                    // of the job, then
  std::optional<int> unless_came = {};  // it says nothing if the node of this number is there
};
template <class Visit>
void fields(Unreachable& message, Visit& visit) {
  auto& [what, exit_code, unless_came] = message;
  visit("what", what);
  visit("exit_code", exit_code);
  visit.if_set("unless_came", unless_came, unless_came.has_value());
}

struct Done {  // by the meeting: its last word
  static constexpr std::string_view kSay = "done";
  nlohmann::json story = {};
};
template <class Visit>
void fields(Done& message, Visit& visit) {
  auto& [story] = message;
  visit("story", story, AnyJson());
}

// A question of a node, and the answer with the meeting's clock, in nanoseconds.
struct ClockAsked {  // by both
  static constexpr std::string_view kSay = "clock";
  std::int64_t asked = 0;
  std::int64_t answered = 0;  // by the meeting only
};
template <class Visit>
void fields(ClockAsked& message, Visit& visit) {
  auto& [asked, answered] = message;
  visit("asked", asked);
  visit("answered", answered);
}

// What a node's ranks have kept of their calls, in parts: for the node that writes the trace.
struct Traced {  // by a node, and passed on by the meeting
  static constexpr std::string_view kSay = "traced";
  std::optional<int> restart = {};
  std::string part = {};  // of Timeline::pack()
};
template <class Visit>
void fields(Traced& message, Visit& visit) {
  auto& [restart, part] = message;
  visit.if_set("restart", restart, restart.has_value());
  visit("part", part);
}

// A message cannot be read; says where, and what should be there.
class MessageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What a message says; empty if it says nothing.
std::string said(const nlohmann::json& message);

template <class Message>
nlohmann::json message_of(const Message& message) {
  nlohmann::json object = core::json_of<Message>(message);
  object["say"] = Message::kSay;
  return object;
}

// Throws MessageError.
template <class Message>
Message read_as(const nlohmann::json& message) {
  Message read;
  try {
    core::read_json(core::JsonDocument::of(message, fmt::format("'{}'", Message::kSay)).root(), read);
  } catch (const Error& error) {
    throw MessageError(error.message());
  }
  return read;
}

EndCause end_cause_from_string(std::string_view name) noexcept;  // launcher_failed if there is none of that name
std::optional<ErrorCode> error_code_from_string(std::string_view name) noexcept;

// An address in the form for a URL: IPv6 in brackets.
std::string url_host(const std::string& address);

}  // namespace col::launch
