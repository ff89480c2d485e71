#include "backend/shm/native/collectives.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "backend/shm/native/meetings.hpp"
#include "core/clock/clock.hpp"
#include "core/log.hpp"

namespace col::shm_backend {

Collectives::Collectives(const std::string& group, Segment& segment, SymmetricHeap& heap, int rank,
                         Attendant& attendant)
    : group_(group),
      segment_(segment),
      area_(segment.area()),
      tuning_(segment.tuning()),
      rank_(rank),
      size_(segment.size()),
      headers_(&area_.header(rank, 0)),
      done_(area_.done(rank)),
      waiter_(segment, rank, attendant),
      conflict_(area_, rank, size_, attendant),
      own_slots_(group, segment, rank),
      done_seen_{.by_rank = std::vector<std::uint64_t>(static_cast<std::size_t>(segment.size()))},
      sources_(static_cast<std::size_t>(segment.size())),
      direct_(group, segment, heap, rank, attendant, sources_) {
  waiter_.set_patience(Patience::of(true, tuning_.looks));  // until all have told which processors they have
}

void Collectives::look_at_processors() {
  const auto processors = segment_.processors();
  if (!processors) return;
  knows_processors_ = true;
  const bool is_crowded = size_ > *processors;
  Patience patience = Patience::of(is_crowded, tuning_.looks);
  patience.keeps_processor = segment_.are_apart();
  waiter_.set_patience(patience);
  if (rank_ != 0) return;
  core::log::info("group '{}': {} ranks on {} processors: {}", group_, size_, *processors,
                  is_crowded ? "a rank that waits lets others run at once" : "ranks wait at full speed for a moment");
}

// ---- One call after the other, in the order of starting

std::uint64_t Collectives::start(const Request& request) {
  queue_.push_back(request);
  return ++made_;
}

void Collectives::run(const Request& request, WaitContext& wait) {
  if (std::exchange(begun_, nullptr) == &request) return this->wait(made_, wait);
  if (head_ != nullptr || !queue_.empty()) return this->wait(start(request), wait);
  const std::uint64_t number = ++made_;  // mostly alone: no copy of the request
  begin(request);
  this->wait(number, wait);
}

void Collectives::wait(std::uint64_t number, WaitContext& wait) {
  try {
    if (conflict_) throw *conflict_;
    if (std::exchange(has_looked_, false) && !awaited_.is_there()) waiter_.wait_for(awaited_, wait);
    while (!move_on_to(number, &wait, true)) waiter_.wait_for(awaited_, wait);
  } catch (const OtherCall& other) {
    conflict_.tell(ended_ + 1, other.peer, wait);
  }
}

void Collectives::move_on() {
  if (conflict_) return conflict_.look(ended_ + 1);
  keeping_conflict([&] {
    if (!move_on_to(made_, nullptr, false)) waiter_.look(awaited_);
  });
}

// Returns whether that call has ended. `wait`: null where this rank must not wait. `looks`: whether it may for a
// moment.
bool Collectives::move_on_to(std::uint64_t number, WaitContext* wait, bool looks) {
  looks_ = looks;
  for (; ended_ < number; ++ended_) {
    if (head_ == nullptr) begin(queue_.front());
    if (!move_head_on(wait)) return false;
    if (direct_.is_timed()) [[unlikely]]
      direct_.end_trial();
    if (!queue_.empty() && head_ == &queue_.front()) queue_.pop_front();
    end_head();
  }
  return true;
}

// ---- The parts of a call

void Collectives::begin(const Request& request) {
  enter(request);
  if (!direct_.begin(request)) return begin_with_slots();
  begin_meeting(Part::telling, sizeof(Presence));
}

// Returns whether the call has ended.
bool Collectives::move_head_on(WaitContext* wait) {
  for (;;) {
    switch (part_) {
      case Part::slots:
        return move_data_on();
      case Part::counting:
        if (!walk(Counting(area_, rank_, counts_))) return false;
        begin_moving(counts_.longest);
        break;
      case Part::telling:
        if (!walk(Telling<Presence>(area_, rank_, direct_.presences()))) return false;
        begin_after(direct_.share(*head_, wait));
        break;
      case Part::confirming_writes:
        if (!walk(Telling<Presence>(area_, rank_, {}))) return false;
        direct_.on_writes_confirmed();
        return true;
      case Part::confirming_reads:
        if (!walk(Telling<Presence>(area_, rank_, direct_.presences()))) return false;
        if (direct_.all_have_read()) return true;
        begin_with_slots();
        break;
    }
  }
}

void Collectives::begin_meeting(Part part, std::size_t bytes) {
  const Pattern pattern = pattern_of(Form::between_all, rank_, size_, head_->root);
  begin_course(part, {pattern, {rank_, size_, head_->root}, 1}, Area::place_of(bytes));
}

void Collectives::begin_after(DirectWay::Then then) {
  switch (then) {
    case DirectWay::Then::slots:
      return begin_with_slots();
    case DirectWay::Then::confirms_writes:
      return begin_meeting(Part::confirming_writes, sizeof(Presence));
    case DirectWay::Then::confirms_reads:
      return begin_meeting(Part::confirming_reads, sizeof(Presence));
  }
}

void Collectives::begin_with_slots() {
  if (!row_of(head_->collective).has_private_counts()) return begin_moving(Movement::length_of(*head_, size_));
  counts_.set(*head_, rank_, size_);
  const std::size_t bytes = counts_.sent.size() * sizeof(std::uint64_t);
  own_slots_.claim(bytes);
  begin_meeting(Part::counting, bytes);
}

void Collectives::begin_moving(std::size_t length) {
  const Request* moved = head_;
  if (row_of(moved->collective).counts == BlockCounts::pairs && moved->in.data == moved->out.data &&
      !std::equal(moved->in_counts.begin(), moved->in_counts.end(), moved->out_counts.begin())) {
    // In place, and arriving data is not in the place of sent data: blocks would be overwritten before they are sent.
    const auto* const input = static_cast<const std::byte*>(moved->in.data);
    apart_.input.assign(input, input + moved->in.bytes());
    apart_.request = *moved;
    apart_.request.in.data = apart_.input.data();
    moved = &apart_.request;
  }
  const Route& route = own_route_.emplace(*this, *moved, length);
  if (route.way.pattern.puts) own_slots_.claim(route.movement.slot_bytes());
  take(route);
}

void Collectives::give_up() noexcept {
  head_ = nullptr;
  begun_ = nullptr;
  has_looked_ = false;
  queue_.clear();
  ended_ = made_;
  direct_.take_back();
}

}  // namespace col::shm_backend
