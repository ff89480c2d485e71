// A job that makes one step after the other: some time of its own, and then an allreduce.
//
//   steady_job STEPS MICROSECONDS [RANK MICROSECONDS sleep|compute]
//
// STEPS 0: without an end. RANK needs so much more time for each step, in which it sleeps, or computes. STEADY_LABEL is
// the label of the calls.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>
#include <vector>

#include <col/col.hpp>

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  long steps = 0, own_us = 0;
  int late_rank = -1;
  long late_us = 0;
  bool computes = false;
};

void take_time(std::chrono::microseconds time, bool computes) {
  if (!computes) return std::this_thread::sleep_for(time);
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
  }
}

void run(const Settings& settings) {
  col::Group world = col::init();
  if (const char* const label = std::getenv("STEADY_LABEL")) world.annotate(label);
  std::vector<float> values(256, 1);
  const bool is_late = world.rank() == settings.late_rank;
  for (long step = 0; settings.steps == 0 || step < settings.steps; ++step) {
    take_time(std::chrono::microseconds(settings.own_us), false);
    if (is_late) take_time(std::chrono::microseconds(settings.late_us), settings.computes);
    world.allreduce(values);
  }
  col::finalize();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3 && argc != 6) return 2;
    Settings settings{.steps = std::atol(argv[1]), .own_us = std::atol(argv[2])};
    if (argc == 6) {
      settings.late_rank = std::atoi(argv[3]);
      settings.late_us = std::atol(argv[4]);
      settings.computes = std::string_view(argv[5]) == "compute";
    }
    run(settings);
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
