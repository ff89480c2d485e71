#include "launch/nodes/meeting.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/proof.hpp>

#include "common/exit_codes.hpp"
#include "core/clock/clock.hpp"
#include "launch/processes/signals.hpp"
#include "launch/report/rank_words.hpp"
#include "launch/report/report.hpp"
#include "launch/report/report_json.hpp"

namespace col::launch {

using nlohmann::json;
using tools::exit_code::kLauncher;

namespace {

constexpr std::size_t kMaxHostBytes = 255;
// All nodes must be able to read how the job ended, however many hosts are named.
constexpr std::size_t kMaxErrorBytes = 4096;
constexpr std::size_t kMaxQuestions = 64;  // that not all have answered

}  // namespace

Meeting::Meeting(MeetingSpec spec, std::function<MeetingStore(int)> make_store, Time now)
    : spec_(std::move(spec)), make_store_(std::move(make_store)), join_deadline_(now + spec_.join_timeout) {}

void Meeting::send(Member to, json message, bool last) {
  letters_.push_back({to, std::move(message), last});
}

void Meeting::send_others(Member except, const json& message) {
  for (const auto& [member, node] : nodes_) {
    if (member != except) send(member, message);
  }
}

std::vector<Meeting::Letter> Meeting::take_letters() {
  return std::exchange(letters_, {});
}

// ---- what members say

void Meeting::on_call(Member from) {
  const std::string& nonce = strangers_[from] = make_nonce();
  send(from, message_of(Challenge{.protocol = kNodeProtocol, .nonce = nonce}));
}

void Meeting::on_message(Member from, const std::string& address, const json& message, Time now) {
  if (state_ == State::over && has(from)) return;  // it has its last word
  try {
    take(from, address, message, now);
  } catch (const MessageError& error) {
    const std::string why = fmt::format("what it says cannot be understood: {}", error.what());
    refuse(from, why);
    on_lost(from, why, now);
  }
}

void Meeting::take(Member from, const std::string& address, const json& message, Time now) {
  const std::string say = said(message);
  if (!has(from)) {
    if (say == Hello::kSay) return on_hello(from, address, read_as<Hello>(message), now);
    return refuse(from, "it speaks before it has said who it is");
  }
  if (say == Failed::kSay) return on_failed(from, read_as<Failed>(message), now);
  if (say == Ended::kSay) return on_ended(from, read_as<Ended>(message), now);
  if (say == Exchanged::kSay) return on_exchanged(from, read_as<Exchanged>(message));
  if (say == ClockAsked::kSay) return on_clock(from, read_as<ClockAsked>(message));
  if (say == Traced::kSay) return on_traced(from, message);
  if (say == Ask::kSay) return on_ask(from, read_as<Ask>(message));
  if (say == Answer::kSay) return on_answer(from, read_as<Answer>(message));
  if (say == SignalCame::kSay) {
    const int signal = read_as<SignalCame>(message).signal;
    if (!ends_job(signal)) return;
    if (signal_ == 0) signal_ = signal;
    // One ^C may reach the launchers of all nodes: what counts is how many one of them has got.
    if (++nodes_.at(from).signals <= signal_round_) return;
    signal_round_ = nodes_.at(from).signals;
    send_others(from, message_of(SignalCame{.signal = signal, .round = signal_round_}));
    if (state_ == State::gathering) return decide(now);
    begin_ending(now);
  } else if (say == LimitPassed::kSay) {
    // A job that is ending has its cause; one that starts again after it will see the limit again.
    const auto passed = read_as<LimitPassed>(message);
    const EndCause cause = end_cause_from_string(passed.cause);
    if (state_ != State::running || !is_of_this_generation(passed.restart) ||
        (cause != EndCause::timed_out && cause != EndCause::exit_timed_out))
      return;
    limit_ = cause;
    send_others(from, message_of(LimitPassed{.cause = passed.cause}));
    begin_ending(now);
  } else if (say == Unreachable::kSay && state_ == State::gathering) {
    const auto unreachable = read_as<Unreachable>(message);
    const auto is_meant = [&](const auto& entry) { return entry.second.wanted_rank == unreachable.unless_came; };
    if (unreachable.unless_came && std::ranges::any_of(nodes_, is_meant)) return;
    const int code = unreachable.exit_code;
    const bool for_program = code == tools::exit_code::kNotFound || code == tools::exit_code::kNotExecutable;
    finish_with_error(unreachable.what, EndCause::launcher_failed, for_program ? code : kLauncher);
  }
}

void Meeting::refuse(Member to, const std::string& why) {
  send(to, message_of(Refused{.why = why}), /*last=*/true);
}

void Meeting::on_hello(Member from, const std::string& address, const Hello& hello, Time now) {
  if (hello.protocol != kNodeProtocol)
    return refuse(from, "the nodes have different versions of colrun; install the same one on all");
  // Once: a second try is a second call.
  const auto stranger = strangers_.extract(from);
  const std::string asked = stranger ? stranger.mapped() : std::string();
  const ProofSubject subject = node_proof_subject(hello.id, asked, hello.nonce);
  if (!stranger || !is_proof(hello.proof, spec_.secret, ProofRole::client, subject))
    return refuse(from, spec_.secret.empty() ? "this node has a COL_RDZV_TOKEN, the first one has none; set it on all"
                                             : "its COL_RDZV_TOKEN is missing or another; set the same on all nodes");
  if (hello.id != spec_.id)
    return refuse(from,
                  fmt::format("its --rdzv-id is '{}', that of the job there '{}'; give all nodes of a job the same "
                              "id, and each job a port of its own",
                              hello.id.substr(0, 100), spec_.id));
  // Without a word it would wait for the whole silence, and take the meeting for a stranger.
  if (state_ == State::over)
    return refuse(from, why_over_.empty() ? "the job is over" : "the job is over: " + why_over_);
  Node node;
  node.host = hello.host.substr(0, kMaxHostBytes);
  node.address = address;
  node.wanted_rank = hello.node_rank;
  node.local_ranks = std::clamp(hello.local_ranks, 0, kMaxRanks);
  node.master_port = hello.master_port;
  node.wants_stories = hello.wants_stories;
  node.order = arrivals_++;
  if (node.wanted_rank >= spec_.max_nodes)
    return refuse(
        from, fmt::format("node rank {} does not fit {} nodes; they count from 0", node.wanted_rank, spec_.max_nodes));
  for (const auto& [member, other] : nodes_) {
    if (node.wanted_rank >= 0 && other.wanted_rank == node.wanted_rank)
      return refuse(from, fmt::format("node rank {} is taken by host {}; give each node its own --node-rank",
                                      node.wanted_rank, other.host));
  }
  const bool some_have_ended = std::ranges::any_of(nodes_, [](const auto& entry) { return entry.second.ended; });
  if (node.local_ranks > 0 && state_ == State::running && some_have_ended)
    return refuse(from, "the job is about to end");
  if (node.local_ranks > 0 && ranked_nodes() >= spec_.max_nodes)
    return refuse(from, fmt::format("the job has all of its {} nodes", spec_.max_nodes));
  send(from, message_of(Welcome{.proof = make_proof(spec_.secret, ProofRole::server, subject)}));
  nodes_.emplace(from, std::move(node));
  if (nodes_.at(from).local_ranks == 0 || state_ == State::ending) return;
  if (state_ == State::gathering) return look_whether_all_are_here(now);
  // One more node than the job runs on: all begin again, with it.
  members_change_ = true;
  tell_abort("aborted", -1, fmt::format("host {} joins the job, so all ranks start again", nodes_.at(from).host), from);
  begin_ending(now);
}

bool Meeting::is_of_this_generation(std::optional<int> restart) const {
  return state_ != State::gathering && restart.value_or(generation_) == generation_;
}

void Meeting::on_failed(Member from, const Failed& failed, Time now) {
  const Node& node = nodes_.at(from);
  if (!is_of_this_generation(failed.restart) || node.node_rank < 0) return;
  const bool is_its_own = failed.rank >= node.first_rank && failed.rank - node.first_rank < node.local_ranks;
  failures_.push_back({is_its_own ? failed.rank : -1, failed.collateral, failed.what});
  if (spec_.keep_going) return;
  const auto is_own = [](const Failure& failure) { return !failure.collateral; };
  const bool first_cause = is_own(failures_.back()) && std::ranges::count_if(failures_, is_own) == 1;
  if (first_cause) {
    abort_at_.reset();
    tell_abort("peer_lost", failures_.back().rank, failures_.back().what, from);
  } else if (state_ == State::running) {
    abort_at_ = now + kSettle;
  }
  begin_ending(now);
}

void Meeting::on_exchanged(Member from, Exchanged exchanged) {
  if (state_ != State::running || !is_of_this_generation(exchanged.restart) || nodes_.at(from).node_rank < 0) return;
  nodes_.at(from).exchanged = std::move(exchanged.entries);
  const auto waits = [](const auto& entry) { return entry.second.node_rank < 0 || entry.second.exchanged; };
  if (!std::ranges::all_of(nodes_, waits)) return;
  PmiServer::Entries all;
  for (auto& [member, node] : nodes_) {
    for (auto& [key, value] : node.exchanged.value_or(PmiServer::Entries())) all.insert_or_assign(key, value);
    node.exchanged.reset();
  }
  for (const auto& [member, node] : nodes_) {
    if (node.node_rank >= 0) send(member, message_of(Exchanged{.entries = all}));
  }
}

// By the time of this moment, not that at which it was found that something has come.
void Meeting::on_clock(Member from, const ClockAsked& clock) {
  send(from, message_of(ClockAsked{.asked = clock.asked, .answered = static_cast<std::int64_t>(core::clock_ns())}));
}

// The trace is written by the one that has started the others, else by the first node.
void Meeting::on_traced(Member from, const json& message) {
  const auto wants = std::ranges::count_if(nodes_, [](const auto& entry) { return entry.second.wants_stories; });
  for (const auto& [member, node] : nodes_) {
    if (member != from && node.wants_stories && (wants == 1 || node.node_rank == 0)) send(member, message);
  }
}

void Meeting::on_ask(Member from, const Ask& ask) {
  Question question{.asker = from, .number = ask.question};
  JobStory story;
  story.job_id = spec_.job_id;
  story.nodes = std::max(1, started_nodes_);
  story.restarts = generation_;
  story.ranks = stories_;
  // Samples are for the end of the job, and are too much for a view that asks twice a second.
  for (RankStory& rank : story.ranks) {
    for (CallSite& site : rank.times.sites) site.sampled = {};
  }
  const bool runs = state_ == State::running || state_ == State::ending;
  for (const auto& [member, node] : nodes_) {
    if (!runs || member == from || node.node_rank < 0 || node.ended) continue;
    question.awaited.insert(member);
    story.silent.push_back(
        {.node_rank = node.node_rank, .host = node.host, .first_rank = node.first_rank, .ranks = node.local_ranks});
  }
  send(from, message_of(Asked{.question = ask.question, .story = story_to_json(story)}));
  Ask passed_on = ask;
  passed_on.question = next_question_;
  for (const Member member : question.awaited) send(member, message_of(passed_on));
  if (!question.awaited.empty()) questions_.emplace(next_question_, std::move(question));
  next_question_ = next_question_ == std::numeric_limits<int>::max() ? 0 : next_question_ + 1;
  // A node that does not answer must not make this grow.
  if (questions_.size() > kMaxQuestions) questions_.erase(questions_.begin());
}

void Meeting::on_answer(Member from, Answer answer) {
  const auto found = questions_.find(answer.question);
  if (found == questions_.end() || found->second.awaited.erase(from) == 0) return;
  const Question& question = found->second;
  answer.question = question.number;
  answer.node_rank = nodes_.at(from).node_rank;
  send(question.asker, message_of(std::move(answer)));
  if (question.awaited.empty()) questions_.erase(found);
}

void Meeting::on_ended(Member from, const Ended& ended, Time now) {
  Node& node = nodes_.at(from);
  if (!is_of_this_generation(ended.restart) || node.node_rank < 0 || node.ended) return;
  node.ended = true;
  const bool had_to_end = !launcher_error_.empty() || closed_;
  try {
    take_story(node, story_from_json(ended.story));
  } catch (const Error& error) {
    if (launcher_error_.empty())
      launcher_error_ = fmt::format("host {} reports what cannot be understood: {}", node.host, error.message());
  }
  if (!had_to_end && (!launcher_error_.empty() || closed_)) {
    tell_abort("peer_lost", node.first_rank,
               closed_ ? fmt::format("nobody reads the output on host {} any more", node.host) : launcher_error_, from);
    state_ = State::ending;
  }
  look_whether_all_have_ended(now);
}

void Meeting::take_story(const Node& node, JobStory story) {
  stories_.insert(stories_.end(), story.ranks.begin(), story.ranks.end());
  processes_left_ += story.processes_left;
  const JobResult& result = story.result;
  if (result.cause == EndCause::output_closed && result.error.empty()) {
    if (!closed_) closed_ = result;
  } else if (result.cause == EndCause::launcher_failed || result.cause == EndCause::output_closed) {
    if (launcher_error_.empty()) {
      launcher_error_ =
          fmt::format("host {}: {}", node.host, result.error.empty() ? "its colrun failed" : result.error);
      const bool for_program =
          result.exit_code == tools::exit_code::kNotFound || result.exit_code == tools::exit_code::kNotExecutable;
      launcher_code_ = for_program ? result.exit_code : kLauncher;
    }
  }
  if (node.node_rank == 0 || !have_story_) first_story_ = std::move(story);
  have_story_ = true;
}

void Meeting::on_lost(Member member, const std::string& why, Time now) {
  strangers_.erase(member);
  const auto found = nodes_.find(member);
  if (found == nodes_.end() || state_ == State::over) return;
  const Node node = found->second;
  nodes_.erase(found);
  // Nobody starts it again.
  if (state_ == State::gathering && !spec_.others_may_come && node.local_ranks > 0)
    return finish_with_error(
        fmt::format(
            "lost host {} before the job began: {}; its colrun was killed, or its link is cut: look there first",
            node.host, why),
        EndCause::node_lost);
  if (state_ == State::gathering && ranked_nodes() < spec_.min_nodes) last_call_.reset();
  if (state_ == State::gathering || node.node_rank < 0) return;
  if (!node.ended) {
    const int last_rank = node.first_rank + node.local_ranks - 1;
    const std::string ranks = last_rank == node.first_rank ? fmt::format("rank {}", last_rank)
                                                           : fmt::format("ranks {} to {}", node.first_rank, last_rank);
    lost_.push_back(fmt::format("{} ({})", node.host, ranks));
    tell_abort(
        "peer_lost", node.first_rank,
        fmt::format("host {} (node {}, {}) is lost: {}; it is dead or frozen, its link is cut, or its colrun was "
                    "killed: look there first",
                    node.host, node.node_rank, ranks, why),
        -1);
    begin_ending(now);
  }
  look_whether_all_have_ended(now);
}

// ---- gathering

int Meeting::ranked_nodes() const {
  return static_cast<int>(
      std::ranges::count_if(nodes_, [](const auto& entry) { return entry.second.local_ranks > 0; }));
}

void Meeting::look_whether_all_are_here(Time now) {
  const int here = ranked_nodes();
  if (here >= spec_.max_nodes) return start(now);
  if (here < spec_.min_nodes)
    last_call_.reset();
  else
    last_call_ = now + kLastCall;
}

// Those that have not come, as far as that is known: if all that came say which node they are. With their ranks, if all
// nodes have equally many.
std::string Meeting::missing_nodes() const {
  std::set<int> here, sizes;
  for (const auto& [member, node] : nodes_) {
    if (node.local_ranks == 0) continue;
    if (node.wanted_rank < 0) return {};
    here.insert(node.wanted_rank);
    sizes.insert(node.local_ranks);
  }
  if (here.empty() || spec_.min_nodes != spec_.max_nodes) return {};
  const auto run = [](std::string_view word, int first, int last) {
    return first == last ? fmt::format("{} {}", word, first) : fmt::format("{}s {}-{}", word, first, last);
  };
  std::vector<std::string> parts;
  for (int first = 0; first < spec_.max_nodes; ++first) {
    if (here.contains(first)) continue;
    int last = first;
    while (last + 1 < spec_.max_nodes && !here.contains(last + 1)) ++last;
    const int size = *sizes.begin();
    parts.push_back(run("node", first, last) +
                    (sizes.size() == 1 ? fmt::format(" ({})", run("rank", first * size, (last + 1) * size - 1)) : ""));
    first = last;
  }
  return fmt::format("; missing: {}", fmt::join(parts, ", "));
}

void Meeting::tick(Time now) {
  if (state_ == State::gathering) {
    if (last_call_ && now >= std::min(*last_call_, join_deadline_)) return start(now);
    if (now < join_deadline_) return;
    std::set<std::string> hosts;
    for (const auto& [member, node] : nodes_) {
      if (node.local_ranks > 0) hosts.insert(node.host);
    }
    finish_with_error(fmt::format("only {} of {} nodes came within {} s{}{}; start the others, or allow more time "
                                  "(--rdzv-timeout)",
                                  ranked_nodes(), spec_.min_nodes,
                                  std::chrono::duration_cast<std::chrono::seconds>(spec_.join_timeout).count(),
                                  hosts.empty() ? "" : fmt::format(" ({})", fmt::join(hosts, ", ")), missing_nodes()),
                      lost_.empty() ? EndCause::launcher_failed : EndCause::node_lost);
  } else if (state_ != State::over && abort_at_ && now >= *abort_at_) {
    abort_at_.reset();
    tell_abort("peer_lost", failures_.front().rank, failures_.front().what, -1);
  }
}

std::optional<Meeting::Time> Meeting::deadline() const {
  if (state_ == State::gathering) return last_call_ ? std::min(*last_call_, join_deadline_) : join_deadline_;
  return state_ == State::over ? std::nullopt : abort_at_;
}

// Members with ranks in the order of their node ranks: those that ask for one get it, the others fill the gaps, those
// that were here before first.
std::vector<Meeting::Member> Meeting::order_nodes() const {
  std::vector<Member> order;
  for (const auto& [member, node] : nodes_) {
    if (node.local_ranks > 0) order.push_back(member);
  }
  std::ranges::sort(order, [&](Member left, Member right) { return nodes_.at(left).order < nodes_.at(right).order; });
  std::ranges::stable_sort(order, [&](Member left, Member right) {
    const int one = nodes_.at(left).wanted_rank;
    const int other = nodes_.at(right).wanted_rank;
    return one >= 0 && (other < 0 || one < other);
  });
  std::vector<Member> placed(order.size(), -1);
  std::vector<Member> rest;
  for (const Member member : order) {
    const auto wanted = static_cast<std::size_t>(nodes_.at(member).wanted_rank);
    if (nodes_.at(member).wanted_rank >= 0 && wanted < placed.size() && placed[wanted] < 0)
      placed[wanted] = member;
    else
      rest.push_back(member);
  }
  auto next = rest.begin();
  for (Member& place : placed) {
    if (place < 0) place = *next++;
  }
  return placed;
}

void Meeting::start(Time) {
  state_ = State::running;
  last_call_.reset();
  lost_.clear();
  const std::vector<Member> order = order_nodes();
  started_nodes_ = static_cast<int>(order.size());
  int world = 0;
  std::vector<int> ranks_of_nodes;
  for (std::size_t index = 0; index < order.size(); ++index) {
    Node& node = nodes_.at(order[index]);
    node.node_rank = static_cast<int>(index);
    node.first_rank = world;
    node.ended = false;
    node.exchanged.reset();
    world += node.local_ranks;
    ranks_of_nodes.push_back(node.local_ranks);
  }
  const MeetingStore store = make_store_(generation_);
  const Node& first = nodes_.at(order.front());
  const bool by_loopback = first.address.starts_with("127.") || first.address == "::1";
  for (auto& [member, node] : nodes_) {
    if (node.local_ranks == 0) continue;
    // Rank 0 is on the host of the meeting: where this node reaches the meeting.
    const std::string master = by_loopback ? std::string() : first.address;
    send(member, message_of(Start{.assignment = {.node_rank = node.node_rank,
                                                 .nodes = static_cast<int>(order.size()),
                                                 .first_rank = node.first_rank,
                                                 .local_ranks = node.local_ranks,
                                                 .world_size = world,
                                                 .restart = generation_,
                                                 .job_id = spec_.job_id,
                                                 .master_address = master,
                                                 .master_port = first.master_port,
                                                 .ranks_of_nodes = ranks_of_nodes},
                                  .why = again_because_,
                                  .store_port = store.port,
                                  .store_salt = store.salt}));
  }
}

// ---- ending

void Meeting::tell_abort(const std::string& code, int rank, const std::string& message, Member except) {
  for (const auto& [member, node] : nodes_) {
    if (member != except && node.node_rank >= 0 && !node.ended)
      send(member, message_of(Abort{.code = code, .rank = rank, .message = message}));
  }
}

void Meeting::begin_ending(Time now) {
  if (state_ == State::running) state_ = State::ending;
  look_whether_all_have_ended(now);
}

void Meeting::look_whether_all_have_ended(Time now) {
  if (state_ != State::running && state_ != State::ending) return;
  const bool all =
      std::ranges::all_of(nodes_, [](const auto& entry) { return entry.second.node_rank < 0 || entry.second.ended; });
  if (all) decide(now);
}

const Meeting::Failure* Meeting::culprit() const {
  const auto own = std::ranges::find_if(failures_, [](const Failure& failure) { return !failure.collateral; });
  if (own != failures_.end()) return &*own;
  return failures_.empty() ? nullptr : &failures_.front();
}

// All nodes have ended their ranks.
void Meeting::decide(Time now) {
  JobResult result;
  const Failure* failure = culprit();
  if (signal_ != 0) {
    result.cause = EndCause::interrupted;
    result.signal = signal_;
    result.exit_code = tools::exit_code::kSignalBase + signal_;
    return finish(result);
  }
  if (limit_) {
    result.cause = *limit_;
    result.exit_code = tools::exit_code::kTimeout;
    return finish(result);
  }
  if (!launcher_error_.empty()) return finish_with_error(launcher_error_, EndCause::launcher_failed, launcher_code_);
  if (closed_) return finish(*closed_);
  // What ranks did because a node was lost, or because all were told to start again, is not their own failure.
  if (members_change_) return gather_again("another node has come", now);
  if (!lost_.empty()) {
    const std::string why = fmt::format("{} is lost", fmt::join(lost_, ", "));
    const bool enough = ranked_nodes() >= spec_.min_nodes;
    if (is_elastic() && enough) return gather_again(why, now);
    if (spec_.others_may_come && restarts_ < spec_.max_restarts) {
      ++restarts_;
      return gather_again(why, now);
    }
    return finish_with_error(
        fmt::format("lost the connection to {} {}: dead or frozen, cut off from the network, or the colrun there was "
                    "killed; look there first",
                    lost_.size() == 1 ? "host" : "hosts", fmt::join(lost_, ", ")),
        EndCause::node_lost);
  }
  if (failure != nullptr && restarts_ < spec_.max_restarts) {
    ++restarts_;
    return gather_again(failure->what, now);
  }
  if (spec_.has_epochs) {
    if (const RankStory* const rank = failure_that_counts(stories_, spec_.exit_policy))
      result = {
          .exit_code = exit_code_of(rank->status), .cause = EndCause::rank_failed, .culprit = rank->rank, .error = {}};
    return finish(result);
  }
  if (failure != nullptr) {
    result.cause = EndCause::rank_failed;
    result.culprit = failure->rank;
    result.exit_code = kLauncher;  // of a rank of which nothing more is known
    apply_exit_policy(result, stories_, spec_.exit_policy);
  }
  finish(result);
}

void Meeting::gather_again(const std::string& why, Time now) {
  ++generation_;
  again_because_ = why;
  state_ = State::gathering;
  join_deadline_ = now + spec_.join_timeout;
  failures_.clear();
  stories_.clear();
  have_story_ = false;
  members_change_ = false;
  abort_at_.reset();
  processes_left_ = 0;
  for (auto& [member, node] : nodes_) node.node_rank = -1;
  look_whether_all_are_here(now);
}

void Meeting::finish_with_error(const std::string& error, EndCause cause, int exit_code) {
  JobResult result;
  result.exit_code = exit_code;
  result.cause = cause;
  result.error = error.size() <= kMaxErrorBytes ? error : error.substr(0, kMaxErrorBytes) + " …";
  finish(result);
}

void Meeting::finish(JobResult result) {
  state_ = State::over;
  why_over_ = result.error;
  std::ranges::sort(stories_, [](const RankStory& left, const RankStory& right) { return left.rank < right.rank; });
  JobStory story = std::move(first_story_);
  story.tool = spec_.tool;
  story.job_id = spec_.job_id;
  story.nodes = std::max(1, started_nodes_ > 0 ? started_nodes_ : ranked_nodes());
  story.restarts = generation_;
  story.processes_left = processes_left_;
  story.result = std::move(result);
  story.ranks.clear();
  const json brief = story_to_json(story);
  story.ranks = std::move(stories_);
  compare_hosts(story);  // before it is sent: with the samples of all hosts, it could be too long for a message
  const json whole = story_to_json(story);
  for (const auto& [member, node] : nodes_) {
    send(member, message_of(Done{.story = node.wants_stories ? whole : brief}), /*last=*/true);
  }
}

}  // namespace col::launch
