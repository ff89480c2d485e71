#include "launch/times/call_watch.hpp"

#include <sys/types.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <col/types.hpp>

#include "core/clock/clock.hpp"
#include "launch/processes/processes.hpp"

namespace col::launch {
namespace {

// Those that come after many.
const std::string kOtherGroups = "(other groups)";

// Calls that wait for the entries of other ranks. More are in the recorder of no rank.
constexpr std::size_t kMostOpen = 2 * RankRecord::kRecordedCalls;

bool is_message_op(Collective op) {
  return op == Collective::send || op == Collective::recv;
}

std::uint64_t data_of(const CallDetails& details) {
  return details.count * std::max<std::size_t>(size_of(details.dtype), 1);
}

double in_seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

using State = RankActivity::State;

// The wait that a rank is in, which the recorder has only when it ends.
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

CallWatch::CallWatch(int local_ranks, bool several_hosts)
    : ranks_(static_cast<std::size_t>(local_ranks)), several_hosts_(several_hosts), due_(Clock::now()) {}

void CallWatch::look(const ControlPage& page) {
  const Clock::time_point begun = Clock::now();
  collect(page);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    const RankActivity activity = page.record(static_cast<int>(i)).read();
    if (activity.state == RankActivity::State::absent || activity.state == RankActivity::State::finished) continue;
    const auto sample = sample_process(static_cast<pid_t>(activity.pid));
    if (!sample) continue;
    if (rank.looks++ == 0) rank.first_look = begun;
    rank.last_look = begun;
    if (activity.state == RankActivity::State::joined) ++rank.outside;
    if (!rank.first) rank.first = sample;
    rank.last = sample;
  }
  const Clock::time_point now = Clock::now();
  due_ = now + std::max<Clock::duration>(kShortestPause, kPausePerLook * (now - begun));
}

void CallWatch::collect(const ControlPage& page) {
  learn_groups(page);
  for (std::size_t i = 0; i < ranks_.size(); ++i) sort_in(static_cast<int>(i));
  for (auto& [token, group] : groups_) compare(group);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    const RankRecord& record = page.record(static_cast<int>(i));
    RankTimes times = record.times_since(rank.noted);
    if (times.noted < rank.noted) times = record.times_since(0);  // another process has taken its place
    const std::uint64_t came = times.noted - std::min(rank.noted, times.noted);
    rank.weight = times.calls.empty() ? 1 : static_cast<double>(came) / static_cast<double>(times.calls.size());
    rank.noted = times.noted;
    rank.fresh = std::move(times.calls);
  }
}

// Of a call that was seen in the look before, every rank that takes part has entered the group by now.
void CallWatch::learn_groups(const ControlPage& page) {
  const bool is_known = std::ranges::all_of(ranks_, [&](const Rank& rank) {
    return std::ranges::all_of(rank.fresh,
                               [&](const TimedCall& call) { return call.token == 0 || groups_.contains(call.token); });
  });
  if (is_known) return;
  for (auto& [token, group] : groups_) group.members = 0;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (const RecordedGroup& group : page.record(static_cast<int>(i)).groups_ever()) {
      Group& known = groups_[group.token];
      known.name = group.name;
      known.token = group.token;
      ++known.members;
    }
  }
}

CallWatch::Site& CallWatch::site(int local_rank, const std::string& group, Collective op) {
  // A program may make a group for each step.
  constexpr std::size_t kMostKept = 256;
  auto& sites = ranks_[static_cast<std::size_t>(local_rank)].sites;
  const bool fits = sites.size() < kMostKept || sites.contains({group, op});
  const std::string& name = fits ? group : kOtherGroups;
  Site& site = sites[{name, op}];
  if (site.found.op.empty()) {
    site.found.group = name;
    site.found.op = to_string(op);
  }
  return site;
}

void CallWatch::sort_in(int local_rank) {
  Rank& rank = ranks_[static_cast<std::size_t>(local_rank)];
  for (const TimedCall& call : rank.fresh) {
    const auto group = groups_.find(call.token);
    if (group == groups_.end()) continue;
    if (!is_message_op(call.op)) {
      Call& open = group->second.calls[call.sequence];
      open.op = call.op;
      open.weight = std::max(open.weight, rank.weight);
      open.started_before = open.started_before || !call.ended;
      if (call.ended) open.parts.push_back({local_rank, call.took_ns});
    }
    if (!call.ended) continue;
    Site& its = site(local_rank, group->second.name, call.op);
    its.calls += rank.weight;
    its.bytes += rank.weight * static_cast<double>(data_of(call.details));
    its.found.seconds += rank.weight * in_seconds(call.took_ns);
  }
  rank.fresh.clear();
}

