// All states that a protocol can reach, each looked at once: search(), for any kind of state; and explore(), for a few
// small programs that share some words of memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace col::test {

struct Exploration {
  std::size_t states = 0, ends = 0;
  std::string stuck;  // how it comes to a state that is wrong, a line for each step; empty when there is none
};

// A Space has
//   State, and Key with KeyHash: states with equal keys are the same one
//   Key key(const State&)
//   void steps(const State&, take)   calls take(name, after) for each step from a state, always in the same order;
//                                    name() is its text
//   bool is_end(const State&)        nothing has to follow
//   std::string wrong(const State&)  why the promise is broken there; empty: it is not. Asked once its steps are known
// Found is a state that is wrong, or from which nothing leads on though it is no end. `most`: of states to look at.
template <class Space>
Exploration search(const Space& space, const typename Space::State& first, std::size_t most = SIZE_MAX) {
  using State = typename Space::State;
  struct From {
    std::uint32_t state = 0;  // by the number of its discovery
    std::uint32_t step = 0;   // of that state's
  };
  std::unordered_set<typename Space::Key, typename Space::KeyHash> seen;
  std::vector<From> origins = {From{}};
  std::vector<std::pair<State, std::uint32_t>> open = {{first, 0}};
  seen.insert(space.key(first));
  Exploration result;
  // States are not kept: the way is walked again.
  const auto way_to = [&](std::uint32_t number) {
    std::deque<std::uint32_t> way;
    for (; number != 0; number = origins[number].state) way.push_front(origins[number].step);
    State at = first;
    for (const std::uint32_t wanted : way) {
      std::uint32_t step = 0;
      std::optional<State> next;
      space.steps(at, [&](const auto& name, State after) {
        if (step++ != wanted) return;
        result.stuck += name() + "\n";
        next = std::move(after);
      });
      at = *std::move(next);
    }
  };
  while (!open.empty() && result.states < most) {
    const State state = std::move(open.back().first);
    const std::uint32_t number = open.back().second;
    open.pop_back();
    ++result.states;
    std::uint32_t step = 0;
    space.steps(state, [&](const auto&, State after) {
      if (seen.insert(space.key(after)).second) {
        open.emplace_back(std::move(after), static_cast<std::uint32_t>(origins.size()));
        origins.push_back({number, step});
      }
      ++step;
    });
    const bool is_end = space.is_end(state);
    if (is_end) ++result.ends;
    const std::string wrong = space.wrong(state);
    if (wrong.empty() && (step > 0 || is_end)) continue;
    way_to(number);
    result.stuck += wrong;
    return result;
  }
  return result;
}

// ---- Programs of instructions, one atomic access after the other. Each of them does one access, and says which
// instruction is next. Stuck: a rank sleeps, and nobody will wake it.

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

class ModelSpace {
 public:
  using State = ModelState;
  using Key = ModelState;
  using KeyHash = ModelStateHash;

  explicit ModelSpace(const std::vector<ModelProgram>& programs) : programs_(programs) {}
  const Key& key(const State& state) const { return state; }
  template <class Take>
  void steps(const State& state, const Take& take) const {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      if (state.next[rank] == programs_[rank].size()) continue;
      State after = state;
      const Instruction& instruction = programs_[rank][state.next[rank]];
      const int next = instruction.act(after);
      if (next == Instruction::kBlocked) continue;
      after.next[rank] = static_cast<std::uint8_t>(next);
      take([&] { return "rank " + std::to_string(rank) + ": " + instruction.name; }, after);
    }
  }
  bool is_end(const State& state) const {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) {
      if (state.next[rank] != programs_[rank].size()) return false;
    }
    return true;
  }
  std::string wrong(const State& /*state*/) const { return {}; }

 private:
  const std::vector<ModelProgram>& programs_;
};

// Requires: at most kModelRanks programs of fewer than 256 instructions.
inline Exploration explore(const std::vector<ModelProgram>& programs) {
  return search(ModelSpace(programs), ModelState{});
}

}  // namespace col::test
