// The part of the diagnosis that compares the calls of the ranks: what they leave for one another on the group's board.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "core/clock/clock.hpp"
#include "core/own_loss.hpp"
#include "group/diagnosis/diagnosis.hpp"
#include "group/diagnosis/failure.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {
namespace {

// How long ranks that see two different calls wait for a majority to decide which is the odd one. Ranks may well be a
// second apart; where all have spoken, it ends at once.
constexpr Duration kVotingTime = std::chrono::seconds(3);
// Between two looks of COL_CHECK=strict at the board.
constexpr Duration kComparePause = std::chrono::microseconds(200);

std::string comparison_key(std::uint64_t sequence, int rank) {
  return fmt::format("compare/{}/{}", sequence, rank);
}

// A rank's last calls.
std::string calls_key(int rank) {
  return fmt::format("calls/{}", rank);
}

struct Difference {
  std::uint64_t sequence;
  std::map<int, std::string> called;  // by rank, for those that are known to have come so far
};

// The first call in which another rank differs from this one's `own`.
std::optional<Difference> compare(const Surroundings& surroundings, const Calls& own,
                                  const std::map<int, std::shared_ptr<const Calls>>& others) {
  std::optional<std::uint64_t> where;
  for (const auto& [rank, calls] : others) {
    const auto differs =
        first_difference(surroundings.history, own, surroundings.rank, *calls, rank, surroundings.size());
    if (differs) where = std::min(where.value_or(*differs), *differs);
  }
  if (!where) return std::nullopt;
  Difference difference{*where, {}};
  for (const auto& [rank, calls] : others) {
    if (auto text = calls->at(*where)) difference.called.emplace(rank, *std::move(text));
  }
  return difference;
}

// What a rank says when it leaves: in memory that the ranks have in common if there is a place, and if it is not too
// long. Else in the store. In memory, a mark before it tells whether the store has something, too.
class Farewell {
 public:
  Farewell(Surroundings& surroundings, const std::string& words) : surroundings_(surroundings) {
    const int rank = surroundings.rank;
    Store& scope = *surroundings.scope;
    const bool fits = words.size() < backend::CommonMemoryOps::kLongestFarewell;
    const bool has_posted = surroundings.has_posted || !fits;
    if (surroundings.memory != nullptr) {
      if (!fits) scope.set(calls_key(rank), words);
      const auto left = surroundings.memory->post_farewell((has_posted ? kInStore : kHere) + (fits ? words : ""));
      in_memory_ = left.has_value();
      leavers_ = left.value_or(0);
    }
    if (in_memory_) return;
    if (!words.empty()) scope.set(calls_key(rank), words);
    leavers_ = static_cast<int>(scope.add("calls/left", 1));
    if (leavers_ == surroundings.size()) scope.erase("calls/left");
  }

  int leavers() const { return leavers_; }  // so far, with this one

  // For the last one: what the rank has said, which is removed. Nothing if it was broken.
  std::optional<std::string> take_from(int rank) const {
    const std::string here = in_memory_ ? surroundings_.memory->farewell_of(rank).value_or("") : kInStore;
    std::optional<std::string> text;
    if (here.starts_with(kInStore)) {
      text = surroundings_.scope->get(calls_key(rank));
      surroundings_.scope->erase(calls_key(rank));
    }
    if (here.size() > 1) text = here.substr(1);
    return text;
  }

  // Of a rank that has left, in memory; nothing if it has said nothing there.
  static std::optional<std::string> heard_from(const Surroundings& surroundings, int rank) {
    const auto here = surroundings.memory != nullptr ? surroundings.memory->farewell_of(rank) : std::nullopt;
    if (!here || here->size() <= 1) return std::nullopt;
    return here->substr(1);
  }

 private:
  static inline const std::string kHere = "-", kInStore = "+";

  Surroundings& surroundings_;
  bool in_memory_ = false;
  int leavers_ = 0;
};

}  // namespace

