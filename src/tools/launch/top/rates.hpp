// What the ranks of a host do each second, from two looks at their page and at /proc.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <col/job.hpp>

#include "launch/report/job_story.hpp"
#include "launch/times/process_sample.hpp"
#include "launch/top/gpu_use.hpp"

namespace col::launch {

// Of one rank, between the last two looks. What is not known is nothing.
struct RankRates {
  std::optional<double> calls = {};    // a second
  std::optional<double> waiting = {};  // share of the time in calls that wait
  std::optional<double> bytes = {};    // a second: what its calls move
  std::optional<double> cpu = {};      // processors
  std::optional<double> queued =
      {};  // share of the time for which its main thread was ready to run, and had no processor
  std::optional<std::uint64_t> rss_bytes = {};
  std::optional<GpuUse> gpu = {};
};

class RateMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // The rates since the last look, in the order of `story`, which is of this moment.
  std::vector<RankRates> look(const ControlPage& page, const JobStory& story);
  // Other processes have taken the place of the ranks.
  void forget() { seen_.clear(); }

 private:
  struct Seen {
    Clock::time_point at;
    std::uint64_t noted = 0;
    double waited = 0;  // seconds, with the wait that goes on
    std::optional<ProcessSample> process;
  };

  RankRates rates_of(const RankRecord& record, const RankStory& rank, Clock::time_point now);

  std::map<int, Seen> seen_;  // by local rank
  GpuMeter gpus_;
};

}  // namespace col::launch
