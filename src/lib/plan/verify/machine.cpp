#include "plan/verify/machine.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace col::plan::symbolic {
namespace {

bool is_receive(const Step& step) {
  return step.kind == Step::Kind::recv;
}

const Slice& slice_of(const Step& message) {
  return is_receive(message) ? message.to : message.left;
}

std::string elements(std::size_t count) {
  return count == 1 ? "1 element" : fmt::format("{} elements", count);
}

}  // namespace

Machine::Machine(const PlanProblem& problem, const PlanOfRank& plans, Symbols& symbols, Verdict& statistics)
    : problem_(problem), symbols_(symbols), statistics_(statistics) {
  const int size = problem.size();
  ranks_.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    Plan plan = plans(rank);
    RankMemory memory(problem, rank, plan, symbols);
    ranks_.push_back({.plan = std::move(plan), .memory = std::move(memory)});
    statistics_.rounds = std::max(statistics_.rounds, at(rank).plan.rounds);
    if (!row_of(problem.spec().collective).has_data()) {
      at(rank).known = RankSet(size);
      at(rank).known.insert(rank);
      at(rank).news = at(rank).known;
    }
  }
}

void Machine::run() {
  for (int rank = problem_.size() - 1; rank >= 0; --rank) ready_.push_back(rank);
  while (!ready_.empty()) {
    const int rank = ready_.back();
    ready_.pop_back();
    begin_round(rank);
  }
  for (const Rank& rank : ranks_) {
    if (!rank.has_ended()) report_deadlock();
    statistics_.elements_sent += rank.elements_sent;
    statistics_.most_elements_sent = std::max(statistics_.most_elements_sent, rank.elements_sent);
  }
}

void Machine::begin_round(int rank) {
  Rank& self = at(rank);
  self.lanes.clear();
  if (self.has_ended()) return;
  if (!self.plan.generate) fail(rank, fmt::format("the plan has {} rounds but no `generate`", self.plan.rounds));
  self.plan.round(self.index, self.round);
  check_messages(rank);
  post(rank);
  if (self.waiting == 0) {
    end_round(rank);
    return;
  }
  for (Lane& lane : self.lanes) match(rank, lane);
}

void Machine::check_messages(int rank) const {
  for (const Step& step : at(rank).round.steps()) {
    if (!step.is_message()) continue;
    const std::string_view verb = is_receive(step) ? "receives from" : "sends to";
    if (step.peer == rank) fail(rank, fmt::format("{} itself; a copy does that", verb));
    if (step.peer < 0 || step.peer >= problem_.size())
      fail(rank, fmt::format("{} rank {}, which is not in a group of {}", verb, step.peer, problem_.size()));
    check_slice(rank, step, slice_of(step));
    if (is_receive(step)) check_target(rank, step);
  }
  check_overlap(rank);
}

// No receive may overlap a slice that another message of the round fills or reads.
void Machine::check_overlap(int rank) const {
  const Rank& self = at(rank);
  struct Use {
    RankMemory::Extent extent;
    const Step* step;
  };
  std::vector<Use> uses;
  for (const Step& step : self.round.steps()) {
    if (step.is_message() && !slice_of(step).empty()) uses.push_back({self.memory.extent(slice_of(step)), &step});
  }
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) {
    return a.extent.memory != b.extent.memory ? a.extent.memory < b.extent.memory : a.extent.begin < b.extent.begin;
  });
  const Use* furthest = nullptr;          // of all so far
  const Use* furthest_receive = nullptr;  // of the receives so far
  const auto further = [](const Use* current, const Use& candidate) {
    const bool is_further = current == nullptr || current->extent.memory != candidate.extent.memory ||
                            candidate.extent.end > current->extent.end;
    return is_further ? &candidate : current;
  };
  for (const Use& use : uses) {
    const Use* other = is_receive(*use.step) ? furthest : furthest_receive;
    if (other != nullptr && other->extent.overlaps(use.extent)) {
      const Step& receive = is_receive(*use.step) ? *use.step : *other->step;
      const Step& message = is_receive(*use.step) ? *other->step : *use.step;
      fail(rank, fmt::format("receives from rank {} into {}, which overlaps {} that {} rank {} in the same round",
                             receive.peer, describe(receive.to), describe(slice_of(message)),
                             is_receive(message) ? "is received from" : "is sent to", message.peer));
    }
    furthest = further(furthest, use);
    if (is_receive(*use.step)) furthest_receive = further(furthest_receive, use);
  }
}

void Machine::post(int rank) {
  Rank& self = at(rank);
  const std::span<const Step> steps = self.round.steps();
  self.messages.clear();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].is_message()) self.messages.push_back(static_cast<std::uint32_t>(i));
  }
  std::sort(self.messages.begin(), self.messages.end(), [steps](std::uint32_t i, std::uint32_t k) {
    const Step &a = steps[i], &b = steps[k];
    if (a.peer != b.peer) return a.peer < b.peer;
    if (is_receive(a) != is_receive(b)) return is_receive(a) < is_receive(b);
    return i < k;
  });
  for (std::size_t i = 0; i < self.messages.size(); ++i) {
    const Step& step = steps[self.messages[i]];
    const bool is_new =
        self.lanes.empty() || self.lanes.back().peer != step.peer || self.lanes.back().receives != is_receive(step);
    if (is_new) self.lanes.push_back({.peer = step.peer, .receives = is_receive(step), .first = i, .count = 0});
    ++self.lanes.back().count;
  }
  self.waiting = self.messages.size();
}

