#include "plan/simulation/rank_state.hpp"

#include <algorithm>

namespace col::plan::simulation {
namespace {

bool overlap(const Slice& a, const Slice& b) noexcept {
  return a.buffer == b.buffer && a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

}  // namespace

std::span<const Step> RoundReader::read(RankState& rank) {
  rank.plan.round(rank.next_round++, round_);
  rank.work.clear();
  rank.needs.clear();
  rank.next_work = rank.next_need = 0;
  arrivals_.clear();
  near_ = 0;
  std::uint32_t slot = 0;
  for (const Step& step : round_.steps()) {
    if (step.kind == Step::Kind::recv && !step.to.empty()) arrivals_.push_back({step.to, slot});
    if (step.is_message()) ++slot;
  }
  sort_arrivals();
  for (const Step& step : round_.steps()) {
    if (step.is_message()) continue;
    note_needs(step.left, rank.needs);
    if (step.to != step.left) note_needs(step.to, rank.needs);
    const auto bytes = static_cast<double>(step.to.count * element_size_);
    const bool reduces = step.kind == Step::Kind::reduce;
    if (reduces) note_needs(step.right, rank.needs);
    rank.work.push_back({.needs_end = static_cast<std::uint32_t>(rank.needs.size()),
                         .seconds = bytes * (reduces ? model_.gamma : model_.copy),
                         .bytes = bytes});
  }
  return round_.steps();
}

// Arrivals do not overlap, so sorted by their beginnings they are sorted by their ends. Mostly they are listed one
// after the other, upwards or downwards, and go on at the other end of the buffer.
void RoundReader::sort_arrivals() {
  const auto is_before = [](const Arrival& a, const Arrival& b) {
    return a.to.buffer != b.to.buffer ? a.to.buffer < b.to.buffer : a.to.offset < b.to.offset;
  };
  const auto begin = arrivals_.begin(), end = arrivals_.end();
  if (arrivals_.size() > 1 && is_before(begin[1], begin[0])) std::reverse(begin, end);
  const auto turn = std::is_sorted_until(begin, end, is_before);
  if (turn == end) return;
  if (is_before(arrivals_.back(), arrivals_.front()) && std::is_sorted(turn, end, is_before))
    std::rotate(begin, turn, end);
  else
    std::sort(begin, end, is_before);
}

void RoundReader::note_needs(const Slice& slice, std::vector<std::uint32_t>& needs) {
  near_ = first_arrival(slice);
  for (std::size_t i = near_; i < arrivals_.size() && overlap(arrivals_[i].to, slice); ++i)
    needs.push_back(arrivals_[i].slot);
}

// The first that does not end before `slice`. A round with thousands of steps goes along its buffers: mostly it is the
// one that the last slice found, or the next.
std::size_t RoundReader::first_arrival(const Slice& slice) const {
  const auto is_before = [&](const Arrival& a) {
    if (a.to.buffer != slice.buffer) return a.to.buffer < slice.buffer;
    return a.to.offset + a.to.count <= slice.offset;
  };
  // Much lies before or after all that arrives.
  if (arrivals_.empty() || !is_before(arrivals_.front())) return 0;
  if (is_before(arrivals_.back())) return arrivals_.size();
  for (std::size_t i = near_; i < std::min(near_ + 2, arrivals_.size()); ++i) {
    if (!is_before(arrivals_[i]) && (i == 0 || is_before(arrivals_[i - 1]))) return i;
  }
  return static_cast<std::size_t>(std::partition_point(arrivals_.begin(), arrivals_.end(), is_before) -
                                  arrivals_.begin());
}

}  // namespace col::plan::simulation
