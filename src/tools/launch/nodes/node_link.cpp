#include "launch/nodes/node_link.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "launch/report/report_json.hpp"

namespace col::launch {

using nlohmann::json;

NodeLink::NodeLink(tools::UniqueFd socket, std::string peer_address, const NodeHello& hello, Time now, Pulse pulse)
    : wire_(std::move(socket)),
      peer_address_(std::move(peer_address)),
      hello_(hello),
      pulse_(pulse),
      pauses_(now),
      began_at_(now),
      heard_at_(now),
      alive_at_(now) {}

// What the meeting says before it has proven who it is; the event, if there is one.
std::optional<LinkEvent> NodeLink::on_stranger(const json& message) {
  LinkEvent event;
  const std::string say = said(message);
  if (say == Refused::kSay) return to_event(message);
  const auto challenge = read_as<Challenge>(message);
  if (say == Challenge::kSay && own_nonce_.empty() && challenge.protocol == kNodeProtocol) {
    meeting_nonce_ = challenge.nonce;
    own_nonce_ = make_nonce();
    wire_.send(message_of(Hello{.protocol = kNodeProtocol,
                                .id = hello_.id,
                                .nonce = own_nonce_,
                                .proof = make_proof(hello_.secret, ProofRole::client, subject()),
                                .node_rank = hello_.node_rank,
                                .host = hello_.host,
                                .local_ranks = hello_.local_ranks,
                                .master_port = hello_.master_port,
                                .wants_stories = hello_.wants_stories}));
    return std::nullopt;
  }
  if (say == Welcome::kSay && is_proof(read_as<Welcome>(message).proof, hello_.secret, ProofRole::server, subject())) {
    wire_.trust();
    trusts_ = true;
    for (const json& held : std::exchange(held_back_, {})) wire_.send(held);
    ask_for_clock();
    return std::nullopt;
  }
  if (say == Alive::kSay && !own_nonce_.empty()) return std::nullopt;
  event.why = say == Alive::kSay || say == Challenge::kSay
                  ? "it is another version of colrun; install the same one on all nodes"
                  : "it has not proven that it knows the COL_RDZV_TOKEN of this node, or that it is of this job";
  return event;
}

ProofSubject NodeLink::subject() const {
  return node_proof_subject(hello_.id, meeting_nonce_, own_nonce_);
}

std::optional<LinkEvent> NodeLink::heard(const json& message) {
  try {
    if (!trusts_) return on_stranger(message);
    if (said(message) == Alive::kSay) return std::nullopt;
    if (said(message) != ClockAsked::kSay) return to_event(message);
    on_clock(read_as<ClockAsked>(message));
    return std::nullopt;
  } catch (const MessageError& error) {
    LinkEvent event;
    event.why = fmt::format("what it says cannot be understood: {}", error.what());
    return event;
  }
}

std::vector<LinkEvent> NodeLink::receive(Time now) {
  std::vector<LinkEvent> events;
  if (told_lost_) return events;
  const auto pause = pauses_.look(now, pulse_);
  began_at_ += pause;
  heard_at_ += pause;
  wire_.flush();
  while (const auto message = wire_.next()) {
    heard_at_ = now;
    auto event = heard(*message);
    if (!event) continue;
    events.push_back(*std::move(event));
    // The last word: that the connection ends behind it is no news.
    const LinkEvent::Kind kind = events.back().kind;
    told_lost_ = kind == LinkEvent::Kind::done || kind == LinkEvent::Kind::refused || kind == LinkEvent::Kind::lost;
    if (told_lost_) return events;
  }
  const bool silent = now - silent_since() > pulse_.silence;
  if ((wire_.broken() || silent) && !std::exchange(told_lost_, true)) {
    LinkEvent event;
    event.why = !silent   ? wire_.why_broken()
                : trusts_ ? pulse_.why_lost()
                          : fmt::format("it has not proven who it is within {:g} s",
                                        std::chrono::duration<double>(pulse_.silence).count());
    events.push_back(std::move(event));
  }
  return events;
}

namespace {

// One that cannot be understood is no answer, and no reason to end a job.
void take_view(LinkEvent& event, int question, const json& story) {
  try {
    event.outcome = story_from_json(story);
    event.question = question;
  } catch (const Error&) {
    event.question = -1;
  }
}

}  // namespace

LinkEvent NodeLink::to_event(const json& message) const {
  LinkEvent event;
  const std::string say = said(message);
  if (say == Start::kSay) {
    const auto start = read_as<Start>(message);
    event.kind = LinkEvent::Kind::start;
    event.assignment = start.assignment;
    Assignment& job = event.assignment;
    job.store_url = fmt::format("tcp://{}:{}", url_host(peer_address_), start.store_port);
    job.store_token = store_token_of(hello_.secret, hello_.id, job.restart, start.store_salt);
    if (job.master_address.empty()) job.master_address = peer_address_;
    if (!is_possible(job)) {
      event.kind = LinkEvent::Kind::lost;
      event.why = "it wants this node to start what it cannot";
    }
    event.why = start.why;
  } else if (say == Abort::kSay) {
    const auto abort = read_as<Abort>(message);
    event.kind = LinkEvent::Kind::abort;
    event.abort = {error_code_from_string(abort.code).value_or(ErrorCode::aborted), abort.rank, abort.message};
  } else if (say == SignalCame::kSay) {
    const auto came = read_as<SignalCame>(message);
    event.kind = LinkEvent::Kind::signal;
    event.signal = came.signal;
    event.round = came.round.value_or(1);
  } else if (say == LimitPassed::kSay) {
    event.kind = LinkEvent::Kind::limit;
    event.limit = end_cause_from_string(read_as<LimitPassed>(message).cause);
    if (event.limit != EndCause::exit_timed_out) event.limit = EndCause::timed_out;
  } else if (say == Exchanged::kSay) {
    event.kind = LinkEvent::Kind::exchanged;
    event.entries = read_as<Exchanged>(message).entries;
  } else if (say == Traced::kSay) {
    auto traced = read_as<Traced>(message);
    event.kind = LinkEvent::Kind::traced;
    event.part = std::move(traced.part);
    event.restart = traced.restart.value_or(0);
  } else if (say == Ask::kSay) {
    const auto ask = read_as<Ask>(message);
    event.kind = LinkEvent::Kind::ask;
    event.question = ask.question;
    event.what = {.calls = ask.calls, .stacks = ask.stacks, .use = ask.use};
  } else if (say == Asked::kSay) {
    const auto asked = read_as<Asked>(message);
    event.kind = LinkEvent::Kind::asked;
    take_view(event, asked.question, asked.story);
  } else if (say == Answer::kSay) {
    const auto answer = read_as<Answer>(message);
    event.kind = LinkEvent::Kind::answer;
    event.node_rank = answer.node_rank;
    take_view(event, answer.question, answer.story);
  } else if (say == Done::kSay) {
    event.kind = LinkEvent::Kind::done;
    try {
      event.outcome = story_from_json(read_as<Done>(message).story);
    } catch (const Error& error) {
      event.kind = LinkEvent::Kind::lost;
      event.why = fmt::format("how the job ended cannot be understood: {}", error.message());
    }
  } else if (say == Refused::kSay) {
    event.kind = LinkEvent::Kind::refused;
    event.why = read_as<Refused>(message).why;
  } else {
    event.why = fmt::format("it said '{}', which this version of colrun does not know", say.substr(0, 40));
  }
  return event;
}

bool NodeLink::is_possible(const Assignment& job) const {
  return job.local_ranks == hello_.local_ranks && hello_.local_ranks > 0 && job.first_rank >= 0 && job.restart >= 0 &&
         job.world_size - hello_.local_ranks >= job.first_rank && job.node_rank >= 0 && job.node_rank < job.nodes &&
         (job.ranks_of_nodes.empty() || job.ranks_of_nodes.size() == static_cast<std::size_t>(job.nodes));
}

void NodeLink::tick(Time now) {
  if (told_lost_ || now < alive_at_ + pulse_.interval) return;
  alive_at_ = now;
  if (!trusts_) return;
  wire_.send(message_of(Alive{}));
  ask_for_clock();
}

void NodeLink::ask_for_clock() {
  if (hello_.asks_for_clock) wire_.send(message_of(ClockAsked{.asked = static_cast<std::int64_t>(core::clock_ns())}));
}

void NodeLink::on_clock(const ClockAsked& clock) {
  clock_.add(clock.asked, clock.answered, static_cast<std::int64_t>(core::clock_ns()));
  if (clock_.needs_more_early()) ask_for_clock();
}

std::optional<NodeLink::Time> NodeLink::deadline() const {
  if (told_lost_) return std::nullopt;
  return std::min(alive_at_ + pulse_.interval, silent_since() + pulse_.silence);
}

// A host may turn out to be unreachable before the meeting has answered.
void NodeLink::send(json message) {
  if (trusts_)
    wire_.send(message);
  else
    held_back_.push_back(std::move(message));
}

}  // namespace col::launch