void Machine::match(int rank, Lane& lane) {
  Rank& self = at(rank);
  Rank& peer = at(lane.peer);
  const Lane key{.peer = rank, .receives = !lane.receives, .first = 0, .count = 0};
  const auto other = std::lower_bound(peer.lanes.begin(), peer.lanes.end(), key);
  if (other == peer.lanes.end() || key < *other) return;
  while (lane.moved < lane.count && other->moved < other->count) {
    if (lane.receives)
      move(lane.peer, peer.next(*other), rank, self.next(lane));
    else
      move(rank, self.next(lane), lane.peer, peer.next(*other));
    ++lane.moved;
    ++other->moved;
    if (--peer.waiting == 0) end_round(lane.peer);
    if (--self.waiting == 0) end_round(rank);
  }
}

void Machine::move(int sender, const Step& send, int receiver, const Step& recv) {
  Rank& from = at(sender);
  Rank& to = at(receiver);
  ++statistics_.messages;
  if (send.left.count != recv.to.count)
    fail(receiver,
         fmt::format("receives {} from rank {} into {}, but rank {} sends {} in its round {}", elements(recv.to.count),
                     sender, describe(recv.to), sender, send.left.count, from.index));
  if (!row_of(problem_.spec().collective).has_data()) to.news.insert(from.known);
  if (send.left.empty()) return;
  if (from.memory.is_wide(send.left.buffer) != to.memory.is_wide(recv.to.buffer))
    fail(receiver, fmt::format("receives from rank {} into {}, of {} type, but rank {} sends {}, of {} type, in its "
                               "round {}",
                               sender, describe(recv.to), to.memory.is_wide(recv.to.buffer) ? "the wide" : "the user's",
                               sender, describe(send.left),
                               from.memory.is_wide(send.left.buffer) ? "the wide" : "the user's", from.index));
  read(sender, send, send.left, pieces_);
  to.memory.write(recv.to, pieces_);
  from.elements_sent += send.left.count;
}

void Machine::end_round(int rank) {
  Rank& self = at(rank);
  for (const Step& step : self.round.steps()) {
    if (!step.is_message()) run_step(rank, step);
  }
  self.known = self.news;
  ++self.index;
  ready_.push_back(rank);
}

void Machine::run_step(int rank, const Step& step) {
  if (step.to.count == 0 && step.left.count == 0) return;
  check_local(rank, step);
  switch (step.kind) {
    case Step::Kind::reduce:
      return reduce(rank, step);
    case Step::Kind::convert:
      return convert(rank, step);
    default:
      read(rank, step, step.left, pieces_);
      at(rank).memory.write(step.to, pieces_);
  }
}

// ---- Explains a state in which no rank can move: which rank waits for which -----------------------------------------

// "waits to send input[0..3) to rank 4"
std::string Machine::wait_of(int rank, const Lane& lane) const {
  const Step& step = at(rank).next(lane);
  const Slice& slice = lane.receives ? step.to : step.left;
  return fmt::format("waits to {} {} {} rank {}", lane.receives ? "receive" : "send",
                     slice.empty() ? "a signal" : describe(slice), lane.receives ? "from" : "to", lane.peer);
}

const Machine::Lane* Machine::open_lane(int rank) const {
  const std::vector<Lane>& lanes = at(rank).lanes;
  const auto open = std::find_if(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.moved < lane.count; });
  return open == lanes.end() ? nullptr : &*open;
}

void Machine::report_deadlock() const {
  // A rank that has ended helps no other rank, and is the simplest explanation.
  for (int rank = 0; rank < problem_.size(); ++rank) {
    for (const Lane& lane : at(rank).lanes) {
      if (lane.moved < lane.count && at(lane.peer).has_ended())
        fail(rank, fmt::format("{}, which has ended", wait_of(rank, lane)));
    }
  }
  // Now every stuck rank waits for a stuck rank, so following the chain leads into a cycle.
  std::vector<int> seen_at(ranks_.size(), -1);
  std::vector<int> path;
  int rank = 0;
  while (at(rank).has_ended()) ++rank;
  while (seen_at[static_cast<std::size_t>(rank)] < 0) {
    seen_at[static_cast<std::size_t>(rank)] = static_cast<int>(path.size());
    path.push_back(rank);
    rank = open_lane(rank)->peer;
  }
  path.erase(path.begin(), path.begin() + seen_at[static_cast<std::size_t>(rank)]);
  constexpr std::size_t kMostShown = 6;
  std::string text = fmt::format("deadlock: it {}", wait_of(path[0], *open_lane(path[0])));
  for (std::size_t i = 1; i < std::min(path.size(), kMostShown); ++i)
    text += fmt::format("; rank {} in round {} {}", path[i], at(path[i]).index, wait_of(path[i], *open_lane(path[i])));
  if (path.size() > kMostShown) text += fmt::format("; and so on, {} ranks in a cycle", path.size());
  fail(path[0], std::move(text));
}

}  // namespace col::plan::symbolic