void clear_board(Surroundings& surroundings) noexcept {
  const store::CallLimit limit(kStoreTime);
  try {
    Store* const scope = surroundings.scope.get();
    for (const std::string& key : surroundings.own_board_keys) scope->erase(key);
    surroundings.own_board_keys.clear();
    const auto ranks = static_cast<std::int64_t>(surroundings.peers.size());
    const std::uint64_t compared = std::exchange(surroundings.last_compared, 0);
    if (compared == 0 || scope->add("compare/left", 1) < ranks) return;
    for (const PeerInfo& peer : surroundings.peers) scope->erase(comparison_key(compared, peer.rank));
    scope->erase("compare/left");
  } catch (const std::exception&) {  // see look_at_store()
  }
}

void unpost_calls(Surroundings& surroundings) noexcept {
  if (!std::exchange(surroundings.has_posted, false)) return;
  const store::CallLimit limit(kStoreTime);
  try {
    surroundings.scope->erase(calls_key(surroundings.rank));
  } catch (const std::exception&) {  // see look_at_store()
  }
}

void post_calls(Surroundings& surroundings, std::optional<int> held_up_by) {
  std::uint64_t made = surroundings.history.last();
  for (const auto& [to, count] : surroundings.sent) made += count;
  if (held_up_by) surroundings.holdup = *held_up_by;
  const int awaited = surroundings.holdup;
  if (surroundings.posted_calls == made && surroundings.posted_holdup == awaited) return;
  Calls calls = surroundings.history.calls(surroundings.rank, surroundings.size());
  calls.sent = surroundings.sent;
  calls.held_up_by = awaited;
  surroundings.has_posted = true;
  surroundings.scope->set(calls_key(surroundings.rank), calls.encode());
  surroundings.posted_calls = made;
  surroundings.posted_holdup = awaited;
}

std::optional<Error> leave_board(Surroundings& surroundings, bool broken, const std::optional<Error>& why) noexcept {
  const store::CallLimit limit(kStoreTime);
  Store* const scope = surroundings.scope.get();
  const int rank = surroundings.rank, size = surroundings.size();
  if (scope == nullptr || size == 1) return std::nullopt;
  try {
    Calls own = surroundings.history.calls(rank, size);
    own.has_left = true;
    own.sent = surroundings.sent;
    if (why) own.why = encode_error(*why);
    const Farewell farewell(surroundings, broken ? std::string() : own.encode());
    if (farewell.leavers() < size) return std::nullopt;
    std::map<int, std::shared_ptr<const Calls>> others;
    for (int r = 0; r < size; ++r) {
      const auto text = farewell.take_from(r);
      if (text && r != rank && !broken) others[r] = std::make_shared<const Calls>(Calls::decode(*text));
    }
    const auto difference = compare(surroundings, own, others);
    if (!difference) return std::nullopt;
    // One that left early because of an error has said so.
    const auto is_excused = [&](const Calls& calls) {
      return calls.end() <= difference->sequence && !calls.why.empty();
    };
    if (is_excused(own) ||
        std::ranges::any_of(others, is_excused, [](const auto& other) -> const Calls& { return *other.second; }))
      return std::nullopt;
    const Operation operation = surroundings.history.operation(difference->sequence, rank, size);
    return judge(operation, rank, difference->called, surroundings.group, true);
  } catch (const std::exception&) {  // see look_at_store()
    return std::nullopt;
  }
}

Error left_because(const Surroundings& surroundings, int rank, const Error& why) {
  return Error(
      why.code(),
      fmt::format("rank {} has left the group after an error of group '{}': {}", rank, why.group(), why.message()),
      surroundings.group, surroundings.rank_of(why.world_rank()), why.world_rank());
}

void Diagnosis::throw_judged(const Operation& own, const std::map<int, std::string>& posted, bool last_chance) {
  if (!voting_ends_) voting_ends_ = Deadline::after(kVotingTime);
  const bool final = last_chance || voting_ends_->expired();
  if (const auto error = judge(own, surroundings_.rank, posted, surroundings_.group, final)) throw *error;
}

std::optional<std::string> Diagnosis::said_by(int rank) {
  auto text = Farewell::heard_from(surroundings_, rank);
  return text ? text : ask(calls_key(rank));
}

