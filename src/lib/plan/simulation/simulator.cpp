// The simulator: a clock that jumps from one event to the next.
//
// An instant has three parts. First all that ends: messages arrive, work is done, ports and cores come free. Ranks
// whose round is over post the messages of their next one; a message is ready when both of its ends are posted. Then
// every port that came free takes the first that waits for it and can start, in the order in which they became ready,
// ports out before ports in. Last, those that became ready now take their ports or begin to wait, in the order in which
// their senders listed them. Nothing is decided before all of an instant is known, so ranks that march in step do not
// get in each other's way because of the order in which the simulator looks at them.
//
// Work that needs a slice on its way waits for it, in the order listed; it has the rank's core for itself. Where cores
// are shared, work and the processor's share of messages go to whoever asked first. Where memory is shared, everyone
// who uses it at the moment has an equal share of its bandwidth (simulation/node.hpp), and is done when both that share
// and its own time are used up; a byte that is copied, reduced or sent within a node counts once.
//
// Where many ranks do the same at the same time, one of them is simulated (simulation/symmetry.hpp). Each message that
// it sends stands for one from each of them, and each of its ports for theirs, which are busy at the same times.
//
// Memory: one round per rank, and the messages under way. Time: O(log) per message, and one round made per rank and
// round; a ring of 4,096 ranks, 33 million messages, takes seconds.
#include "plan/simulation/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <col/plan.hpp>

namespace col::plan::simulation {
namespace {

// How many messages ahead of its work the simulator asks the memory for.
constexpr std::size_t kAhead = 8;

// Calls act(i) for 0 to count - 1, and before ask(i, 0), ask(i, 1) and so on, each kAhead numbers before the next: what
// one asks the memory for, the next finds.
template <int kStages, typename Ask, typename Act>
void in_stages(std::size_t count, Ask ask, Act act) {
  if (count == 0) return;
  for (std::size_t i = 0; i < count + kStages * kAhead; ++i) {
    std::size_t at = i;  // what is less than 0 is past the end, too
    for (int stage = 0; stage < kStages; ++stage, at -= kAhead) {
      if (at < count) ask(at, stage);
    }
    if (at < count) act(at);
  }
}

Side side_of(const Step& message) {
  return message.kind == Step::Kind::send ? kOut : kIn;
}

int count_of(std::span<const int> node_of_rank) {
  return 1 + *std::max_element(node_of_rank.begin(), node_of_rank.end());
}

// One port for every rank, then one for every node. Where nodes have one port each to the others, the ranks' own ports
// are for messages inside of a node.
std::vector<std::uint32_t> circles_of_ports(std::span<const int> node_of_rank, bool nic_shared) {
  const auto nodes = static_cast<std::size_t>(count_of(node_of_rank));
  std::vector<std::uint32_t> circles(node_of_rank.size() + nodes, nic_shared ? static_cast<std::uint32_t>(nodes) : 0);
  if (nic_shared) std::copy(node_of_rank.begin(), node_of_rank.end(), circles.begin());
  return circles;
}

}  // namespace

Simulator::Simulator(const std::vector<int>& nodes, int simulated, const PlanOfRank& plans, const CostModel& model,
                     std::size_t element_size, std::size_t wide_size, std::vector<double> starts)
    : model_(model),
      element_size_(element_size),
      wide_size_(wide_size),
      reader_(model, element_size),
      nodes_of_ranks_(nodes),
      size_(static_cast<int>(nodes.size())),
      simulated_(simulated),
      starts_(std::move(starts)),
      ranks_(static_cast<std::size_t>(simulated)),
      ports_(circles_of_ports(std::span(nodes).first(ranks_.size()), model.nic_shared), messages_) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    ranks_[r].plan = plans(static_cast<int>(r));
    ranks_[r].node = nodes_of_ranks_[r];
  }
  for (int n = 0; n < count_of(std::span(nodes_of_ranks_).first(ranks_.size())); ++n)
    nodes_.push_back({Cores(model.cores), MemoryBus(model.memory_bandwidth)});
  result_.node_bytes_out.resize(nodes_.size());
  result_.node_bytes_in.resize(nodes_.size());
}

