// One allreduce after the other, as a training loop makes them: what a call costs, without a common start of each.
// Prints one line of JSON on rank 0.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace contest {

// `allreduce` sums `in` over all ranks into `out`. `agree` gives all ranks rank 0's value.
template <class Allreduce, class Agree>
int loop_calls(int argc, char** argv, int rank, int size, const Allreduce& allreduce, const Agree& agree) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  bool right = true;
  for (int i = 1; i < argc; ++i) {
    const std::size_t bytes = std::strtoull(argv[i], nullptr, 10);
    std::vector<float> in(bytes / sizeof(float), 1), out(in.size());
    const auto many = [&](int calls) {
      const auto begin = Clock::now();
      for (int call = 0; call < calls; ++call) allreduce(in, out);
      return seconds_since(begin) / calls;
    };
    many(3);
    const int batch = agree(std::clamp(static_cast<int>(2e-3 / many(20)), 1, 5000));
    std::vector<double> samples;
    const auto begin = Clock::now();
    while (agree(samples.size() < 20 || seconds_since(begin) < 0.3 ? 1 : 0) != 0) samples.push_back(many(batch));
    std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2), samples.end());
    right = right && std::all_of(out.begin(), out.end(), [&](float x) { return x == static_cast<float>(size); });
    if (rank == 0)
      std::printf("{\"bytes\": %zu, \"us\": %.4f, \"right\": %s}\n", bytes, samples[samples.size() / 2] * 1e6,
                  right ? "true" : "false");
  }
  return right ? 0 : 1;
}

}  // namespace contest
