#include "group/join/epoch_keys.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace col::group {
namespace {

using store::Call;

constexpr std::string_view kRegister = "register";

std::string after_key(std::uint64_t version) {
  return fmt::format("after/{}", version);
}

std::string word_key(Incarnation who, std::uint64_t round, bool is_connected) {
  return fmt::format("word/{:x}/{}{}", who, round, is_connected ? "c" : "");
}

std::string gone_key(Incarnation who) {
  return fmt::format("gone/{:x}", who);
}

}  // namespace

RecordPtr EpochKeys::value_of(const std::optional<std::string>& text) const {
  return text ? std::make_shared<const EpochRecord>(EpochRecord::decode(*text)) : first_;
}

EpochKeys::Seen EpochKeys::look(const EpochChange::Roll& roll, WaitContext& wait) {
  std::vector<Call> calls{Call::get(kRegister)};
  for (const Incarnation who : roll.all) calls.push_back(Call::get(word_key(who, roll.round, roll.is_connected)));
  for (const Incarnation who : roll.missing) calls.push_back(Call::get(gone_key(who)));
  run(calls, wait);
  Seen seen{.value = value_of(calls.front().answer)};
  const std::size_t words_end = 1 + roll.all.size();
  for (std::size_t i = 1; i < words_end; ++i) {
    if (calls[i].answer) seen.words.push_back(Presence::decode(*calls[i].answer));
  }
  for (std::size_t i = 0; i < roll.missing.size(); ++i) {
    if (calls[words_end + i].answer) seen.gone.push_back(roll.missing[i]);
  }
  return seen;
}

// The words come last: a store that waits for one key after the other waits for the last of them.
EpochKeys::Seen EpochKeys::sleep(const EpochRecord& known, const EpochChange::Roll& roll, WaitContext& wait) {
  std::vector<Call> calls{Call::wait(after_key(known.version()))};
  for (const Incarnation who : roll.missing) calls.push_back(Call::wait(gone_key(who)));
  const std::size_t words = calls.size();
  for (const Incarnation who : roll.missing) calls.push_back(Call::wait(word_key(who, roll.round, roll.is_connected)));
  std::size_t to_come = roll.missing.size();
  store::run(*store_, calls, wait, [&](std::size_t answered) { return answered >= words && --to_come > 0; });
  Seen seen;
  if (calls.front().answer) seen.value = value_of(calls.front().answer);
  for (std::size_t i = 0; i < roll.missing.size(); ++i) {
    if (calls[1 + i].answer) seen.gone.push_back(roll.missing[i]);
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

void EpochKeys::say(const Presence& word, WaitContext& wait) {
  std::string key = word_key(word.incarnation, word.round, word.is_connected);
  std::vector<Call> calls{Call::set(key, word.encode())};
  if (!own_word_.empty() && own_word_ != key) calls.push_back(Call::erase(own_word_));
  run(calls, wait);
  own_word_ = std::move(key);
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
  run(calls, wait);
}

}  // namespace col::group
