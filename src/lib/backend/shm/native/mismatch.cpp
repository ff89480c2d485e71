// What a rank says when the ranks of a group have not made the same call.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/native/collectives.hpp"
#include "core/clock/clock.hpp"

namespace col::shm_backend {
namespace {

// How often a rank asks for what the calls of all are in words.
constexpr Duration kVotingPause = std::chrono::milliseconds(5);

std::string named(int odd) {
  return odd >= 0 ? fmt::format("rank {} is the odd one; ", odd) : "";
}

}  // namespace

// The first rank that does not agree with the majority; -1 if there is none.
int Collectives::odd_one() const {
  std::map<std::uint64_t, std::vector<int>> callers;
  for (int rank = 0; rank < size_; ++rank) {
    if (const auto call = area_.done(rank).fingerprint_of(ended_ + 1)) callers[*call].push_back(rank);
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

bool Collectives::all_have_called() const {
  for (int rank = 0; rank < size_; ++rank) {
    if (!area_.done(rank).fingerprint_of(ended_ + 1)) return false;
  }
  return true;
}

void Collectives::throw_mismatch(int peer, WaitContext& wait) {
  // A rank that compares the calls in words can say more. A rank that counts them knows better which rank differs.
  const Deadline voting = Deadline::after(std::min<Duration>(kVotingTime, wait.deadline().remaining() / 2));
  std::optional<Deadline> words;
  while (!voting.expired() && !(words && words->expired())) {
    if (!words && all_have_called()) words = Deadline::after(kTimeForWords);
    try {
      wait.hurry();
      wait.check();
    } catch (const Error& error) {
      const int odd = odd_one();
      if (error.code() != ErrorCode::mismatch || error.rank() >= 0 || odd < 0) throw;
      throw Error(error.code(), named(odd) + error.message(), error.group(), odd);
    }
    attendant_.attend();
    core::sleep_for(kVotingPause);
  }
  throw mismatch_with(peer);
}

Error Collectives::mismatch_with(int peer) const {
  const int odd = odd_one();
  return Error(
      ErrorCode::mismatch,
      fmt::format("{}rank {} and rank {} have not made the same calls, this one or one before; every rank of a "
                  "group must make the same collective calls in the same order, with the same counts, types "
                  "and roots",
                  named(odd), rank_, peer),
      {}, odd);
}

}  // namespace col::shm_backend
