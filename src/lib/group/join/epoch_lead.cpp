// The part of the lowest survivor in the change of an epoch. Another one takes it when there is evidence that this one
// has ended, and finds all that it needs in the register and in the words of the others.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/hash.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/epoch_change.hpp"
#include "group/join/epoch_words.hpp"
#include "group/join/numbering.hpp"

namespace col::group {

// Opens the epoch: the first survivor that the record lists.
bool EpochChange::is_first_survivor(const EpochRecord& record) const {
  const auto first = std::ranges::find_if(record.members, [](const Seat& seat) { return seat.before >= 0; });
  return first != record.members.end() && first->incarnation == spec_.incarnation;
}

// Decides: the first member that may be in the next epoch. 0: there is none.
Incarnation EpochChange::leader() const {
  for (const Incarnation member : state_.known->generation().members) {
    if (lives(member) && !is_excluded(member)) return member;
  }
  return 0;
}

// The numbers of those who live and have not said that they are here.
std::vector<int> EpochChange::absent() const {
  const std::vector<Incarnation> members = state_.known->generation().members;
  std::vector<int> numbers;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!lives(members[i]) || is_excluded(members[i])) continue;
    if (word_for(members[i], state_.known->epoch + 1) == nullptr) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

bool EpochChange::leads() const {
  if (state_.is_over || joins() || !state_.known) return false;
  return state_.known->phase == Phase::decided ? is_first_survivor(*state_.known) : leader() == spec_.incarnation;
}

EpochChange::Roll EpochChange::roll() const {
  Roll roll;
  if (!state_.known) return roll;
  const EpochRecord& known = *state_.known;
  roll.is_connected = known.phase == Phase::decided;
  roll.round = known.epoch + (roll.is_connected ? 0 : 1);
  std::vector<Incarnation> members = known.generation().members;
  if (roll.is_connected) {
    members.clear();
    for (const Seat& seat : known.members) members.push_back(seat.incarnation);
  }
  for (const Incarnation member : members) {
    const Presence* word = word_for(member, roll.round);
    if (!lives(member) || (word != nullptr && word->is_connected == roll.is_connected)) continue;
    roll.all.push_back(member);
    if (!is_excluded(member)) roll.missing.push_back(member);
  }
  return roll;
}

// Waits for all who live, and for nobody else but, until their time is over, those who would join.
void EpochChange::decide() {
  if (!absent().empty()) return;
  if (const auto error = disagreement()) return fail_for_all(encode_error(*error));
  if (spec_.most > 0 && spec_.size > spec_.most)
    return fail_for_all(encode_error(more_than_most(spec_.group, spec_.size, spec_.most)));
  const Generation last = state_.known->generation();
  std::vector<int> survivors;
  for (std::size_t i = 0; i < last.members.size(); ++i) {
    if (lives(last.members[i]) && !is_excluded(last.members[i])) survivors.push_back(static_cast<int>(i));
  }
  std::vector<const Presence*> newcomers = queue();
  const int present = static_cast<int>(survivors.size());
  const int wanted = spec_.size == 0 ? static_cast<int>(last.members.size()) : spec_.size;
  const auto gaps = static_cast<std::size_t>(std::max(wanted - present, 0));
  if (newcomers.size() < gaps && !state_.is_wait_over) return;
  newcomers.resize(std::min(newcomers.size(), gaps));
  const int joining = static_cast<int>(newcomers.size());
  if (present + joining < spec_.min)
    return fail_for_all(encode_error(fewer_than_min(spec_.group, present, joining, spec_.min)));
  write(next_record(survivors, newcomers));
}

// Also with the words of ranks that are to be left out, if they have come.
std::optional<Error> EpochChange::disagreement() const {
  const Generation last = state_.known->generation();
  std::vector<const Presence*> words;
  for (const Incarnation member : last.members) {
    if (const Presence* word = word_for(member, state_.known->epoch + 1)) words.push_back(word);
  }
  if (std::ranges::all_of(words, [&](const Presence* word) { return word->wants_the_same(state_.said); }))
    return std::nullopt;
  return unequal_wishes(spec_.group, last, words);
}

// The processes that wait to join, first come first.
std::vector<const Presence*> EpochChange::queue() const {
  const EpochRecord& known = *state_.known;
  const Generation last = known.generation();
  std::vector<const Presence*> waiting;
  for (const auto& [incarnation, word] : state_.heard) {
    const bool was_late = std::ranges::find(known.passed_over, incarnation) != known.passed_over.end();
    const bool is_waiting = word.ticket >= 0 && last.number_of(incarnation) < 0 && lives(incarnation);
    if (is_waiting && (!was_late || known.phase == Phase::over)) waiting.push_back(&word);
  }
  std::ranges::sort(waiting, {}, &Presence::ticket);
  return waiting;
}

// The token is of this record alone: incarnations are random, and an epoch is proposed by one process once.
EpochRecord EpochChange::next_record(const std::vector<int>& survivors,
                                     const std::vector<const Presence*>& newcomers) const {
  const EpochRecord& known = *state_.known;
  const Generation last = known.generation();
  const Numbering numbers = next_numbers(survivors, static_cast<int>(newcomers.size()));
  EpochRecord record{.epoch = known.epoch + 1, .phase = Phase::decided, .base = last.epoch};
  record.token = core::Hash().add(spec_.group).add(record.epoch).add(spec_.incarnation).value();
  record.members.resize(survivors.size() + newcomers.size());
  for (std::size_t i = 0; i < survivors.size(); ++i) {
    const Incarnation member = last.members[static_cast<std::size_t>(survivors[i])];
    const Presence& word = *word_for(member, record.epoch);
    record.members[static_cast<std::size_t>(numbers.survivors[i])] = {member, survivors[i], word.progress,
                                                                      word.address};
  }
  for (std::size_t i = 0; i < newcomers.size(); ++i)
    record.members[static_cast<std::size_t>(numbers.newcomers[i])] = {.incarnation = newcomers[i]->incarnation,
                                                                      .address = newcomers[i]->address};
  if (known.phase != Phase::over) {
    record.lost = known.lost;
    record.passed_over = known.passed_over;
  }
  for (std::size_t i = 0; i < last.members.size(); ++i) {
    const Incarnation member = last.members[i];
    if (record.number_of(member) < 0 && !record.has_lost(member))
      record.lost.push_back({member, static_cast<int>(i), lives(member)});
  }
  return record;
}

// Members that are left out alive, and have not come themselves.
void EpochChange::evict() {
  Evict evicted;
  for (const LostSeat& seat : state_.known->lost) {
    if (seat.is_excluded && word_for(seat.incarnation, state_.known->epoch) == nullptr)
      evicted.members.push_back(seat.incarnation);
  }
  if (!evicted.members.empty()) actions_.emplace_back(std::move(evicted));
}

// Each process erases its own word when it is done. Left are those of the dead: also of the last change, as its leader
// may have ended before it did so.
void EpochChange::clean_up() {
  std::set<Incarnation> left = state_.dead;
  for (const LostSeat& seat : state_.connecting->lost) left.insert(seat.incarnation);
  if (!joins()) {
    for (const LostSeat& seat : spec_.last->lost) left.insert(seat.incarnation);
  }
  if (!left.empty()) actions_.emplace_back(Erase{{left.begin(), left.end()}});
}

}  // namespace col::group
