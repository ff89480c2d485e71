#include "launch/times/use_meter.hpp"

#include <sys/types.h>

#include <algorithm>
#include <cstddef>

#include <col/types.hpp>

#include "core/clock/clock.hpp"
#include "launch/times/process_sample.hpp"

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

void UseMeter::look(const ControlPage& page, std::vector<RankStory>& ranks) {
  for (RankStory& rank : ranks) rank.use = use_of(page.record(rank.local_rank), rank);
}

RankUse UseMeter::use_of(const RankRecord& record, const RankStory& rank) {
  const bool is_known = seen_.contains(rank.local_rank);
  Seen& seen = seen_[rank.local_rank];
  const RankTimes times = record.times_since(seen.noted, is_known);
  if (is_known && times.noted >= seen.noted && !times.calls.empty()) {
    const auto ended = static_cast<double>(std::ranges::count_if(times.calls, &TimedCall::ended));
    // Of those that were overwritten, as of the others.
    const double weight = static_cast<double>(times.noted - seen.noted) / static_cast<double>(times.calls.size());
    seen.calls += ended * weight;
    seen.bytes += data_in(times.calls) * weight;
  }
  seen.noted = times.noted;

  RankUse use;
  use.at_ns = core::clock_ns();
  if (rank.last) use.calls = seen.calls;
  use.bytes = seen.bytes;
  use.waited = static_cast<double>(times.waited_ns) / 1e9 + present_wait(rank);
  const pid_t pid = rank.last ? static_cast<pid_t>(rank.last->pid) : rank.status.pid;
  const auto process = pid > 0 && !rank.status.exited ? sample_process(pid) : std::nullopt;
  if (process) {
    use.cpu = process->cpu_seconds;
    use.queued = process->queued_seconds;
    use.rss_bytes = process->rss_bytes;
  }
  return use;
}

}  // namespace col::launch
