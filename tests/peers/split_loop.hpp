// What it costs to make a group: one split after the other, each with its first call, a later one, and the group's end.
// Prints one line of JSON on rank 0: medians in microseconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace contest {

inline double median(std::vector<double>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// `split(color)` makes this rank's group, `call` sums one float in it, `end` ends it, `meet` is a barrier of all.
template <class Split, class Call, class End, class Meet>
int loop_splits(int argc, char** argv, int rank, int size, const Split& split, const Call& call, const End& end,
                const Meet& meet) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLater = 20;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  const int colors = argc > 2 ? std::atoi(argv[2]) : 1;
  std::vector<double> splits, firsts, laters, ends;
  bool right = true;
  const auto time = [&](std::vector<double>& samples, const auto& what) {
    const auto begin = Clock::now();
    what();
    samples.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  };
  for (int round = 0; round < rounds + 3; ++round) {
    if (round == 3) splits.clear(), firsts.clear(), laters.clear(), ends.clear();
    const float in = 1;
    float out = 0;
    meet();
    time(splits, [&] { split(rank % colors); });
    meet();
    time(firsts, [&] { call(in, out); });
    right = right && out == static_cast<float>((size - rank % colors + colors - 1) / colors);
    for (int i = 0; i < kLater; ++i) {
      meet();
      time(laters, [&] { call(in, out); });
    }
    meet();
    time(ends, end);
  }
  if (rank == 0)
    std::printf(
        "{\"ranks\": %d, \"colors\": %d, \"split_us\": %.1f, \"first_us\": %.2f, \"later_us\": %.2f, \"end_us\": %.1f, "
        "\"right\": %s}\n",
        size, colors, median(splits), median(firsts), median(laters), median(ends), right ? "true" : "false");
  return right ? 0 : 1;
}

}  // namespace contest