Simulation Simulator::run() {
  for (int r = 0; r < simulated_; ++r) {
    if (starts_.empty())
      begin_rounds(r);
    else
      events_.push(starts_[static_cast<std::size_t>(r)], tagged(kRound, r));
  }
  serve_ports();
  std::vector<std::uint32_t> happening;
  while (!events_.empty()) {
    now_ = events_.pop(happening);
    in_stages<2>(
        happening.size(), [&](std::size_t i, int stage) { expect_event(happening[i], stage); },
        [&](std::size_t i) { happen(happening[i]); });
    serve_ports();
  }
  for (const RankState& rank : ranks_) {
    if (rank.ended_at < 0) refuse_stuck();
    result_.rank_seconds.push_back(rank.ended_at);
    result_.seconds = std::max(result_.seconds, rank.ended_at);
  }
  speak_for_all();
  return std::move(result_);
}

// Turns what was simulated of some ranks into what all do.
void Simulator::speak_for_all() {
  if (simulated_ == size_) return;
  const auto times = static_cast<std::size_t>(size_ / simulated_);
  for (std::size_t* const sum : {&result_.messages, &result_.bytes_inter, &result_.bytes_intra}) *sum *= times;
  for (std::size_t r = ranks_.size(); r < static_cast<std::size_t>(size_); ++r)
    result_.rank_seconds.push_back(result_.rank_seconds[r - ranks_.size()]);
  for (auto* const bytes : {&result_.node_bytes_out, &result_.node_bytes_in})
    bytes->resize(static_cast<std::size_t>(count_of(nodes_of_ranks_)), bytes->front());
}

// It will soon happen: asks the memory for the message, then for its ranks.
void Simulator::expect_event(std::uint32_t event, int stage) {
  if (tag_of(event) != kMessage) return;
  const std::uint32_t id = event >> kTagBits;
  if (stage == 0) return messages_.prefetch(id);
  for (const int r : messages_[id].rank) simulation::prefetch(&rank(r).awaited);
}

void Simulator::happen(std::uint32_t event) {
  const std::uint32_t number = event >> kTagBits;
  switch (tag_of(event)) {
    case kMessage:
    case kWork:
      return part_done(event);
    case kMessageCpu:
      return cpu_spent(number >> 1, static_cast<Side>(number & 1));
    case kRound:
      return begin_rounds(static_cast<int>(number));
    case kMemory:
      return serve_memory(static_cast<int>(number));
  }
}

// ---- Rounds ---------------------------------------------------------------------------------------------------------

// Begins rounds until one takes time.
void Simulator::begin_rounds(int r) {
  RankState& state = rank(r);
  do {
    if (state.next_round == state.plan.rounds) {
      state.ended_at = now_;
      return;
    }
    std::uint32_t slot = 0;
    const std::span<const Step> steps = reader_.read(state);
    in_stages<3>(
        steps.size(), [&](std::size_t i, int stage) { expect(r, steps[i], stage); },
        [&](std::size_t i) {
          if (steps[i].is_message()) post(r, slot++, steps[i]);
        });
    state.in_flight = slot;
    state.awaited.assign(state.needs.empty() ? 0 : slot, true);
    state.began_at = now_;
    if (simulated_ < size_) state.arrived_at.assign(slot, now_);
  } while (advance(r));
}

// Rank r will soon post it: asks the memory for the place of the queue that may have its other end, then for the queue,
// then for the first message in it.
void Simulator::expect(int r, const Step& step, int stage) {
  if (!step.is_message()) return;
  const Ends ends = ends_of(side_of(step), r, step.peer);
  if (stage == 0) return unpaired_.prefetch(ends.from, ends.to);
  const PairQueue* const queue = unpaired_.find(ends.from, ends.to);
  if (queue == nullptr) return;
  if (stage == 1)
    simulation::prefetch(queue);
  else if (queue->first != kNoMessage)
    messages_.prefetch(queue->first);
}

