#include "launch/report/wait_graph.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "launch/report/look.hpp"

namespace col::launch {
namespace {

using State = RankActivity::State;

constexpr std::array<std::string_view, 9> kMessages = {"send",  "recv",  "recv_any",  "sendrecv", "batch",
                                                       "isend", "irecv", "irecv_any", "ibatch"};
constexpr std::array<std::string_view, 4> kReceives = {"recv", "recv_any", "irecv", "irecv_any"};
constexpr std::array<std::string_view, 2> kSends = {"send", "isend"};

template <std::size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_consequence(const RankStory& rank) {
  if (!rank.said) return false;
  return rank.said->is_collateral() || rank.said->code == "timeout";
}

// That the launcher has ended it, or that it gave up for lack of another, is no death.
bool is_dead(const RankStory& rank, const JobStory& story) {
  if (rank.last && rank.last->state == State::finished) return false;
  if (rank.status.told_to_end || rank.status.collateral || is_consequence(rank)) return false;
  if (rank.last && rank.last->gone) return true;
  if (!rank.status.exited) return false;
  return story.result.cause == EndCause::none || rank.rank == story.result.culprit || rank.status.walked_out;
}

RankState state_of(const RankStory& rank, const JobStory& story) {
  if (is_dead(rank, story)) return RankState::dead;
  if (!rank.last) return RankState::outside;
  const RankActivity& last = *rank.last;
  if (last.stopped) return RankState::stopped;
  if (last.state == State::finished) return RankState::left;
  // One whose call has failed for lack of another goes on to say which, and is no victim any more if it lives on.
  const bool gave_up = last.state == State::running ? last.held_up_by >= 0 || is_consequence(rank)
                                                    : last.held_up_by >= 0 && story.result.cause != EndCause::none;
  if (last.state == State::waiting || gave_up) return RankState::waiting;
  return last.state == State::running ? RankState::inside : RankState::outside;
}

}  // namespace

bool is_message(const RankActivity& activity) {
  return is_one_of(kMessages, activity.op);
}

bool is_join(const RankActivity& activity) {
  return activity.op == "init_group";
}

WaitGraph::WaitGraph(const JobStory& story) : story_(story) {
  for (std::size_t i = 0; i < story.ranks.size(); ++i) {
    states_.push_back(state_of(story.ranks[i], story));
    indices_.emplace(story.ranks[i].rank, i);
  }
  for (std::size_t i = 0; i < size(); ++i) {
    if (!waits(i)) continue;
    const std::size_t before = edges_.size();
    const RankActivity& last = *rank(i).last;
    if (is_join(last))
      look_at_entry(i);
    else if (is_message(last))
      look_at_message(i);
    else
      look_at_call(i);
    const auto held_up_by = index_of(last.held_up_by);
    if (edges_.size() == before && held_up_by && *held_up_by != i) add(i, *held_up_by, false);
  }
}

double WaitGraph::since(std::size_t index) const {
  const RankStory& story = rank(index);
  if (!story.last || story.last->since_ns == 0 || story.seen_ns <= story.last->since_ns) return 0;
  if (waits(index) && story.last->state != State::waiting) return 0;  // the time since it gave up says nothing
  return static_cast<double>(story.seen_ns - story.last->since_ns) / 1e9;
}

std::optional<std::size_t> WaitGraph::index_of(int rank) const {
  const auto found = indices_.find(rank);
  return found == indices_.end() ? std::nullopt : std::optional(found->second);
}

std::uint64_t WaitGraph::token(std::size_t index, const std::string& group) const {
  for (const RecordedGroup& one : rank(index).history.groups) {
    if (one.name == group) return one.token;
  }
  return 0;
}

std::optional<std::uint64_t> WaitGraph::progress(std::size_t index, const std::string& group) const {
  std::optional<std::uint64_t> furthest;
  for (const RecordedGroup& one : rank(index).history.groups) {
    if (one.name == group) furthest = std::max(furthest.value_or(0), one.last);
  }
  const auto& last = rank(index).last;
  if (last && last->group == group && !is_join(*last)) furthest = std::max(furthest.value_or(0), last->sequence);
  return furthest;
}

bool WaitGraph::has_open(std::size_t index, const std::string& group, std::uint64_t sequence) const {
  bool open = false;
  for (const RecordedCall& call : rank(index).history.calls) {
    if (call.group == group && call.sequence == sequence && call.op != Collective::send && call.op != Collective::recv)
      open = !call.ended;
  }
  return open;
}

// Those that have not come to the collective; else those that have started it and do something else.
void WaitGraph::look_at_call(std::size_t from) {
  const RankActivity& own = *rank(from).last;
  std::vector<std::size_t> open;
  const std::size_t before = edges_.size();
  for (std::size_t i = 0; i < size(); ++i) {
    if (i == from) continue;
    const auto reached = progress(i, own.group);
    if (!reached) continue;
    const std::uint64_t theirs = token(i, own.group), mine = token(from, own.group);
    const bool is_other_group = theirs != 0 && mine != 0 && theirs != mine;
    // Such a group may have other members: the rank itself knows better for whom it waits.
    if (is_other_group && own.held_up_by >= 0 && own.held_up_by != rank(i).rank) continue;
    if (*reached < own.sequence || is_other_group)
      add(from, i, true);
    else if (!waits(i) && (has_open(i, own.group, own.sequence) || states_[i] == RankState::stopped ||
                           (states_[i] == RankState::dead && rank(i).last && rank(i).last->sequence == own.sequence)))
      open.push_back(i);
  }
  if (edges_.size() > before) return;
  for (const std::size_t to : open) add(from, to, true);
}

// Of several messages at once, the rank knows best which one it waits for.
void WaitGraph::look_at_message(std::size_t from) {
  const RankActivity& own = *rank(from).last;
  const bool is_one = is_one_of(kReceives, own.op) || is_one_of(kSends, own.op);
  if (is_one && own.details.partner < 0) {  // from any rank
    for (std::size_t i = 0; i < size(); ++i) {
      if (i != from && progress(i, own.group)) add(from, i, true);
    }
    return;
  }
  if (!is_one && own.held_up_by >= 0) return;
  if (const auto to = index_of(own.details.partner); to && *to != from) add(from, *to, true);
}

// A rank that waits in the making of a group, for those that do not come.
void WaitGraph::look_at_entry(std::size_t from) {
  const RankActivity& own = *rank(from).last;
  if (own.held_up_by >= 0) return;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto& last = rank(i).last;
    const bool is_there = last && is_join(*last) && last->group == own.group;
    if (i != from && !is_there && !progress(i, own.group)) add(from, i, true);
  }
}

