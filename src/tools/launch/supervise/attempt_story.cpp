// Everything that an Attempt knows for the report.
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <col/trace.hpp>

#include "launch/report/look.hpp"
#include "launch/supervise/attempt.hpp"

namespace col::launch {

void Attempt::remember_calls() {
  if (!remembered_.empty()) return;
  remembered_.resize(ranks_.size());
  look_at_ranks(*page_, remembered_);
}

void Attempt::look_at_calls(Time now) {
  if (watch_ && now >= watch_->due()) watch_->look(*page_);
}

void Attempt::add_times(std::vector<RankStory>& stories, std::optional<double> distance) {
  if (!watch_) return;
  std::vector<CallTimes> times = watch_->take(*page_);
  for (std::size_t i = 0; i < stories.size(); ++i) {
    stories[i].times = std::move(times[i]);
    stories[i].times.distance = distance;
  }
}

std::vector<RankStory> Attempt::stories_now(std::size_t most_calls, bool with_use) {
  std::vector<RankStory> now = stories();
  if (now.empty()) return now;
  look_at_ranks(*page_, now, most_calls);
  if (with_use) use_.look(*page_, now);
  return now;
}

void Attempt::add_traces(Timeline& timeline) const {
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    const std::string file = fmt::format("{}/{}", directory_.trace(), global(static_cast<int>(place)));
    // A program that has called nothing of col has none.
    if (::access(file.c_str(), F_OK) == 0) timeline.add_file(file);
  }
}

void Attempt::keep_stack(pid_t pid, Stack stack) {
  for (Rank& rank : ranks_) {
    if (rank.status.pid == pid) rank.stack = std::move(stack);
  }
}

int Attempt::deciding_rank() const {
  const int first = ending_.culprit();
  if (first < 0) return -1;
  const ExitPolicy policy = parts_.spec.lifecycle.exit_policy;
  if (policy == ExitPolicy::rank0 && parts_.assignment.first_rank == 0 && local_ranks() > 0) {
    // Rank 0's own word, if it had one.
    const RankStatus& status = ranks_.front().status;
    if (status.exited && !status.told_to_end && !status.collateral) return 0;
  }
  if (policy != ExitPolicy::max) return first;
  int worst = first - parts_.assignment.first_rank;
  for (int rank = 0; rank < local_ranks(); ++rank) {
    const RankStatus& status = ranks_[static_cast<std::size_t>(rank)].status;
    if (status.exited && !status.told_to_end && !status.collateral &&
        exit_code_of(status) > exit_code_of(ranks_[static_cast<std::size_t>(worst)].status)) {
      worst = rank;
    }
  }
  return global(worst);
}

std::vector<RankStory> Attempt::stories() const {
  std::vector<RankStory> stories;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    const Rank& entry = ranks_[static_cast<std::size_t>(rank)];
    const bool is_told_of = entry.was_in || places_.is_in(rank) || !entry.before;  // else the rank before is
    RankStory story;
    story.rank = global(rank);
    story.local_rank = rank;
    story.node_rank = parts_.assignment.node_rank;
    story.host = parts_.host;
    if (rank < local_ranks()) story.cpus = parts_.placement.binding.cpus[static_cast<std::size_t>(rank)];
    story.why_not = parts_.placement.binding.why_not;
    story.status = is_told_of ? entry.status : *entry.before;
    story.epoch = is_told_of ? entry.epoch : entry.epoch_before;
    story.restarts = places_.restarts(rank);
    story.is_spare = is_told_of && !entry.was_in && !places_.is_in(rank);
    if (!remembered_.empty()) {
      const RankStory& seen = remembered_[static_cast<std::size_t>(rank)];
      story.last = seen.last;
      story.seen_ns = seen.seen_ns;
      story.history = seen.history;
    }
    story.stack = entry.stack;
    if (entry.status.exited && entry.status.wait_status != 0) {
      story.said = read_error_files(directory_.error_file(rank), directory_.torch_error_file(rank));
    }
    stories.push_back(std::move(story));
  }
  return stories;
}

}  // namespace col::launch
