#include "simulation/faults.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/duration.hpp"

namespace col::test {
namespace {

using Kind = Fault::Kind;

constexpr std::array kNames = {"kill",       "stop",       "late",       "cut",      "reset",
                               "mute store", "slow store", "lose store", "interrupt"};
// The faults that choose_faults() knows.
constexpr std::size_t kOrdinary = 6;

// Half of the shortest timeout.
constexpr Duration kLate = std::chrono::milliseconds(500);

Duration part_of(Duration whole, Random& random) {
  return Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(whole.count()))));
}

bool contains(const std::vector<std::pair<int, int>>& pairs, int a, int b) {
  return std::find(pairs.begin(), pairs.end(), std::pair(std::min(a, b), std::max(a, b))) != pairs.end();
}

}  // namespace

std::string describe(const Fault& fault) {
  std::string text = kNames[static_cast<std::size_t>(fault.kind)];
  if (fault.rank >= 0) text += fmt::format(" {}", fault.rank);
  if (fault.other >= 0) text += fmt::format("-{}", fault.other);
  text += fmt::format(" {} after call {}", core::format_duration(fault.delay), fault.at_call);
  if (fault.length > Duration::zero()) text += fmt::format(" for {}", core::format_duration(fault.length));
  return text;
}

std::vector<Fault> choose_faults(Random& random, int ranks, int calls, Duration timeout) {
  std::vector<Fault> faults;
  const int count = random.one_in(2) ? 1 : random.from_to(2, 3);
  for (int i = 0; i < count; ++i) {
    Fault fault;
    // The death of a rank is what happens most.
    fault.kind = random.one_in(3) ? Kind::kill : static_cast<Kind>(random.below(kOrdinary));
    if (fault.kind != Kind::mute_store) fault.rank = random.from_to(0, ranks - 1);
    if (fault.kind == Kind::cut || fault.kind == Kind::reset)
      fault.other = (fault.rank + random.from_to(1, ranks - 1)) % ranks;
    fault.at_call = random.from_to(0, calls - 1);
    fault.delay = std::chrono::nanoseconds(random.skewed_below(5'000'000));
    const bool ends = fault.kind == Kind::stop || fault.kind == Kind::late || fault.kind == Kind::mute_store;
    if (ends)
      fault.length = std::chrono::milliseconds(1) + part_of(random.one_in(2) ? timeout / 4 : 2 * timeout, random);
    faults.push_back(fault);
  }
  return faults;
}

Fault choose_store_fault(Random& random, int ranks, int calls, Duration timeout) {
  Fault fault;
  fault.kind = random.one_in(2) ? Kind::slow_store : Kind::lose_store;
  if (fault.kind == Kind::lose_store) fault.rank = random.from_to(0, ranks - 1);
  fault.at_call = random.from_to(0, calls - 1);
  fault.delay = std::chrono::nanoseconds(random.skewed_below(5'000'000));
  fault.length = std::chrono::milliseconds(1) + part_of(random.one_in(2) ? timeout / 4 : 2 * timeout, random);
  return fault;
}

Fault choose_interrupt(Random& random, int ranks, int calls) {
  Fault fault;
  fault.kind = Kind::interrupt;
  fault.rank = random.from_to(0, ranks - 1);
  fault.at_call = random.from_to(0, calls - 1);
  fault.delay = std::chrono::nanoseconds(random.skewed_below(5'000'000));
  return fault;
}

Truth::Truth(Simulator& simulator, std::vector<Fault> faults, int ranks, int processes)
    : simulator_(simulator), faults_(std::move(faults)), store_(ranks), ranks_(static_cast<std::size_t>(processes)) {}

Duration Truth::count_call(int rank) {
  Duration late = {};
  ++calls_;
  for (std::size_t i = 0; i < faults_.size();) {
    const Fault fault = faults_[i];
    const bool is_own = fault.kind != Kind::late || fault.rank == rank;
    if (is_mended_ || calls_ <= fault.at_call || !is_own) {
      ++i;
      continue;
    }
    faults_.erase(faults_.begin() + static_cast<std::ptrdiff_t>(i));
    if (fault.kind == Kind::late) {
      happen(fault);
      late += fault.length;
    } else {
      simulator_.at(simulator_.now() + fault.delay, [this, fault] {
        if (!is_mended_) happen(fault);
      });
    }
  }
  of(rank).late += late;
  return late;
}

