#include "group/join/epoch_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "group/join/decoded.hpp"
#include "json/json_fields.hpp"

namespace col::group {
namespace {

using store::Call;

constexpr std::string_view kRegister = "register", kQueue = "queue";

std::string after_key(std::uint64_t version) {
  return fmt::format("after/{}", version);
}

std::string word_key(Incarnation who, std::uint64_t round, bool is_connected) {
  return fmt::format("word/{:x}/{}{}", who, round, is_connected ? "c" : "");
}

std::string queued_key(std::uint64_t turn) {
  return fmt::format("queued/{}", turn);
}

struct Queue {
  std::uint64_t turn = 0;  // how often it has changed
  std::vector<Incarnation> waiting = {};
};

template <class Visit>
void fields(Queue& queue, Visit& visit) {
  auto& [turn, waiting] = queue;
  visit("turn", turn);
  visit("waiting", waiting);
}

Queue queue_from(const std::optional<std::string>& text) {
  return text ? decoded<Queue>(*text, "queue of those who wait to join a group") : Queue();
}

std::string gone_key(Incarnation who) {
  return fmt::format("gone/{:x}", who);
}

}  // namespace

RecordPtr EpochKeys::value_of(const std::optional<std::string>& text) const {
  return text ? std::make_shared<const EpochRecord>(EpochRecord::decode(*text)) : first_;
}

EpochKeys::Seen EpochKeys::look(const EpochChange::Roll& roll, bool with_queue, WaitContext& wait) {
  std::vector<Call> calls{Call::get(kRegister), Call::get(kQueue)};
  const std::size_t words = calls.size(), words_end = words + roll.all.size();
  for (const Incarnation who : roll.all) calls.push_back(Call::get(word_key(who, roll.round, roll.is_connected)));
  for (const Incarnation who : roll.missing) calls.push_back(Call::get(gone_key(who)));
  run(calls, wait);
  Seen seen{.value = value_of(calls.front().answer)};
  const auto hear = [&seen](const Call& call) {
    if (call.answer) seen.words.push_back(Presence::decode(*call.answer));
  };
  for (std::size_t i = words; i < words_end; ++i) hear(calls[i]);
  for (std::size_t i = 0; i < roll.missing.size(); ++i) {
    if (calls[words_end + i].answer) seen.gone.push_back(roll.missing[i]);
  }
  if (!with_queue) return seen;
  const Queue queue = queue_from(calls[1].answer);
  turn_ = queue.turn;
  queue_ = queue.waiting;
  seen.is_whole = true;
  calls.clear();
  for (const Incarnation who : queue_) calls.push_back(Call::get(word_key(who, 0, false)));
  run(calls, wait);
  for (const Call& call : calls) hear(call);
  return seen;
}

// The words come last: a store that waits for one key after the other waits for the last of them.
EpochKeys::Seen EpochKeys::sleep(std::uint64_t version, const EpochChange::Roll& roll, bool with_queue,
                                 WaitContext& wait) {
  std::vector<Call> calls{Call::wait(after_key(version))};
  if (with_queue) calls.push_back(Call::wait(queued_key(turn_ + 1)));
  const std::size_t gone = calls.size(), words = gone + roll.missing.size();
  for (const Incarnation who : roll.missing) calls.push_back(Call::wait(gone_key(who)));
  for (const Incarnation who : roll.missing) calls.push_back(Call::wait(word_key(who, roll.round, roll.is_connected)));
  std::size_t to_come = roll.missing.size();
  store::run(*store_, calls, wait, [&](std::size_t answered) { return answered >= words && --to_come > 0; });
  Seen seen;
  if (calls.front().answer) seen.value = value_of(calls.front().answer);
  for (std::size_t i = 0; i < roll.missing.size(); ++i) {
    if (calls[gone + i].answer) seen.gone.push_back(roll.missing[i]);
    if (calls[words + i].answer) seen.words.push_back(Presence::decode(*calls[words + i].answer));
  }
  return seen;
}

// A value that was never written is the first one: it is written in its place.
RecordPtr EpochKeys::swap(const EpochRecord& expected, const RecordPtr& desired, WaitContext& wait) {
  std::optional<std::string> before = expected.encode();
  if (first_ && expected == *first_) before.reset();
  std::vector<Call> calls{Call::compare_set(kRegister, before, desired->encode())};
  run(calls, wait);
  return calls.front().answer == before ? desired : value_of(calls.front().answer);
}

// Whoever is in an epoch has seen all that came before it.
void EpochKeys::ring(const EpochRecord& before, const EpochRecord& value, WaitContext& wait) {
  std::vector<Call> calls{Call::set(after_key(before.version()), value.encode())};
  const auto first_of = [](std::uint64_t epoch) {
    return EpochRecord{.epoch = epoch, .phase = EpochRecord::Phase::decided}.version();
  };
  if (value.phase == EpochRecord::Phase::over) {
    for (std::uint64_t version = first_of(value.base); version < first_of(value.epoch); ++version)
      calls.push_back(Call::erase(after_key(version)));
  }
  run(calls, wait);
}

// The word of one who waits to join stays as long as that one is in the queue.
void EpochKeys::say(const Presence& word, WaitContext& wait) {
  std::string key = word_key(word.incarnation, word.round, word.is_connected);
  std::vector<Call> calls{Call::set(key, word.encode())};
  const bool is_of_queue = own_word_ == word_key(word.incarnation, 0, false);
  if (!own_word_.empty() && own_word_ != key && !is_of_queue) calls.push_back(Call::erase(own_word_));
  run(calls, wait);
  own_word_ = std::move(key);
  if (word.round > 0) return;
  change_queue(
      [&word](std::vector<Incarnation>& waiting) {
        waiting.push_back(word.incarnation);
        return true;
      },
      wait);
}

void EpochKeys::tell_end(Incarnation ended, WaitContext& wait) {
  std::vector<Call> calls{Call::set(gone_key(ended), "")};
  run(calls, wait);
}

void EpochKeys::erase(const std::vector<Incarnation>& who, std::uint64_t first, std::uint64_t last, WaitContext& wait) {
  std::vector<Call> calls;
  for (const Incarnation one : who) {
    for (std::uint64_t round = first; round <= last; ++round) {
      calls.push_back(Call::erase(word_key(one, round, false)));
      calls.push_back(Call::erase(word_key(one, round, true)));
    }
    calls.push_back(Call::erase(gone_key(one)));
  }
  const auto is_one = [&who](Incarnation waiting) { return std::ranges::count(who, waiting) > 0; };
  const bool is_queued = std::ranges::any_of(queue_, is_one);
  for (const Incarnation one : is_queued ? who : std::vector<Incarnation>())
    calls.push_back(Call::erase(word_key(one, 0, false)));
  run(calls, wait);
  if (is_queued)
    change_queue([&](std::vector<Incarnation>& waiting) { return std::erase_if(waiting, is_one) > 0; }, wait);
}

// ---- Those who wait to join

// `change` returns whether there is anything to do.
void EpochKeys::change_queue(const std::function<bool(std::vector<Incarnation>&)>& change, WaitContext& wait) {
  for (;;) {
    std::vector<Call> calls{Call::get(kQueue)};
    run(calls, wait);
    const std::optional<std::string> before = calls.front().answer;
    Queue queue = queue_from(before);
    if (!change(queue.waiting)) return;
    ++queue.turn;
    queue_ = queue.waiting;
    calls = {Call::compare_set(kQueue, before, core::json_line(queue))};
    run(calls, wait);
    if (calls.front().answer != before) continue;
    calls = {Call::set(queued_key(queue.turn), ""), Call::erase(queued_key(queue.turn - 1))};
    return run(calls, wait);
  }
}

bool EpochKeys::anybody_waits(WaitContext& wait) {
  look({}, true, wait);
  return !queue_.empty();
}

}  // namespace col::group