std::vector<std::size_t> WaitGraph::ends() const {
  std::set<std::size_t> found;
  for (const WaitEdge& edge : edges_) {
    if (!waits(edge.to)) found.insert(edge.to);
  }
  std::vector<std::size_t> ends(found.begin(), found.end());
  // Who is dead or stopped cannot come; of the others, who has been away for longest.
  const auto key = [&](std::size_t i) {
    const int kind = states_[i] == RankState::dead      ? 0
                     : states_[i] == RankState::stopped ? 1
                     : states_[i] == RankState::left    ? 2
                                                        : 3;
    return std::tuple(kind, -since(i), i);
  };
  std::ranges::sort(ends, {}, key);
  return ends;
}

std::set<std::size_t> WaitGraph::behind(std::size_t end) const {
  std::set<std::size_t> found;
  for (bool grows = true; grows;) {
    grows = false;
    for (const WaitEdge& edge : edges_) {
      if (edge.to == end || found.contains(edge.to)) grows = found.insert(edge.from).second || grows;
    }
  }
  return found;
}

std::vector<std::size_t> WaitGraph::circle() const {
  std::vector<std::vector<std::size_t>> awaited(size());
  for (const WaitEdge& edge : edges_) awaited[edge.from].push_back(edge.to);
  for (std::size_t first = 0; first < size(); ++first) {
    // The shortest way back, by breadth.
    std::map<std::size_t, std::size_t> came_from;
    std::vector<std::size_t> front = {first};
    while (!front.empty() && !came_from.contains(first)) {
      std::vector<std::size_t> next;
      for (const std::size_t at : front) {
        for (const std::size_t to : awaited[at]) {
          if (came_from.emplace(to, at).second) next.push_back(to);
        }
      }
      front = std::move(next);
    }
    if (!came_from.contains(first)) continue;
    std::vector<std::size_t> circle = {first};
    for (std::size_t at = came_from[first]; at != first; at = came_from[at]) circle.push_back(at);
    std::reverse(circle.begin() + 1, circle.end());
    return circle;
  }
  return {};
}