Simulator::Ends Simulator::ends_of(Side side, int me, int peer) const noexcept {
  if (side == kOut) return {static_cast<std::uint32_t>(me), static_cast<std::uint32_t>(peer)};
  if (simulated_ == size_) return {static_cast<std::uint32_t>(peer), static_cast<std::uint32_t>(me)};
  const int from = peer % simulated_;  // which sends to one that is as far from it as this one from its peer
  return {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>((me + size_ - (peer - from)) % size_)};
}

void Simulator::post(int r, std::uint32_t slot, const Step& step) {
  const Side side = side_of(step);
  if (step.peer < 0 || step.peer >= size_)
    refuse(fmt::format("rank {} {} rank {}, and the ranks are 0 to {}", r, side == kOut ? "sends to" : "receives from",
                       step.peer, size_ - 1));
  const Ends ends = ends_of(side, r, step.peer);
  PairQueue& queue = unpaired_.at(ends.from, ends.to);
  const bool pairs = queue.first != kNoMessage && messages_[queue.first].posted != side;
  const std::uint32_t id = pairs ? queue.first : messages_.make();
  Message& message = messages_[id];
  message.rank[side] = r;
  message.slot[side] = slot;
  message.inter = is_inter(r, step.peer);
  const std::size_t elements = side == kOut ? step.left.count : step.to.count;
  if (side == kOut) message.bytes = elements * (step.left.buffer == Buffer::wide ? wide_size_ : element_size_);
  if (pairs) {
    if (message.elements != elements)
      refuse(fmt::format("rank {} sends {} elements to rank {}, which awaits {}", side == kOut ? r : step.peer,
                         side == kOut ? elements : message.elements, side == kOut ? step.peer : r,
                         side == kOut ? message.elements : elements));
    queue.first = std::exchange(message.next_of_pair, kNoMessage);
    return is_ready(id);
  }
  message.posted = side;
  message.elements = elements;
  const bool is_first = queue.first == kNoMessage;
  (is_first ? queue.first : messages_[queue.last].next_of_pair) = id;
  queue.last = id;
}

// Both ends are posted.
void Simulator::is_ready(std::uint32_t id) {
  Message& message = messages_[id];
  const bool nic = message.inter && model_.nic_shared;
  for (const Side side : {kOut, kIn}) {
    const int r = message.rank[side];
    message.port[side] = static_cast<std::uint32_t>(nic ? static_cast<int>(ranks_.size()) + rank(r).node : r);
  }
  ready_.push_back({.slots = std::uint64_t{message.slot[kOut]} << 32 | message.slot[kIn],
                    .sender = static_cast<std::uint32_t>(message.rank[kOut]),
                    .id = id});
}

// Does the work that can be done. Whether the round is over, now: no message is left, and no work.
bool Simulator::advance(int r) {
  RankState& state = rank(r);
  if (state.working) return false;
  for (; state.next_work < state.work.size(); ++state.next_work) {
    const Work& work = state.work[state.next_work];
    for (; state.next_need < work.needs_end; ++state.next_need) {
      if (state.awaited[state.needs[state.next_need]]) return false;
    }
    if (!shares()) {
      // Nobody can come in between: it need not be an event.
      state.free_at = std::max(state.free_at, now_) + work.seconds;
    } else if (work.seconds > 0 || work.bytes > 0) {
      start_work(r);
      return false;
    }
  }
  if (state.in_flight > 0) return false;
  if (state.free_at <= now_) return true;
  events_.push(state.free_at, tagged(kRound, r));
  return false;
}

void Simulator::proceed(int r) {
  if (advance(r)) begin_rounds(r);
}

// ---- Messages -------------------------------------------------------------------------------------------------------