// What `rank` has called so far, unless it has said enough.
void Diagnosis::hear(int rank, const std::shared_ptr<const Calls>& own, const std::string& own_text) {
  const auto known = heard_.find(rank);
  if (known != heard_.end() && (known->second->has_left || known->second->end() >= own->end())) return;
  const auto text = said_by(rank);
  if (text) heard_[rank] = *text == own_text ? own : std::make_shared<const Calls>(Calls::decode(*text));
}

// The error of another group because of which that rank has left this one; nothing if it has not, or did not say so.
std::optional<Error> Diagnosis::why_left(int rank) {
  const auto known = heard_.find(rank);
  if (rank >= 0 && (known == heard_.end() || !known->second->has_left)) {
    if (const auto text = said_by(rank)) heard_[rank] = std::make_shared<const Calls>(Calls::decode(*text));
  }
  const auto heard = heard_.find(rank);
  const auto why = heard != heard_.end() && heard->second->has_left ? decode_error(heard->second->why) : std::nullopt;
  if (!why) return std::nullopt;
  return core::as_read_by(surroundings_.rank, left_because(surroundings_, rank, *why));
}

// Looks for ranks that have left before that call.
void Diagnosis::throw_why_left(std::uint64_t sequence) {
  for (const auto& [rank, calls] : heard_) {
    if (calls->end() > sequence) continue;
    if (const auto why = why_left(rank)) throw_explained(*why);
  }
}

// Its own rank publishes it only now: to explain() it once more would wait in vain.
void Diagnosis::throw_explained(const Error& why) {
  explained_ = why;
  throw why;
}

void Diagnosis::look_for_different_calls(bool last_chance) {
  const int self = surroundings_.rank, size = surroundings_.size();
  const auto own = std::make_shared<const Calls>(surroundings_.history.calls(self, size));
  const std::string own_text = own->encode();
  for (int rank = 0; rank < size; ++rank) {
    if (rank != self) hear(rank, own, own_text);
  }
  const auto difference = compare(surroundings_, *own, heard_);
  if (!difference) return;
  throw_why_left(difference->sequence);
  throw_judged(surroundings_.history.operation(difference->sequence, self, size), difference->called, last_chance);
}

std::optional<Error> Diagnosis::different_calls(bool last_chance) {
  try {
    post();
    look_for_different_calls(last_chance);
  } catch (const Error& difference) {
    return difference;
  }
  return std::nullopt;
}

void Diagnosis::compare_first(WaitContext& wait, const std::function<void()>& meanwhile) {
  describe();
  wait.waiting(-1, -1);  // a store that does not answer holds this rank up, and it holds up nobody
  // At the end of the wait, a call of the store has no time. Then the wait says who is missing, and asks the store
  // itself.
  const auto ask_in_time = [&wait](const auto& act) {
    const store::CallLimit limit(wait.deadline());
    try {
      act();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout || !wait.deadline().expired()) throw;
    }
  };
  Store& scope = *surroundings_.scope;
  const Operation own = operations_.front();  // a look makes the list anew
  const std::uint64_t before = std::exchange(surroundings_.last_compared, own.sequence);
  // Keys of their own: what a slower rank has not read yet must not be taken off by a later wait.
  ask_in_time([&] { scope.set(comparison_key(own.sequence, surroundings_.rank), own.encode()); });
  std::map<int, std::string> posted;
  const auto hear_all = [&] {
    for (const int rank : own.counterparts) {
      if (posted.count(rank) != 0) continue;
      if (auto text = scope.get(comparison_key(own.sequence, rank))) posted.emplace(rank, std::move(*text));
    }
  };
  while (posted.size() < own.counterparts.size()) {
    ask_in_time(hear_all);
    if (posted.size() == own.counterparts.size()) break;
    meanwhile();
    wait.check();
    core::sleep_for(kComparePause);
  }
  for (const auto& [rank, text] : posted) {
    if (matches(own, surroundings_.rank, text, rank)) continue;
    if (const auto error = judge(own, surroundings_.rank, posted, surroundings_.group, true)) throw *error;
  }
  // Every rank has posted this one, so has read all that came before.
  if (before != 0) ask_in_time([&] { scope.erase(comparison_key(before, surroundings_.rank)); });
}

}  // namespace col::group
