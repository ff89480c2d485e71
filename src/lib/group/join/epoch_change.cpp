#include "group/join/epoch_change.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "group/call/operation.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/epoch_words.hpp"

namespace col::group {

EpochChange::EpochChange(ChangeSpec spec, std::set<Incarnation> dead) : spec_(std::move(spec)) {
  state_.dead = std::move(dead);
  state_.known = spec_.last;
  state_.is_wait_over = spec_.wait <= Duration::zero();
  if (joins()) {
    say(0, false);
    return;
  }
  for (const int number : spec_.excluded)
    excluded_.push_back(spec_.last->members.at(static_cast<std::size_t>(number)).incarnation);
  std::sort(excluded_.begin(), excluded_.end());
  actions_.emplace_back(EndGroup{});
  // In one trip with the write that comes next. Where the epochs are further on, it is said again.
  say(std::max(spec_.last->epoch, spec_.settled) + 1, false);
  go_on();
}

bool EpochChange::is_excluded(Incarnation incarnation) const {
  return std::binary_search(excluded_.begin(), excluded_.end(), incarnation);
}

const Presence* EpochChange::word_for(Incarnation incarnation, std::uint64_t round) const {
  const auto found = state_.heard.find(incarnation);
  return found != state_.heard.end() && found->second.round == round ? &found->second : nullptr;
}

// ---- Events

void EpochChange::on_register(RecordPtr value) {
  if (state_.is_over) return;
  take(std::move(value));
  go_on();
}

void EpochChange::on_look(RecordPtr value, const std::vector<Presence>& words) {
  if (state_.is_over) return;
  take(words);
  take(std::move(value));
  go_on();
}

// Values may come late, and in another order than that of the register.
void EpochChange::take(RecordPtr value) {
  if (!value) {
    if (!joins()) on_register_gone(Error(ErrorCode::io, "it is not there any more"));
    return;
  }
  if (state_.known && value->version() <= state_.known->version()) return;
  state_.known = std::move(value);
  state_.is_writing = false;  // one that is still under way can only fail
}

// So may words. One that is not there any more counts, but that of a process which waited to join, and has given up.
void EpochChange::take(const std::vector<Presence>& words) {
  std::erase_if(state_.heard, [&](const auto& entry) {
    const auto& [incarnation, word] = entry;
    return word.ticket >= 0 && incarnation != spec_.incarnation &&
           std::ranges::find(words, incarnation, &Presence::incarnation) == words.end();
  });
  const auto step = [](const Presence& one) { return std::pair(one.round, one.is_connected); };
  for (const Presence& word : words) {
    const auto [found, is_new] = state_.heard.try_emplace(word.incarnation, word);
    if (!is_new && step(word) > step(found->second)) found->second = word;
  }
}

void EpochChange::on_register_gone(const Error& why) {
  if (!state_.is_over) finish({.error = register_gone(spec_.group, why.message())});
}

void EpochChange::on_lost(Incarnation incarnation) {
  if (incarnation != spec_.incarnation && state_.dead.insert(incarnation).second) go_on();
}

void EpochChange::on_connected(std::uint64_t epoch) {
  if (!state_.connecting || state_.connecting->epoch != epoch) return;
  state_.is_connected = true;
  go_on();
}

void EpochChange::on_connect_failed(std::uint64_t epoch, const Error& why) {
  if (state_.connecting && state_.connecting->epoch == epoch) give_up(why);
}

void EpochChange::on_wait_over() {
  state_.is_wait_over = true;
  go_on();
}

// Whoever has not connected by now may be another one's victim. All of them keep their places.
void EpochChange::on_patience_over(std::uint64_t epoch) {
  if (state_.is_over || state_.is_writing || state_.known->phase != Phase::decided) return;
  if (!state_.connecting || state_.connecting->epoch != epoch) return;
  EpochRecord record = in_phase(*state_.known, Phase::void_);
  for (const int rank : record.newcomers()) {
    const Incarnation newcomer = record.members[static_cast<std::size_t>(rank)].incarnation;
    const Presence* word = word_for(newcomer, epoch);
    if (word == nullptr || !word->is_connected) record.passed_over.push_back(newcomer);
  }
  if (record.passed_over.size() > state_.known->passed_over.size()) write(std::move(record));
}

void EpochChange::on_deadline() {
  if (state_.is_over) return;
  const Error late = lateness();
  if (!state_.giving_up.empty()) return finish({.error = register_slow(spec_.group)});
  give_up(late);
}

void EpochChange::on_interrupted(const Error& why) {
  give_up(why);
}

// ---- From the state alone

void EpochChange::go_on() {
  if (state_.is_over || state_.is_writing) return;
  if (has_opened()) return finish_open();
  leave_void_record();
  joins() ? go_on_as_joiner() : go_on_as_member();
}

// Also if it is over by now, because others have met the next loss: then this call ends as theirs did, and the next one
// finds that out.
bool EpochChange::has_opened() const {
  if (!state_.connecting || !state_.is_connected) return false;
  const EpochRecord& known = *state_.known;
  const std::uint64_t epoch = state_.connecting->epoch;
  const bool is_newest = known.phase == Phase::open || known.phase == Phase::over;
  return (is_newest && known.epoch == epoch) || known.base == epoch;
}

// The record for which this process has connected, or tries to, is none any more.
void EpochChange::leave_void_record() {
  if (!state_.connecting) return;
  const EpochRecord& known = *state_.known;
  if (known.phase == Phase::decided && known.epoch == state_.connecting->epoch) return;
  actions_.emplace_back(Disconnect{std::exchange(state_.connecting, nullptr)->epoch});
  state_.is_connected = false;
}

void EpochChange::go_on_as_member() {
  const EpochRecord& known = *state_.known;
  const bool is_in = known.phase == Phase::open || known.phase == Phase::over
                         ? known.number_of(spec_.incarnation) >= 0
                         : known.generation().number_of(spec_.incarnation) >= 0 && !known.has_lost(spec_.incarnation);
  if (!is_in) return leave();
  if (known.phase == Phase::failed && known.epoch > spec_.settled)
    return finish({.error = decode_error(known.error), .settled = known.epoch});
  if (!state_.giving_up.empty() && known.phase != Phase::open) return fail_for_all(state_.giving_up);
  switch (known.phase) {
    case Phase::open:  // this rank is in it, though it may have come here from an older one
      write(in_phase(known, Phase::over));
      actions_.emplace_back(EndDerived{});
      return;
    case Phase::decided:
      return connect_all();
    default:
      return call_roll();
  }
}

void EpochChange::go_on_as_joiner() {
  const bool is_listed = state_.known && state_.known->number_of(spec_.incarnation) >= 0;
  const bool is_taken = is_listed && state_.known->phase == Phase::decided;
  if (!state_.giving_up.empty()) {
    if (!is_taken) return finish({.error = decode_error(state_.giving_up)});
    EpochRecord record = in_phase(*state_.known, Phase::void_);
    record.passed_over.push_back(spec_.incarnation);
    return write(std::move(record));
  }
  if (is_taken) return connect_all();
  if (!state_.known) return;
  const Generation last = state_.known->generation();
  if (std::ranges::none_of(last.members, [this](Incarnation member) { return lives(member); }))
    finish({.error = nobody_lives(spec_.group, last.epoch)});
}

void EpochChange::write(EpochRecord desired) {
  state_.is_writing = true;
  actions_.emplace_back(WriteRegister{state_.known, std::make_shared<const EpochRecord>(std::move(desired))});
  actions_.emplace_back(Ring{});
}

void EpochChange::say(std::uint64_t round, bool is_connected) {
  state_.said = {.incarnation = spec_.incarnation,
                 .round = round,
                 .is_connected = is_connected,
                 .ticket = joins() ? spec_.ticket : -1,
                 .progress = spec_.progress,
                 .address = spec_.address,
                 .size = spec_.size,
                 .min = spec_.min,
                 .excluded = excluded_};
  state_.heard.insert_or_assign(spec_.incarnation, state_.said);
  actions_.emplace_back(Say{state_.said});
}

void EpochChange::give_up(const Error& why) {
  if (state_.is_over || !state_.giving_up.empty()) return;
  state_.giving_up = encode_error(why);
  go_on();
}

// All who are in the renewal, or come to it late, get the error, unless the register says something else meanwhile.
// Requires: the last epoch is over.
void EpochChange::fail_for_all(const std::string& error) {
  const EpochRecord& known = *state_.known;
  EpochRecord record = in_phase(known, Phase::failed);
  record.error = error;
  record.passed_over.clear();
  if (known.phase == Phase::over) {
    record.base = known.epoch;
    record.lost.clear();
    for (std::size_t i = 0; i < record.members.size(); ++i) record.members[i].before = static_cast<int>(i);
  }
  if (known.phase != Phase::decided) ++record.epoch;
  write(std::move(record));
}

void EpochChange::finish(Finish end) {
  state_.is_over = true;
  if (end.error && state_.connecting) actions_.emplace_back(Disconnect{state_.connecting->epoch});
  actions_.emplace_back(Erase{{spec_.incarnation}});
  end.settled = std::max(end.settled, spec_.settled);
  actions_.emplace_back(std::move(end));
}

void EpochChange::finish_open() {
  if (is_first_survivor(*state_.connecting)) clean_up();
  finish({.record = std::make_shared<const EpochRecord>(in_phase(*state_.connecting, Phase::open))});
}

void EpochChange::leave() {
  if (is_excluded(spec_.incarnation)) return finish({.has_left = true});
  finish({.error = left_out(spec_.group, *state_.known, spec_.incarnation)});
}

void EpochChange::call_roll() {
  const std::uint64_t round = state_.known->epoch + 1;
  if (state_.said.round < round) say(round, false);
  const Incarnation first = leader();
  if (first == 0) return fail_for_all(encode_error(nobody_stays(spec_.group)));
  if (first == spec_.incarnation) decide();
}

void EpochChange::connect_all() {
  if (void_if_lost()) return;
  const EpochRecord& record = *state_.known;
  const bool leads = is_first_survivor(record);
  if (state_.connecting == nullptr) {
    state_.connecting = state_.known;
    if (leads) evict();
    actions_.emplace_back(Connect{state_.known});
    // The shortest patience lets a process that sleeps wake up and connect on a machine that is busy.
    constexpr Duration kLeastPatience = std::chrono::seconds(1);
    if (leads && !record.newcomers().empty())
      actions_.emplace_back(Patience{record.epoch, std::max<Duration>(spec_.wait, kLeastPatience)});
  }
  if (!state_.is_connected) return;
  if (state_.said.round != record.epoch || !state_.said.is_connected) say(record.epoch, true);
  if (leads && all_connected()) write(in_phase(record, Phase::open));
}

// A record with a member that has ended cannot open. All learn from the register who that is: else one who does not
// know of the death would list it again.
bool EpochChange::void_if_lost() {
  EpochRecord record = in_phase(*state_.known, Phase::void_);
  bool is_void = false;
  for (const Seat& seat : state_.known->members) {
    if (!state_.dead.contains(seat.incarnation)) continue;
    is_void = true;
    if (seat.before < 0)
      record.passed_over.push_back(seat.incarnation);
    else
      record.lost.push_back({.incarnation = seat.incarnation, .number = seat.before});
  }
  if (is_void) write(std::move(record));
  return is_void;
}

bool EpochChange::all_connected() const {
  const EpochRecord& record = *state_.known;
  return std::ranges::all_of(record.members, [&](const Seat& seat) {
    const Presence* word = word_for(seat.incarnation, record.epoch);
    return word != nullptr && word->is_connected;
  });
}

// ---- In words

Error EpochChange::lateness() const {
  if (!state_.known) return no_such_group(spec_.group);
  const EpochRecord& known = *state_.known;
  const bool connects = known.phase == Phase::decided && known.number_of(spec_.incarnation) >= 0;
  if (joins() && !connects)
    return not_taken(spec_.group, static_cast<int>(known.generation().members.size()), spec_.most);
  std::vector<int> late = connects ? std::vector<int>() : absent();
  bool is_newcomer_late = false;
  for (const Seat& seat : connects ? known.members : std::vector<Seat>()) {
    const Presence* word = word_for(seat.incarnation, known.epoch);
    if (word != nullptr && word->is_connected) continue;
    if (seat.before >= 0)
      late.push_back(seat.before);
    else
      is_newcomer_late = true;
  }
  std::ranges::sort(late);
  if (state_.is_writing || (late.empty() && !is_newcomer_late)) return register_slow(spec_.group);
  return connects ? late_to_connect(spec_.group, known.epoch, late) : late_for_renewal(spec_.group, late);
}

std::string EpochChange::awaited() const {
  if (state_.is_writing || !state_.known) return "the register of epochs";
  if (state_.known->phase == Phase::decided) return "the ranks of the next epoch to connect";
  if (joins()) return "the ranks of the group to call renew()";
  const std::vector<int> late = absent();
  return late.empty() ? "the lowest rank to decide on the next epoch" : ranks_text(late) + " to call renew()";
}

}  // namespace col::group
