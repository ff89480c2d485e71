#include "launch/top/rates.hpp"

#include <sys/types.h>

#include <algorithm>

namespace col::launch {
namespace {

// Of less time, a rate is chance.
constexpr std::uint64_t kLeastNs = 250'000'000;

RankRates between(const RankUse& before, const RankUse& now) {
  RankRates rates;
  const double seconds = static_cast<double>(now.at_ns - before.at_ns) / 1e9;
  if (before.calls && now.calls && *now.calls >= *before.calls) {
    rates.calls = (*now.calls - *before.calls) / seconds;
    rates.bytes = (now.bytes - before.bytes) / seconds;
    rates.waiting = std::clamp((now.waited - before.waited) / seconds, 0.0, 1.0);
  }
  if (before.cpu && now.cpu) {
    rates.cpu = std::max(0.0, *now.cpu - *before.cpu) / seconds;
    rates.queued = std::clamp((now.queued - before.queued) / seconds, 0.0, 1.0);
  }
  return rates;
}

}  // namespace

RankRates RateMeter::rates_of(const RankStory& rank, bool is_here) {
  if (!rank.use) return {};
  const auto [found, is_new] = seen_.try_emplace(rank.rank, Seen{*rank.use, {}});
  Seen& seen = found->second;
  // A clock that has gone back is another one's: the rank was started on another host.
  if (!is_new && rank.use->at_ns < seen.use.at_ns) seen = {*rank.use, {}};
  if (rank.use->at_ns - seen.use.at_ns >= kLeastNs) seen = {*rank.use, between(seen.use, *rank.use)};
  RankRates rates = seen.rates;
  if (rank.use->cpu) rates.rss_bytes = rank.use->rss_bytes;
  if (is_here) rates.gpu = gpus_.of(rank.last ? static_cast<pid_t>(rank.last->pid) : rank.status.pid);
  return rates;
}

}  // namespace col::launch
