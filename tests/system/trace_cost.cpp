// The price of a trace in an allreduce: loops with and without it, in turns, in one run.
//
//   colrun -n 2 trace_cost trace BYTES
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <col/col.hpp>
#include <col/trace.hpp>

namespace {

constexpr int kPairs = 200, kCalls = 500, kWarmUp = 200;

double loop_ns(col::Group& world, std::vector<float>& data) {
  world.barrier();
  for (int i = 0; i < kWarmUp; ++i) world.allreduce(data);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) world.allreduce(data);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kCalls;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(std::size_t bytes) {
  col::Group world = col::init();
  std::vector<float> data(bytes / sizeof(float));
  std::vector<double> off, on, differences;
  const char* const folder = std::getenv("TMPDIR");
  const std::string file =
      std::string(folder != nullptr ? folder : "/tmp") + "/trace_cost." + std::to_string(::getpid());
  for (int pair = 0; pair < kPairs; ++pair) {
    off.push_back(loop_ns(world, data));
    col::start_trace(std::uint64_t{1} << 20);
    on.push_back(loop_ns(world, data));
    col::end_trace(file);
    differences.push_back(on.back() - off.back());
  }
  ::unlink(file.c_str());
  if (world.rank() == 0)
    std::printf(
        "allreduce of %zu B, %d ranks: without %.1f ns (least %.1f), with %.1f (least %.1f); %+.1f ns, %+.1f %%\n",
        bytes, world.size(), median(off), std::ranges::min(off), median(on), std::ranges::min(on), median(differences),
        100 * median(differences) / median(off));
  col::finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what != "trace") {
    std::fprintf(stderr, "usage: trace_cost trace BYTES\n");
    return 2;
  }
  try {
    measure(static_cast<std::size_t>(std::atoi(argv[2])));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
