// Random programs over several groups, compared with a reference of the plainest kind:
//
//   colrun -n 4 random_programs [--backend shm|gloo|mixed] [--seconds N] [--seed N] [--threads N] [--events N]
//                               [--first N] [--programs N] [--making 1] [--dropping 1] [--interrupted 1]
//
// Collectives of every kind and messages, blocking and not, in many groups at once, in an order that all ranks share;
// each rank waits for them in an order of its own. Every program is correct, so each must come to its end, with the
// right values. What is random follows from the seed, which is printed; only time differs from run to run.
//
// mixed           a group over shared memory and one over Gloo, with the same ranks
// --making 1      groups are made, and destroyed, in the middle
// --dropping 1    some calls are never waited for
// --interrupted 1 a timer's signal comes every millisecond
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <col/col.hpp>

#include "lane.hpp"

namespace {

using programs::Lane;
using programs::Settings;

std::vector<std::string> backends_of(const std::string& text) {
  if (text == "mixed") return {"shm", "gloo"};
  std::vector<std::string> backends;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    backends.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return backends;
}

Settings settings_of(int argc, char** argv) {
  Settings settings;
  settings.seed = std::random_device()();
  for (int i = 1; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(option + " needs a value");
    const std::string value = argv[i + 1];
    if (option == "--backend")
      settings.backends = backends_of(value);
    else if (option == "--seconds")
      settings.seconds = std::stod(value);
    else if (option == "--seed")
      settings.seed = std::stoull(value, nullptr, 0);
    else if (option == "--threads")
      settings.lanes = std::stoi(value);
    else if (option == "--events")
      settings.events = std::stoi(value);
    else if (option == "--making")
      settings.extras.making = value == "1";
    else if (option == "--dropping")
      settings.extras.dropping = value == "1";
    else if (option == "--interrupted")
      settings.interrupted = value == "1";
    else if (option == "--first")
      settings.first = std::stoull(value);
    else if (option == "--programs")
      settings.programs = std::stoull(value);
    else
      throw std::invalid_argument("what is " + option + "?");
  }
  return settings;
}

// As a profiler does: hardly any system call comes to its end without being interrupted.
void interrupt_everything() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval often{.it_interval = {0, 1'000}, .it_value = {0, 1'000}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
}

int run(Settings settings) {
  if (settings.interrupted) interrupt_everything();
  col::Group world = col::init();
  world.broadcast_object(settings.seed);
  if (world.rank() == 0)
    std::printf("random_programs: seed 0x%llx, %d ranks of %d threads\n",
                static_cast<unsigned long long>(settings.seed), world.size(), settings.lanes);
  std::fflush(stdout);
  std::atomic<bool> stopped = false;
  std::vector<Lane> lanes;
  for (int i = 0; i < settings.lanes; ++i) lanes.emplace_back(settings, i);
  std::vector<std::thread> threads;
  for (Lane& lane : lanes) {
    threads.emplace_back([&lane, &stopped] {
      const std::string problem = lane.run(stopped);
      if (problem.empty()) return;
      std::fprintf(stderr, "random_programs: FAILED in %s", problem.c_str());
      std::fflush(stderr);
      ::_exit(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t played = 0, events = 0;
  for (const Lane& lane : lanes) {
    played += lane.programs();
    events += lane.events();
  }
  if (world.rank() == 0)
    std::printf("random_programs: %llu programs of %llu events, all as they should be\n",
                static_cast<unsigned long long>(played), static_cast<unsigned long long>(events));
  col::finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(settings_of(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_programs: %s\n", error.what());
    return 2;
  }
}