void Simulator::serve_ports() {
  for (const Side side : {kOut, kIn}) {
    const std::vector<std::uint32_t>& freed = freed_[side];
    in_stages<3>(
        freed.size(), [&](std::size_t i, int stage) { ports_.prefetch_next(side, freed[i], stage); },
        [&](std::size_t i) {
          if (const auto taken = ports_.take_next(side, freed[i])) taken_.push_back(*taken);
        });
    in_stages<4>(
        taken_.size(), [&](std::size_t i, int stage) { ports_.prefetch_finish(taken_[i], stage); },
        [&](std::size_t i) { start(ports_.finish(taken_[i])); });
    freed_[side].clear();
    taken_.clear();
  }
  std::sort(ready_.begin(), ready_.end());
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    if (i + kAhead < ready_.size()) messages_.prefetch(ready_[i + kAhead].id);
    const std::uint32_t id = ready_[i].id;
    if (ports_.take(id))
      start(id);
    else
      ports_.wait(id);
  }
  ready_.clear();
}

// The message has its ports.
void Simulator::start(std::uint32_t id) {
  if (model_.cores > 0 && model_.cpu_per_message > 0)
    spend_cpu(id);
  else
    travel(id);
}

void Simulator::travel(std::uint32_t id) {
  Message& message = messages_[id];
  const CostModel::Link& link = message.inter ? model_.inter : model_.intra;
  const double spent = model_.cores > 0 ? model_.cpu_per_message : 0;
  const auto bytes = static_cast<double>(message.bytes);
  message.parts = 1;
  if (!message.inter && model_.memory_bandwidth > 0 && message.bytes > 0) {
    ++message.parts;
    use_memory(rank(message.rank[kOut]).node, tagged(kMessage, id), bytes);
  }
  events_.push(now_ + std::max(0.0, link.alpha - spent) + bytes * link.beta, tagged(kMessage, id));
}

void Simulator::arrive(std::uint32_t id) {
  const Message& message = messages_[id];
  ports_.free(message);
  ++result_.messages;
  (message.inter ? result_.bytes_inter : result_.bytes_intra) += message.bytes;
  if (message.inter) {
    result_.node_bytes_out[static_cast<std::size_t>(rank(message.rank[kOut]).node)] += message.bytes;
    result_.node_bytes_in[static_cast<std::size_t>(rank(message.rank[kIn]).node)] += message.bytes;
  }
  for (const Side side : {kOut, kIn}) freed_[side].push_back(message.port[side]);
  const auto ranks = message.rank;
  const auto slots = message.slot;
  messages_.release(id);
  for (const Side side : {kOut, kIn}) arrived_at(ranks[side], slots[side]);
}

void Simulator::arrived_at(int r, std::uint32_t slot) {
  RankState& state = rank(r);
  if (!state.awaited.empty()) state.awaited[slot] = false;
  if (simulated_ < size_) state.arrived_at[slot] = now_;
  --state.in_flight;
  const bool awaited = state.next_need < state.needs.size() && state.needs[state.next_need] == slot;
  if (awaited || state.in_flight == 0) proceed(r);
}

// ---- Plans that do not pair -----------------------------------------------------------------------------------------

void Simulator::refuse(const std::string& what) const {
  throw Error(ErrorCode::invalid_argument, what + ": these plans do not pair; verify() says more");
}

void Simulator::refuse_stuck() {
  std::string who = "the ranks wait for each other, for ever";
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const RankState& state = ranks_[r];
    if (state.ended_at >= 0 || state.in_flight == 0) continue;
    const std::size_t index = state.next_round - 1;
    Round round;
    state.plan.round(index, round);
    const auto waits = std::find_if(round.steps().begin(), round.steps().end(), [&](const Step& step) {
      if (!step.is_message()) return false;
      const Side side = side_of(step);
      const Ends ends = ends_of(side, static_cast<int>(r), step.peer);
      const PairQueue* const queue = unpaired_.find(ends.from, ends.to);
      return queue != nullptr && queue->first != kNoMessage && messages_[queue->first].posted == side;
    });
    who = fmt::format("rank {} waits in round {} for rank {}, for ever", r, index, waits->peer);
    break;
  }
  refuse(who);
}

}  // namespace col::plan::simulation
