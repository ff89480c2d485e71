// The keys that ranks write into the store when they meet, and some of the words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "group/call/operation.hpp"
#include "group/join/member.hpp"
#include "json/json_fields.hpp"

namespace col::group {

inline constexpr std::string_view kRefused = "refused";
// Rank 0's word while it waits: the ranks that have not come. Where many wait for rank 0, one of them speaks in its
// place.
inline constexpr std::string_view kMissing = "missing";
// Changes when a rank has taken its announcement back, or has replaced one that rank 0 may have read.
inline constexpr std::string_view kTakenBack = "taken back";
// Only in a job: a nonce, and on another line the error of a process that was told the rank of that attempt's.
inline constexpr std::string_view kTwice = "twice";
// Only in a job: how the last meeting ended.
inline constexpr std::string_view kLastRoster = "roster";
inline constexpr std::string_view kWelcome = "{\"welcome\"";

// Short, as they pass for each rank several times.
inline std::string member_key(int rank) {
  return fmt::format("m/{}", rank);
}
inline std::string hex(std::uint64_t nonce) {
  return fmt::format("{:x}", nonce);
}
inline std::string answer_key(std::uint64_t nonce) {
  return "a/" + hex(nonce);
}

// Where the roster is for those who cannot read it in their neighbour's memory.
inline std::string roster_key(std::uint64_t token) {
  return "roster/" + hex(token);
}

// Where rank 0 says that a rank cannot use the backend that this one wants.
inline std::string lack_key(const Member& self) {
  return fmt::format("lacks/{}", wanted_backend(self));
}

// The text of kMissing: short, because all ranks read it again and again.
inline std::string word_of(const std::vector<int>& missing) {
  return core::json_line(runs_of(missing));
}

// Rank 0 tells this to the lowest rank of each host, with the roster on a line of its own; and that one the other ranks
// of its host.
struct Welcome {
  std::uint64_t token = 0;
  std::vector<std::pair<int, std::uint64_t>> neighbours = {};  // rank and nonce of those it must tell
  std::int64_t pid = 0;                                        // for the others: whose descriptor has the roster
  int descriptor = -1;                                         // -1: the store has it
};

template <class Visit>
void fields(Welcome& welcome, Visit& visit) {
  auto& [token, neighbours, pid, descriptor] = welcome;
  visit("welcome", token);
  visit.if_set("tell", neighbours, !neighbours.empty());
  visit.if_set("pid", pid, descriptor >= 0);
  visit.if_set("fd", descriptor, descriptor >= 0);
}

}  // namespace col::group
