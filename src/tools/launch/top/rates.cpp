#include "launch/top/rates.hpp"

#include <algorithm>
#include <cstddef>

#include <col/types.hpp>

namespace col::launch {
namespace {

using State = RankActivity::State;

// Of the wait that a rank is in, which the recorder has only when it ends.
double present_wait(const RankStory& rank) {
  if (!rank.last || rank.last->state != State::waiting || rank.seen_ns <= rank.last->since_ns) return 0;
  return static_cast<double>(rank.seen_ns - rank.last->since_ns) / 1e9;
}

double data_in(const std::vector<TimedCall>& calls) {
  double bytes = 0;
  for (const TimedCall& call : calls) {
    if (call.ended)
      bytes += static_cast<double>(call.details.count) *
               static_cast<double>(std::max<std::size_t>(size_of(call.details.dtype), 1));
  }
  return bytes;
}

}  // namespace

std::vector<RankRates> RateMeter::look(const ControlPage& page, const JobStory& story) {
  const Clock::time_point now = Clock::now();
  gpus_.look();
  std::vector<RankRates> rates;
  for (const RankStory& rank : story.ranks) rates.push_back(rates_of(page.record(rank.local_rank), rank, now));
  return rates;
}

RankRates RateMeter::rates_of(const RankRecord& record, const RankStory& rank, Clock::time_point now) {
  RankRates rates;
  const bool is_known = seen_.contains(rank.local_rank);
  Seen& before = seen_[rank.local_rank];
  const double seconds = std::chrono::duration<double>(now - before.at).count();
  const RankTimes times = record.times_since(before.noted, is_known);
  const double waited = static_cast<double>(times.waited_ns) / 1e9 + present_wait(rank);
  if (is_known && rank.last && times.noted >= before.noted && seconds > 0) {
    const auto seen = static_cast<double>(times.calls.size());
    const auto ended = static_cast<double>(std::ranges::count_if(times.calls, &TimedCall::ended));
    // Of those that were overwritten, as of the others.
    const double weight = seen > 0 ? static_cast<double>(times.noted - before.noted) / seen : 0;
    rates.calls = ended * weight / seconds;
    rates.bytes = data_in(times.calls) * weight / seconds;
    rates.waiting = std::clamp((waited - before.waited) / seconds, 0.0, 1.0);
  }
  std::optional<ProcessSample> process;
  const pid_t pid = rank.last ? static_cast<pid_t>(rank.last->pid) : rank.status.pid;
  if (pid > 0 && !rank.status.exited) process = sample_process(pid);
  if (process) {
    rates.rss_bytes = process->rss_bytes;
    if (before.process && seconds > 0) {
      rates.cpu = std::max(0.0, process->cpu_seconds - before.process->cpu_seconds) / seconds;
      rates.queued = std::clamp((process->queued_seconds - before.process->queued_seconds) / seconds, 0.0, 1.0);
    }
    rates.gpu = gpus_.of(pid);
  }
  before = {now, times.noted, waited, process};
  return rates;
}

}  // namespace col::launch
