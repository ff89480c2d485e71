// From the samples of all ranks to one line of JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cell.hpp"
#include "start_line.hpp"

namespace contest {

// When a series of samples has enough of them.
struct Series {
  static constexpr std::size_t kFewestOfSlowOnes = 3;

  double seconds = 0;       // lasts as long, if that gives samples enough
  double most_seconds = 0;  // after which fewer samples will do
  std::size_t most = StartLine::kMaxSamples;
  std::size_t fewest = 20;

  bool goes_on(std::size_t have, double passed) const {
    if (have >= most) return false;
    if (passed < seconds) return true;
    return have < (passed < most_seconds ? fewest : std::min(fewest, kFewestOfSlowOnes));
  }
};

struct Summary {
  std::size_t samples = 0;
  double median_us = 0;   // of the slowest rank's time
  double low_us = 0;      // its lower quartile
  double high_us = 0;     // its upper quartile
  double least_us = 0;    // its shortest
  double elapsed_us = 0;  // median from the first rank's begin to the last one's end
};

inline double quantile(const std::vector<double>& sorted, double q) {
  const double place = q * double(sorted.size() - 1);
  const std::size_t below = std::size_t(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - double(below)) * (sorted[above] - sorted[below]);
}

// Of the first `ranks` ranks; a time is divided by `repeats`.
inline Summary summarize(const std::vector<std::vector<StartLine::Sample>>& by_rank, int ranks, int repeats) {
  std::vector<double> slowest;
  std::vector<double> elapsed;
  const double unit_ns = 1000.0 * repeats;
  for (std::size_t i = 0; i < by_rank[0].size(); ++i) {
    std::int64_t longest = 0;
    std::int64_t first = INT64_MAX;
    std::int64_t last = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const StartLine::Sample& sample = by_rank[std::size_t(rank)][i];
      longest = std::max(longest, sample.end_ns - sample.begin_ns);
      first = std::min(first, sample.begin_ns);
      last = std::max(last, sample.end_ns);
    }
    slowest.push_back(double(longest) / unit_ns);
    elapsed.push_back(double(last - first) / unit_ns);
  }
  std::sort(slowest.begin(), slowest.end());
  std::sort(elapsed.begin(), elapsed.end());
  return {slowest.size(),          quantile(slowest, 0.5), quantile(slowest, 0.25),
          quantile(slowest, 0.75), slowest.front(),        quantile(elapsed, 0.5)};
}

inline std::string json_head(const Cell& cell) {
  return "{\"operation\":\"" + std::string(to_string(cell.operation)) + "\",\"ranks\":" + std::to_string(cell.size) +
         ",\"bytes\":" + std::to_string(cell.bytes);
}

inline void print_missing(const Cell& cell) {
  std::printf("%s,\"missing\":true}\n", json_head(cell).c_str());
  std::fflush(stdout);
}

struct Remarks {
  std::size_t wrong = 0;  // elements
  double spent_s = 0;     // on the whole cell: input, warm-up and looking at results included
  double call_us = 0;     // where work is done beside a call: the call alone
  const char* how = "";   // a word on how it was done
  std::string wire = {};  // [out,in] of each rank's interface in one call, where they are counted
};

inline void print_line(const Cell& cell, const Summary& summary, const Remarks& remarks) {
  std::printf(
      "%s,\"bytes_moved\":%zu,\"samples\":%zu,\"median_us\":%.4f,\"low_us\":%.4f,\"high_us\":%.4f,"
      "\"least_us\":%.4f,\"elapsed_us\":%.4f,\"wrong\":%zu,\"spent_s\":%.4f,\"call_us\":%.1f,\"how\":\"%s\","
      "\"wire\":[%s]}\n",
      json_head(cell).c_str(), cell.count * cell.element_bytes, summary.samples, summary.median_us, summary.low_us,
      summary.high_us, summary.least_us, summary.elapsed_us, remarks.wrong, remarks.spent_s, remarks.call_us,
      remarks.how, remarks.wire.c_str());
  std::fflush(stdout);
}

}  // namespace contest
