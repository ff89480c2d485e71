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
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <col/col.hpp>

#include "part.hpp"
#include "player.hpp"
#include "program.hpp"
#include "random.hpp"

namespace programs {
namespace {

// ---- What one thread of every rank does together: groups of their own, and programs in them

struct Settings {
  std::uint64_t seed = 0;
  double seconds = 5;
  std::uint64_t first = 0;     // number of the first program
  std::uint64_t programs = 0;  // how many; 0: as many as the time allows
  int events = 40;             // of a program
  int lanes = 2;               // threads of a rank
  Extras extras = {};
  bool interrupted = false;  // by signals, again and again
  std::vector<std::string> backends = {"shm"};
};

class Lane {
 public:
  Lane(const Settings& settings, int number) : settings_(settings), number_(number) {}

  // Plays programs until time is up, or `stopped` by another lane of this process. Returns what went wrong, with all
  // that is needed to repeat it; empty when nothing did.
  std::string run(std::atomic<bool>& stopped);
  std::uint64_t programs() const { return programs_; }
  std::uint64_t events() const { return events_; }

 private:
  void make_base_groups();
  void derive_groups(std::uint64_t program);
  void drop_derived_groups();
  void add(col::Group group, std::size_t size);
  void share_memory(Place& place);
  bool goes_on(std::uint64_t program, double seconds, std::atomic<bool>& stopped);
  std::string command(std::uint64_t program) const;

  const Settings& settings_;
  int number_;
  std::size_t base_groups_ = 0;
  std::vector<Place> places_ = {};  // the base groups, one of each backend, then those made from them
  std::vector<int> sizes_ = {};     // of all, also of those that this rank is not in
  std::uint64_t programs_ = 0, events_ = 0;
};

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSharedBytes = 10 << 20;
constexpr std::uint64_t kProgramsOfGroups = 20;  // then new groups are made

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

void Lane::add(col::Group group, std::size_t size) {
  places_.push_back({.group = std::move(group)});
  sizes_.push_back(static_cast<int>(size));
}

void Lane::make_base_groups() {
  col::Context& context = col::Context::current();
  for (const std::string& backend : settings_.backends) {
    add(context.init_group({.name = "lane " + std::to_string(number_) + " " + backend,
                            .rank = context.spec().rank,
                            .world_size = context.spec().world_size,
                            .backend_name = backend}),
        static_cast<std::size_t>(context.spec().world_size));
  }
  base_groups_ = places_.size();
  for (Place& place : places_) share_memory(place);
}

// Goes with the process.
void Lane::share_memory(Place& place) {
  place.shared = {static_cast<std::byte*>(place.group.alloc(kSharedBytes)), kSharedBytes};
}

// The same on all ranks, whatever was before `program`.
void Lane::derive_groups(std::uint64_t program) {
  Random random(mixed(mixed(settings_.seed, program / kProgramsOfGroups), 1'000 + static_cast<std::uint64_t>(number_)));
  for (std::size_t base = 0; base < base_groups_; ++base) {
    col::Group world = places_[base].group;
    const auto ranks = static_cast<std::size_t>(world.size());
    add(world.dup(), ranks);
    std::vector<int> order(ranks);
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
    // Some of the ranks have one color, some the other.
    const std::size_t first = random.below(ranks + 1);
    const auto place = static_cast<std::size_t>(std::find(order.begin(), order.end(), world.rank()) - order.begin());
    const col::Group half = world.split(place < first ? 0 : 1, static_cast<int>(place));
    add(place < first ? half : col::Group(), first);
    add(place < first ? col::Group() : half, ranks - first);
    random.shuffle(order);
    order.resize(1 + random.below(ranks));
    add(world.subgroup(order, std::string(world.name()) + " some " + std::to_string(program)), order.size());
  }
}

void Lane::drop_derived_groups() {
  for (std::size_t i = base_groups_; i < places_.size(); ++i) {
    if (places_[i].group) col::destroy_collective_group(places_[i].group.name());
  }
  places_.resize(base_groups_);
  sizes_.resize(base_groups_);
}

// Rank 0 decides for all.
bool Lane::goes_on(std::uint64_t program, double seconds, std::atomic<bool>& stopped) {
  const bool is_enough = settings_.programs > 0 ? program >= settings_.first + settings_.programs
                                                : seconds >= settings_.seconds || stopped;
  std::array<std::int32_t, 1> go = {is_enough ? 0 : 1};
  places_.front().group.broadcast(go);
  return go[0] == 1;
}

std::string Lane::command(std::uint64_t program) const {
  std::string backends;
  for (const std::string& backend : settings_.backends) backends += (backends.empty() ? "" : ",") + backend;
  return "colrun -n " + std::to_string(col::Context::current().spec().world_size) + " random_programs --backend " +
         backends + " --threads " + std::to_string(settings_.lanes) + " --events " + std::to_string(settings_.events) +
         (settings_.extras.making ? " --making 1" : "") + (settings_.extras.dropping ? " --dropping 1" : "") +
         " --seed " + hexadecimal(settings_.seed) + " --first " + std::to_string(program) + " --programs 1";
}

std::string Lane::run(std::atomic<bool>& stopped) {
  const auto start = Clock::now();
  const std::uint64_t own = mixed(static_cast<std::uint64_t>(col::Context::current().spec().rank), 2'000);
  std::uint64_t program = settings_.first;
  try {
    make_base_groups();
    for (;; ++program) {
      if (!goes_on(program, std::chrono::duration<double>(Clock::now() - start).count(), stopped)) break;
      if (places_.size() > base_groups_ && program % kProgramsOfGroups == 0) drop_derived_groups();
      if (places_.size() == base_groups_) derive_groups(program);
      const std::uint64_t seed = mixed(mixed(settings_.seed, program), static_cast<std::uint64_t>(number_));
      const std::vector<Event> events = make_program(seed, settings_.events, sizes_, settings_.extras);
      Player(places_, mixed(seed, own)).play(events);
      programs_ += 1;
      events_ += events.size();
    }
    drop_derived_groups();
    return {};
  } catch (const std::exception& error) {
    stopped = true;
    return "program " + std::to_string(program) + " of thread " + std::to_string(number_) + ": " + error.what() +
           "\n  repeat it, with luck, by: " + command(program) + "\n";
  }
}

// ---- All threads

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
}  // namespace programs

int main(int argc, char** argv) {
  try {
    return programs::run(programs::settings_of(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "random_programs: %s\n", error.what());
    return 2;
  }
}
