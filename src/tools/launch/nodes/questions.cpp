#include "launch/nodes/questions.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace col::launch {

int Questions::open(JobStory story, Time until, Done done) {
  open_.emplace(next_, Open{.story = std::move(story), .until = until, .done = std::move(done)});
  return next_++;
}

void Questions::on_own(int number, JobStory story) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  found->second.has_own = true;
  take_ranks(found->second, story);
  end_if_whole(number);
}

void Questions::on_asked(int number, JobStory story) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  Open& open = found->second;
  open.has_asked = true;
  open.story.nodes = story.nodes;
  open.story.restarts = story.restarts;
  open.story.silent = std::move(story.silent);
  take_ranks(open, story);
  end_if_whole(number);
}

void Questions::on_answer(int number, int node_rank, JobStory story) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  std::erase_if(found->second.story.silent, [&](const SilentNode& node) { return node.node_rank == node_rank; });
  take_ranks(found->second, story);
  end_if_whole(number);
}

// A node whose ranks have just ended may be in the meeting's word and in its own.
void Questions::take_ranks(Open& open, JobStory& story) {
  std::vector<RankStory>& ranks = open.story.ranks;
  for (RankStory& rank : story.ranks) {
    const bool is_known = std::ranges::any_of(ranks, [&](const RankStory& known) { return known.rank == rank.rank; });
    if (!is_known) ranks.push_back(std::move(rank));
  }
}

void Questions::end_if_whole(int number) {
  const Open& open = open_.at(number);
  if (open.has_own && open.has_asked && open.story.silent.empty()) end(number);
}

void Questions::end(int number) {
  auto open = open_.extract(number);
  JobStory& story = open.mapped().story;
  std::ranges::sort(story.ranks, {}, &RankStory::rank);
  open.mapped().done(std::move(story));
}

void Questions::tick(Time now) {
  std::vector<int> late;
  for (const auto& [number, open] : open_) {
    if (now >= open.until) late.push_back(number);
  }
  for (const int number : late) end(number);
}

std::optional<Questions::Time> Questions::deadline() const {
  std::optional<Time> first;
  for (const auto& [number, open] : open_) first = std::min(first.value_or(open.until), open.until);
  return first;
}

}  // namespace col::launch
