#include "lane.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <utility>

#include "player.hpp"
#include "program.hpp"
#include "random.hpp"

namespace programs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kSharedBytes = 10 << 20;
constexpr std::uint64_t kProgramsOfGroups = 20;  // then new groups are made

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace

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

}  // namespace programs