void CallWatch::compare(Group& group) {
  const auto members = static_cast<std::size_t>(group.members);
  std::erase_if(group.calls, [&](const auto& entry) {
    if (entry.second.parts.size() < members) return false;
    compare(group, entry.first, entry.second);
    return true;
  });
  while (group.calls.size() > kMostOpen) group.calls.erase(group.calls.begin());
}

void CallWatch::compare(Group& group, std::uint64_t number, const Call& call) {
  if (call.started_before) return;
  if (several_hosts_) {
    for (const Part& part : call.parts) keep(part, group, number, call.op);
  }
  if (call.parts.size() < 2) return;
  std::vector<Part> parts = call.parts;
  std::ranges::sort(parts, {}, &Part::took_ns);
  const std::uint64_t least = parts.front().took_ns;
  double waited = 0;
  for (const Part& part : parts) {
    Site& its = site(part.rank, group.name, call.op);
    its.compared += call.weight;
    its.found.waited += call.weight * in_seconds(part.took_ns - least);
    waited += in_seconds(part.took_ns - least);
  }
  if (parts[1].took_ns == least) return;  // several came without a wait
  Site& last = site(parts.front().rank, group.name, call.op);
  last.last += call.weight;
  last.found.late += call.weight * waited / static_cast<double>(parts.size() - 1);
}

// For compare_hosts(). If there are too many in all, the kind of call that has most gets along with fewer.
void CallWatch::keep(const Part& part, const Group& group, std::uint64_t number, Collective op) {
  Rank& rank = ranks_[static_cast<std::size_t>(part.rank)];
  SampledCalls& sampled = site(part.rank, group.name, op).found.sampled;
  rank.samples -= sampled.calls.size();
  sampled.add(group.token, number, part.took_ns);
  if (sampled.token == group.token) sampled.members = group.members;
  rank.samples += sampled.calls.size();
  const std::size_t most = std::min(kMostSamples, kMostSamplesHere / ranks_.size());
  while (rank.samples > most) {
    const auto number_of = [](const auto& entry) { return entry.second.found.sampled.calls.size(); };
    SampledCalls& largest = std::ranges::max_element(rank.sites, {}, number_of)->second.found.sampled;
    rank.samples -= largest.calls.size();
    largest.thin();
    rank.samples += largest.calls.size();
  }
}

std::vector<CallTimes> CallWatch::take(const ControlPage& page) {
  collect(page);  // what came since the last look
  collect(page);  // and compares that
  std::vector<CallTimes> all;
  for (const Rank& rank : ranks_) {
    CallTimes times;
    for (const auto& [key, site] : rank.sites) {
      CallSite& found = times.sites.emplace_back(site.found);
      found.calls = static_cast<std::uint64_t>(std::llround(site.calls));
      found.bytes = static_cast<std::uint64_t>(std::llround(site.bytes));
      found.compared = static_cast<std::uint64_t>(std::llround(site.compared));
      found.last = static_cast<std::uint64_t>(std::llround(site.last));
    }
    if (rank.looks > 1 && rank.first && rank.last) {
      times.own.seconds = std::chrono::duration<double>(rank.last_look - rank.first_look).count();
      times.own.outside = times.own.seconds * static_cast<double>(rank.outside) / static_cast<double>(rank.looks);
      times.own.cpu = rank.last->on_cpu_seconds - rank.first->on_cpu_seconds;
      times.own.queued = rank.last->queued_seconds - rank.first->queued_seconds;
    }
    all.push_back(std::move(times));
  }
  return all;
}

void UseMeter::look(const ControlPage& page, std::vector<RankStory>& ranks) {
  for (RankStory& rank : ranks) rank.use = use_of(page.record(rank.local_rank), rank);
}

RankUse UseMeter::use_of(const RankRecord& record, const RankStory& rank) {
  const bool is_known = seen_.contains(rank.local_rank);
  Seen& seen = seen_[rank.local_rank];
  const RankTimes times = record.times_since(seen.noted, is_known);
  if (is_known && times.noted >= seen.noted && !times.calls.empty()) {
    const auto ended = static_cast<double>(std::ranges::count_if(times.calls, &TimedCall::ended));
    // The same of those that were overwritten, as of the others.
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
