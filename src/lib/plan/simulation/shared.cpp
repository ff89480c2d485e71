// Cores and memory that the ranks of a node share.
#include "plan/simulation/simulator.hpp"

namespace col::plan::simulation {

// ---- Messages -------------------------------------------------------------------------------------------------------

void Simulator::spend_cpu(std::uint32_t id) {
  messages_[id].parts = 2;
  for (const Side side : {kOut, kIn}) {
    const std::uint32_t who = tagged(kMessageCpu, id << 1 | side);
    if (node_of(messages_[id].rank[side]).cores.ask(who)) got_core(who);
  }
}

void Simulator::cpu_spent(std::uint32_t id, Side side) {
  give_back_core(messages_[id].rank[side]);
  if (--messages_[id].parts == 0) travel(id);
}

// ---- Work -----------------------------------------------------------------------------------------------------------

void Simulator::start_work(int r) {
  rank(r).working = true;
  if (model_.cores == 0 || node_of(r).cores.ask(tagged(kWork, r))) begin_work(r);
}

// The next piece of work has its core.
void Simulator::begin_work(int r) {
  RankState& state = rank(r);
  const Work& work = state.work[state.next_work];
  state.parts = 1;
  if (model_.memory_bandwidth > 0 && work.bytes > 0) {
    ++state.parts;
    use_memory(state.node, tagged(kWork, r), work.bytes);
  }
  events_.push(now_ + work.seconds, tagged(kWork, r));
}

// A message or a piece of work is done with its own time, or with a resource that it shares.
void Simulator::part_done(std::uint32_t who) {
  const std::uint32_t number = who >> kTagBits;
  if (tag_of(who) == kMessage) {
    if (--messages_[number].parts == 0) arrive(number);
    return;
  }
  const auto r = static_cast<int>(number);
  RankState& state = rank(r);
  if (--state.parts > 0) return;
  state.working = false;
  ++state.next_work;
  if (model_.cores > 0) give_back_core(r);
  proceed(r);
}

// ---- Cores ----------------------------------------------------------------------------------------------------------

void Simulator::got_core(std::uint32_t who) {
  if (tag_of(who) == kWork)
    begin_work(static_cast<int>(who >> kTagBits));
  else
    events_.push(now_ + model_.cpu_per_message, who);
}

void Simulator::give_back_core(int r) {
  if (const auto who = node_of(r).cores.give_back()) got_core(*who);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

void Simulator::use_memory(int n, std::uint32_t who, double bytes) {
  node(n).memory.start(now_, who, bytes);
  watch_memory(n);
}

void Simulator::watch_memory(int n) {
  const auto next = node(n).memory.next();
  if (!next || *next == node(n).memory_event_at) return;
  node(n).memory_event_at = *next;
  events_.push(*next, tagged(kMemory, n));
}

void Simulator::serve_memory(int n) {
  // Out of date: others have come since, or this instant has been served.
  if (node(n).memory_event_at < 0 || !EventQueue::same_instant(node(n).memory_event_at, now_)) return;
  node(n).memory_event_at = -1;
  while (const auto who = node(n).memory.finished(now_)) part_done(*who);
  watch_memory(n);
}

}  // namespace col::plan::simulation