void Truth::strike(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    simulator_.at(simulator_.now() + fault.delay, [this, fault] {
      int left = 0;
      for (int rank = 0; rank < store(); ++rank)
        left += simulator_.state_of(rank) != core::ProcessCondition::gone ? 1 : 0;
      if (left > 1 || fault.kind != Kind::kill) happen(fault);
    });
  }
}

void Truth::happen(const Fault& fault) {
  // One that has ended has no more faults.
  if (fault.rank >= 0 && simulator_.state_of(fault.rank) == core::ProcessCondition::gone) return;
  simulator_.note("fault", describe(fault));
  any_ = true;
  are_all_kills_ = are_all_kills_ && fault.kind == Kind::kill;
  const std::pair pair(std::min(fault.rank, fault.other), std::max(fault.rank, fault.other));
  switch (fault.kind) {
    case Kind::kill:
      of(fault.rank).is_to_blame = true;
      of(fault.rank).ended = simulator_.now();
      ++kills_;
      simulator_.kill(fault.rank);
      break;
    case Kind::stop:
      if (simulator_.state_of(fault.rank) == core::ProcessCondition::stopped) return;
      of(fault.rank).is_to_blame = true;
      of(fault.rank).stopped = simulator_.now();
      simulator_.stop(fault.rank);
      simulator_.at(simulator_.now() + fault.length, [this, rank = fault.rank] { go_on(rank); });
      break;
    case Kind::cut:
    case Kind::reset:
      of(fault.rank).is_to_blame = of(fault.other).is_to_blame = true;
      (fault.kind == Kind::cut ? cuts_ : resets_).push_back(pair);
      break;
    case Kind::mute_store:
      if (!std::exchange(is_mute_, true)) begin_store_trouble();
      simulator_.stop(store());
      simulator_.at(simulator_.now() + fault.length, [this] { go_on(store()); });
      break;
    case Kind::slow_store:
      if (std::exchange(is_slow_, true)) return;
      begin_store_trouble();
      simulator_.at(simulator_.now() + fault.length, [this] {
        if (std::exchange(is_slow_, false)) end_store_trouble();
      });
      break;
    case Kind::lose_store:
      of(fault.rank).is_to_blame = true;
      without_store_.push_back(fault.rank);
      begin_store_trouble();
      simulator_.at(simulator_.now() + fault.length, [this, rank = fault.rank] {
        if (std::erase(without_store_, rank) > 0) end_store_trouble();
      });
      break;
    case Kind::late:
      of(fault.rank).is_to_blame = true;
      break;
    case Kind::interrupt:
      of(fault.rank).is_to_blame = of(fault.rank).is_interrupted = true;
      break;
  }
}

void Truth::go_on(int rank) {
  if (of(rank).stopped != Time::max()) of(rank).stops.emplace_back(of(rank).stopped, simulator_.now());
  of(rank).stopped = Time::max();
  if (rank == store() && std::exchange(is_mute_, false)) end_store_trouble();
  simulator_.go_on(rank);
}

void Truth::begin_store_trouble() {
  ++store_troubles_;
  had_store_trouble_ = true;
}

void Truth::end_store_trouble() {
  --store_troubles_;
  store_trouble_ended_ = simulator_.now();
}

void Truth::mend() {
  is_mended_ = true;
  if (std::exchange(is_slow_, false)) end_store_trouble();
  if (std::exchange(without_store_, {}).size() > 0) end_store_trouble();
  for (int process = 0; process < static_cast<int>(ranks_.size()); ++process) go_on(process);
  for (Rank& rank : ranks_) rank.is_interrupted = false;
  cuts_.clear();
  resets_.clear();
}

bool Truth::is_cut(int a, int b) const {
  const auto is_lost = [&](int rank, int other) {
    return other == store() && std::ranges::count(without_store_, rank) > 0;
  };
  return contains(cuts_, a, b) || contains(resets_, a, b) || is_lost(a, b) || is_lost(b, a);
}

bool Truth::is_reset(int a, int b) const {
  return contains(resets_, a, b);
}

Truth::Time Truth::ended_at(int rank) const {
  return of(rank).ended;
}

Duration Truth::stopped_since(int rank, Time since) const {
  Duration whole = {};
  for (const auto& [begin, end] : of(rank).stops)
    whole += std::max(Duration::zero(), Duration(end - std::max(begin, std::min(since, end))));
  return whole;
}

bool Truth::has_been_late(int rank) const {
  return of(rank).late + stopped_since(rank, Simulator::kBegin) >= kLate;
}

bool Truth::may_be_blamed(int rank) const {
  return of(rank).is_to_blame;
}

}  // namespace col::test
