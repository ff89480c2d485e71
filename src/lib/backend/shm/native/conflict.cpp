#include "backend/shm/native/conflict.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace col::shm_backend {
namespace {

// How long a rank that has found a mismatch waits for the calls of all others, as in group/diagnosis/board.cpp.
constexpr Duration kVotingTime = std::chrono::seconds(3);
// How long it waits for them in words, once all have made one: those who notice nothing say theirs after 100 ms.
constexpr Duration kTimeForWords = std::chrono::milliseconds(250);
// How often a rank asks for what the calls of all are in words.
constexpr Duration kVotingPause = std::chrono::milliseconds(5);

std::string named(int odd) {
  return odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : "";
}

}  // namespace

void Conflict::set(const OtherCall& found) {
  found_ = found;
  words_ = Deadline::after(kVotingTime);
}

void Conflict::look(std::uint64_t number) {
  if (!all_called_ && all_have_called(number)) {
    all_called_ = true;
    words_ = Deadline::after(kTimeForWords);
  }
  if (words_.expired()) throw mismatch_with(number, found_->peer);
}

// The first rank that does not agree with the majority; -1 if there is none.
int Conflict::odd_one(std::uint64_t number) const {
  std::map<std::uint64_t, std::vector<int>> callers;
  for (int rank = 0; rank < size_; ++rank) {
    if (const auto call = area_.done(rank).fingerprint_of(number)) callers[*call].push_back(rank);
  }
  int odd = -1;
  bool majority = false;
  for (const auto& [call, ranks] : callers) {
    if (2 * static_cast<int>(ranks.size()) > size_)
      majority = true;
    else if (odd < 0 || ranks.front() < odd)
      odd = ranks.front();
  }
  return majority ? odd : -1;
}

bool Conflict::all_have_called(std::uint64_t number) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!area_.done(rank).fingerprint_of(number)) return false;
  }
  return true;
}

void Conflict::tell(std::uint64_t number, int peer, WaitContext& wait) const {
  // A rank that compares the calls in words can say more. A rank that counts them knows better which rank differs.
  const Deadline voting = Deadline::after(std::min<Duration>(kVotingTime, wait.deadline().remaining() / 2));
  std::optional<Deadline> words;
  while (!voting.expired() && !(words && words->expired())) {
    if (!words && all_have_called(number)) words = Deadline::after(kTimeForWords);
    try {
      wait.hurry();
      wait.check();
    } catch (const Error& error) {
      const int odd = odd_one(number);
      if (error.code() != ErrorCode::mismatch || error.rank() >= 0 || odd < 0) throw;
      throw Error(error.code(), named(odd) + error.message(), error.group(), odd);
    }
    attendant_.attend();
    core::sleep_for(kVotingPause);
  }
  throw mismatch_with(number, peer);
}

Error Conflict::mismatch_with(std::uint64_t number, int peer) const {
  const int odd = odd_one(number);
  return Error(
      ErrorCode::mismatch,
      fmt::format("{}rank {} and rank {} have not made the same calls, this one or one before; every rank of a "
                  "group must make the same collective calls in the same order, with the same counts, types "
                  "and roots",
                  named(odd), rank_, peer),
      {}, odd);
}

}  // namespace col::shm_backend