std::optional<WrongTag> WaitGraph::wrong_tag() const {
  for (const WaitEdge& edge : edges_) {
    const RankActivity& last = *rank(edge.from).last;
    if (!is_message(last)) continue;
    if (is_one_of(kReceives, last.op)) {
      if (auto found = wrong_tag_of(edge.from, edge.to)) return found;
    } else if (is_one_of(kSends, last.op)) {
      if (auto found = wrong_tag_of(edge.to, edge.from)) return found;
    }
  }
  return std::nullopt;
}

// What the sender has sent to the receiver with other tags than the receiver waits for, and nobody has taken.
std::optional<WrongTag> WaitGraph::wrong_tag_of(std::size_t receiver, std::size_t sender) const {
  const auto& wants = rank(receiver).last;
  if (!wants || !waits(receiver) || !is_one_of(kReceives, wants->op)) return std::nullopt;
  std::map<int, int> lying;
  // What was sent before the receiver's record begins may have been received before. Ages, as clocks of hosts differ.
  const auto age = [](const RankStory& by, const RecordedCall& call) {
    return by.seen_ns > call.at_ns ? by.seen_ns - call.at_ns : 0;
  };
  const std::vector<RecordedCall>& received = rank(receiver).history.calls;
  const std::uint64_t known = received.size() < kReportedCalls ? std::numeric_limits<std::uint64_t>::max()
                                                               : age(rank(receiver), received.front());
  const auto count = [&](const RankStory& by, Collective op, int partner, int step) {
    for (const RecordedCall& call : by.history.calls) {
      const CallDetails& details = call.details;
      if (op == Collective::send && age(by, call) >= known) continue;
      if (call.op == op && call.ended && call.group == wants->group && details.partner == partner)
        lying[details.tag] += step;
    }
  };
  count(rank(sender), Collective::send, rank(receiver).rank, 1);
  count(rank(receiver), Collective::recv, rank(sender).rank, -1);
  const auto& does = rank(sender).last;
  const bool sends_now = does && waits(sender) && is_one_of(kSends, does->op) && does->group == wants->group &&
                         does->details.partner == rank(receiver).rank;
  if (sends_now) ++lying[does->details.tag];
  // The right one is there: it is on its way.
  if (lying[wants->details.tag] > 0) return std::nullopt;
  WrongTag wrong{receiver, sender, {}, sends_now};
  for (const auto& [tag, messages] : lying) {
    if (messages > 0) wrong.tags.push_back(tag);
  }
  return wrong.tags.empty() ? std::nullopt : std::optional(std::move(wrong));
}

std::vector<int> WaitGraph::awaited_by(std::size_t index) const {
  std::vector<int> awaited;
  for (const WaitEdge& edge : edges_) {
    if (edge.from == index) awaited.push_back(rank(edge.to).rank);
  }
  std::ranges::sort(awaited);
  return awaited;
}

std::optional<std::pair<std::size_t, std::size_t>> WaitGraph::different() const {
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::vector<std::size_t>> calls;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto& last = rank(i).last;
    const bool is_in = last && (last->state == State::waiting || last->state == State::running);
    if (!is_in || is_message(*last) || is_join(*last) || last->fingerprint == 0) continue;
    calls[{last->group, token(i, last->group), last->sequence}].push_back(i);
  }
  for (const auto& [call, ranks] : calls) {
    std::map<std::uint64_t, std::vector<std::size_t>> by_fingerprint;
    for (const std::size_t i : ranks) by_fingerprint[rank(i).last->fingerprint].push_back(i);
    if (by_fingerprint.size() < 2) continue;
    if (std::ranges::none_of(ranks, [&](std::size_t i) { return waits(i); })) continue;
    // Not of the majority; without one, not as the first.
    const auto size_of = [](const auto& entry) { return entry.second.size(); };
    const auto most = std::ranges::max_element(by_fingerprint, {}, size_of);
    const auto least = std::ranges::min_element(by_fingerprint, {}, size_of);
    const bool even = size_of(*most) == size_of(*least);
    const std::size_t other = even ? ranks.front() : most->second.front();
    const std::size_t differs = *std::ranges::find_if(
        ranks, [&](std::size_t i) { return rank(i).last->fingerprint != rank(other).last->fingerprint; });
    return std::pair(differs, other);
  }
  return std::nullopt;
}

}  // namespace col::launch
