#include "plan/simulation/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace col::plan::simulation {
namespace {

// From one rank to the next that may do the same: the ranks of a node, if all nodes have as many, in order. 0: none
// may.
int step_between(const std::vector<int>& nodes, const CostModel& model) {
  const auto size = static_cast<int>(nodes.size());
  const int count = 1 + *std::max_element(nodes.begin(), nodes.end());
  if (model.cores > 0) return 0;
  if (count == 1) return model.memory_bandwidth > 0 ? 0 : 1;  // what all share, one would have alone
  if (size % count != 0) return 0;
  const int step = size / count;
  for (int r = 0; r < size; ++r) {
    if (nodes[static_cast<std::size_t>(r)] != r / step) return 0;
  }
  return step;
}

// All that the simulator reads of a rank's plan, in words.
struct Description {
  struct Round {
    std::size_t messages_end, end;  // so many words, from the beginning on
  };
  std::vector<std::uint64_t> words = {};
  std::vector<Round> rounds = {};
};

// Peers are as seen from rank `first`. False: one does not exist.
bool describe(RankState& state, std::size_t most_rounds, int first, int size, RoundReader& reader,
              Description& description) {
  constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  auto& [words, rounds] = description;
  words.clear();
  rounds.clear();
  while (state.next_round < std::min(state.plan.rounds, most_rounds)) {
    for (const Step& step : reader.read(state)) {
      if (!step.is_message()) continue;
      if (step.peer < 0 || step.peer >= size) return false;
      const bool is_sent = step.kind == Step::Kind::send;
      const Slice& slice = is_sent ? step.left : step.to;
      words.push_back(static_cast<std::uint64_t>((step.peer + size - first) % size) << 2 |
                      (slice.buffer == Buffer::wide ? 2U : 0U) | (is_sent ? 1U : 0U));
      words.push_back(slice.count);
    }
    words.push_back(kEnd);
    const std::size_t messages_end = words.size();
    for (const Work& work : state.work) {
      for (const double value : {work.seconds, work.bytes}) words.push_back(std::bit_cast<std::uint64_t>(value));
      words.push_back(work.needs_end);
    }
    words.push_back(kEnd);
    words.insert(words.end(), state.needs.begin(), state.needs.end());
    words.push_back(kEnd);
    rounds.push_back({messages_end, words.size()});
  }
  return true;
}

// In how many rounds both do the same, but for the work of the last.
std::size_t common_rounds(const Description& one, const Description& other) {
  const auto differ = std::mismatch(one.words.begin(), one.words.end(), other.words.begin(), other.words.end()).first;
  const auto same = static_cast<std::size_t>(differ - one.words.begin());
  std::size_t round = 0;
  while (round < one.rounds.size() && one.rounds[round].end <= same) ++round;
  return round < one.rounds.size() && one.rounds[round].messages_end <= same ? round + 1 : round;
}

}  // namespace

Alike alike_ranks(const std::vector<int>& nodes, const PlanOfRank& plans, const CostModel& model, RoundReader& reader) {
  const auto size = static_cast<int>(nodes.size());
  const int step = step_between(nodes, model);
  if (step == 0) return {};
  Alike alike{.ranks = step, .rounds = ~std::size_t{0}, .is_all = true};
  Description expected, found;
  for (int place = 0; place < step; ++place) {
    for (int first = 0; first < size; first += step) {
      RankState state;
      state.plan = plans(first + place);
      Description& description = first == 0 ? expected : found;
      if (!describe(state, alike.rounds, first, size, reader, description)) return {};
      if (first > 0 && found.words != expected.words) {
        alike.is_all = false;
        alike.rounds = std::min(alike.rounds, common_rounds(expected, found));
      }
      // Work that uses the node's memory holds up others, too.
      if (alike.rounds == 0 || (!alike.is_all && model.memory_bandwidth > 0)) return {};
    }
  }
  return alike;
}

}  // namespace col::plan::simulation
