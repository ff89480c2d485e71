// All interleavings of a few small programs that share some words of memory, one atomic access after the other.
//
// A program is a list of instructions; each of them does one access, and says which instruction is next. Every state
// that can be reached is looked at once. Found are states in which nothing can go on though not all have come to their
// end: a rank sleeps and nobody will wake it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace col::test {

// Memory is bytes: the words of the model are small.
inline constexpr std::size_t kModelWords = 40, kModelRanks = 6;

struct ModelState {
  std::array<std::uint8_t, kModelWords> words{};
  std::array<std::uint8_t, kModelRanks> next{};  // by rank: its next instruction
  bool operator==(const ModelState&) const = default;
};

struct ModelStateHash {
  std::size_t operator()(const ModelState& state) const noexcept {
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325ULL;
    for (const std::uint8_t byte : state.words) hash = (hash ^ byte) * 0x100'0000'01b3ULL;
    for (const std::uint8_t byte : state.next) hash = (hash ^ byte) * 0x100'0000'01b3ULL;
    return hash;
  }
};

// Returns the index of the next instruction, or kBlocked, having changed nothing.
struct Instruction {
  static constexpr int kBlocked = -1;
  std::string name;
  std::function<int(ModelState& state)> act;
};
using ModelProgram = std::vector<Instruction>;

struct Exploration {
  std::size_t states = 0, ends = 0;
  std::string stuck;  // how ranks come to wait for ever; empty when they do not
};

// Requires: at most kModelRanks programs of fewer than 256 instructions.
inline Exploration explore(const std::vector<ModelProgram>& programs) {
  using Step = std::pair<ModelState, std::size_t>;  // from where, and which rank moved
  std::unordered_map<ModelState, Step, ModelStateHash> seen;
  std::vector<ModelState> open = {ModelState{}};
  seen.emplace(open.front(), Step{open.front(), kModelRanks});
  Exploration result;
  while (!open.empty()) {
    const ModelState state = open.back();
    open.pop_back();
    ++result.states;
    bool moved = false, ended = true;
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      if (state.next[rank] == programs[rank].size()) continue;
      ended = false;
      ModelState after = state;
      const int next = programs[rank][state.next[rank]].act(after);
      if (next == Instruction::kBlocked) continue;
      moved = true;
      after.next[rank] = static_cast<std::uint8_t>(next);
      if (seen.emplace(after, Step{state, rank}).second) open.push_back(after);
    }
    if (ended) ++result.ends;
    if (moved || ended) continue;
    for (ModelState at = state; seen.at(at).second != kModelRanks; at = seen.at(at).first) {
      const auto& [from, rank] = seen.at(at);
      result.stuck.insert(0, "rank " + std::to_string(rank) + ": " + programs[rank][from.next[rank]].name + "\n");
    }
    return result;
  }
  return result;
}

}  // namespace col::test
