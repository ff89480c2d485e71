#include "plan/simulation/symmetry.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace col::plan::simulation {
namespace {

// From one rank to the next that may do the same: the ranks of a node, if all nodes have as many, in order. 0: none may.
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

// All that the simulator reads of a rank's plan, its peers as seen from rank `first`. False: a peer does not exist.
bool describe(RankState& state, int first, int size, RoundReader& reader, std::vector<std::uint64_t>& words) {
  constexpr std::uint64_t kEnd = ~std::uint64_t{0};
  words.clear();
  while (state.next_round < state.plan.rounds) {
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
    for (const Work& work : state.work) {
      for (const double value : {work.seconds, work.bytes}) words.push_back(std::bit_cast<std::uint64_t>(value));
      words.push_back(work.needs_end);
    }
    words.push_back(kEnd);
    words.insert(words.end(), state.needs.begin(), state.needs.end());
    words.push_back(kEnd);
  }
  return true;
}

}  // namespace

int ranks_that_differ(const std::vector<int>& nodes, const PlanOfRank& plans, const CostModel& model,
                      RoundReader& reader) {
  const auto size = static_cast<int>(nodes.size());
  const int step = step_between(nodes, model);
  if (step == 0) return size;
  std::vector<std::uint64_t> expected, words;
  for (int place = 0; place < step; ++place) {
    for (int first = 0; first < size; first += step) {
      RankState state;
      state.plan = plans(first + place);
      if (!describe(state, first, size, reader, first == 0 ? expected : words)) return size;
      if (first > 0 && words != expected) return size;
    }
  }
  return step;
}

}  // namespace col::plan::simulation
