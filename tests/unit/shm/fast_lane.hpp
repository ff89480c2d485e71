// The calls of a group over shared memory, as their real code makes them, in all orders of what the ranks do: calls
// that begin at once because they come again, calls that block, and calls that are started and end later.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/segment/segment.hpp"
#include "backend/shm/segment/shared_file.hpp"
#include "backend/shm/segment/tuning.hpp"
#include "support/channel_ranks.hpp"
#include "support/protocol/fibers.hpp"
#include "unit/shm/again.hpp"

namespace col::test {

enum class Way : std::uint8_t { at_once, blocking, started };
inline constexpr int kWays = 3;

struct LaneCall {
  Again call;
  int place = 0;          // calls at one place come again there
  std::vector<Way> ways;  // by rank
};

inline std::string show(const LaneCall& of) {
  std::string ways;
  for (const Way way : of.ways) ways += "obs"[static_cast<std::size_t>(way)];
  return fmt::format("{} of {} {} from {} at {} ({})", to_string(of.call.collective), of.call.count,
                     of.call.op == ReduceOp::max ? "max" : "sum", of.call.root, of.place, ways);
}

// Steps of few bytes, so that short vectors take several; and as many forms as there are. Each rank has a processor of
// its own, so it looks on before it lets others run.
inline void set_small_steps(shm_backend::Segment& segment, std::size_t slot) {
  using namespace shm_backend;
  Tuning tuning = decide(shape_of(segment, segment.size()), {.copies = KernelCopies::off});
  tuning.small_slot = tuning.slot = slot;
  tuning.fold_all = 128;
  tuning.looks = 1;
  segment.set_tuning(tuning);
  for (int rank = 0; rank < segment.size(); ++rank) {
    RankPlace& place = segment.place(rank);
    place.processors[0] = std::uint64_t{1} << rank;
    place.processors_known.store(RankPlace::kListed, std::memory_order_release);
  }
}

// `Collectives`: the real ones, or such with a planted fault.
template <class Collectives>
class FastLane {
 public:
  static constexpr int kPlaces = 2, kMost = 600;
  static constexpr std::size_t kMostCalls = 8;

  // Steps of 256 B lie in headers and in parts of slots.
  explicit FastLane(int size, std::size_t slot = 256) : size_(size), memory_(shm_backend::make_memfd()) {
    segment_ = shm_backend::Segment::create(memory_.get(), size, 1);
    set_small_steps(*segment_, slot);
    for (int rank = 0; rank < size; ++rank) {
      segment_->claim(rank);
      ranks_.push_back(std::make_unique<Rank>(*this, rank));
    }
  }

  // The calls, in all orders of the ranks' turns.
  void make_all(const std::vector<LaneCall>& calls) {
    run_all([&](std::vector<int>& choices) { return make_once(calls, choices); });
  }
  // In one order. Returns how many ranks could go on, for each turn; nothing if there was a problem.
  std::vector<int> make_once(const std::vector<LaneCall>& calls, std::vector<int>& choices) {
    ++runs_;
    // Before: each place has seen its first call.
    std::vector<LaneCall> first;
    for (int place = 0; place < kPlaces; ++place) {
      for (const LaneCall& call : calls) {
        if (call.place != place) continue;
        first.push_back({call.call, place, std::vector<Way>(static_cast<std::size_t>(size_), Way::blocking)});
        break;
      }
    }
    std::vector<int> no_choice;
    std::vector<int> options = run_once(first, no_choice);
    if (problem_.empty()) options = run_once(calls, choices);
    if (problem_.empty()) return options;
    for (const LaneCall& call : calls) problem_ += "; " + show(call);
    return {};
  }
  const std::string& problem() const { return problem_; }
  std::uint64_t runs() const { return runs_; }
  std::uint64_t begun() const { return begun_; }  // at once
  std::uint64_t ended() const { return ended_; }  // the same

 private:
  struct Rank final : shm_backend::Attendant {
    Rank(FastLane& all, int number)
        : all_(all),
          heap("g", number, all.size_),
          collectives(kName, *all.segment_, heap, number, *this),
          started(kMostCalls, AgainPart(number, all.size_, kMost)),
          places(kPlaces, AgainPart(number, all.size_, kMost)),
          prepared(kPlaces) {}
    void attend() override { all_.fibers_->wait(); }
    inline static const std::string kName = "g";
    FastLane& all_;
    shm_backend::SymmetricHeap heap;
    Collectives collectives;
    std::vector<AgainPart> started, places;
    std::vector<std::unique_ptr<typename Collectives::Prepared>> prepared;  // for the last call of each place
  };

  std::vector<int> run_once(const std::vector<LaneCall>& calls, std::vector<int>& choices) {
    fibers_ = std::make_unique<Fibers>([this] { return seen(); });
    const int step = step_;
    step_ += static_cast<int>(calls.size());
    for (int rank = 0; rank < size_; ++rank) {
      fibers_->add([&, rank, step] {
        try {
          make(*ranks_[static_cast<std::size_t>(rank)], rank, calls, step);
        } catch (const std::exception& error) {
          found(error.what());
        } catch (...) {
          found("an exception");
        }
      });
    }
    std::vector<int> options = fibers_->run(choices);
    if (fibers_->stuck()) found("some wait for ever");
    return options;
  }

  void make(Rank& rank, int number, const std::vector<LaneCall>& calls, int step) {
    struct Started {
      std::uint64_t call;
      const AgainPart* part;
    };
    std::vector<Started> started;
    WaitContext wait = wait_for(std::chrono::seconds(100));
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Way way = calls[i].ways[static_cast<std::size_t>(number)];
      AgainPart& part = way == Way::started ? rank.started[i] : rank.places[static_cast<std::size_t>(calls[i].place)];
      const int number_of_call = step + static_cast<int>(i);
      const Request& request =
          part.prepare(calls[i].call, number_of_call, static_cast<std::uint64_t>(number_of_call) + 1);
      if (way == Way::started) {
        started.push_back({rank.collectives.start(request), &part});
        fibers_->pass();
        rank.collectives.move_on();
        continue;
      }
      auto& prepared = rank.prepared[static_cast<std::size_t>(calls[i].place)];
      if (way == Way::at_once && part.is_again() && prepared != nullptr && rank.collectives.begin(*prepared)) {
        ++begun_;
        fibers_->pass();
        if (rank.collectives.end(*prepared))
          ++ended_;
        else
          rank.collectives.run(request, wait);
      } else {
        rank.collectives.run(request, wait);
      }
      if (!part.is_again()) {
        const auto known = rank.collectives.prepare(request);
        prepared = known ? std::make_unique<typename Collectives::Prepared>(*known) : nullptr;
      }
      if (!part.is_right()) found("a wrong result");
      fibers_->pass();
    }
    for (const Started& one : started) {
      while (!rank.collectives.has_ended(one.call) && problem_.empty()) rank.collectives.move_on();
      if (!one.part->is_right()) found("a wrong result of a call that was started");
    }
    if (!rank.collectives.is_idle()) found("a call is left over");
  }

  std::uint64_t seen() const {
    const shm_backend::Area area = segment_->area();
    std::uint64_t sum = 0;
    for (int rank = 0; rank < size_; ++rank) {
      sum += area.done(rank).step.load(std::memory_order_relaxed);
      for (std::uint64_t step = 0; step < shm_backend::kHeaders; ++step)
        sum += area.header(rank, step).ready.load(std::memory_order_relaxed) +
               area.header(rank, step).folded.load(std::memory_order_relaxed);
    }
    return sum;
  }

  void found(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  const int size_;
  const core::UniqueFd memory_;
  std::shared_ptr<shm_backend::Segment> segment_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<Fibers> fibers_;
  int step_ = 0;
  std::uint64_t runs_ = 0, begun_ = 0, ended_ = 0;
  std::string problem_;
};

struct LaneFinding {
  std::string problem;
  std::uint64_t runs = 0, begun = 0, ended = 0;
};

template <class Collectives>
LaneFinding finding_of(const FastLane<Collectives>& lane) {
  return {lane.problem(), lane.runs(), lane.begun(), lane.ended()};
}

// Any two of some calls at one place, each rank in any way, in all orders.
template <class Collectives>
LaneFinding all_pairs(int size) {
  static const std::vector<Again> kCalls = {{Collective::allreduce, 2},
                                            {Collective::allreduce, 100},  // two steps, of slices
                                            {Collective::broadcast, 2},
                                            {Collective::broadcast, 2, 1},
                                            {Collective::scatter, 5}};
  FastLane<Collectives> lane(size);
  int ways = 1;
  for (int i = 0; i < 2 * size; ++i) ways *= kWays;
  for (const Again& first : kCalls) {
    for (const Again& second : kCalls) {
      for (int way = 0; way < ways && lane.problem().empty(); ++way) {
        std::vector<LaneCall> calls = {{first, 0, {}}, {second, 0, {}}};
        for (int i = 0, rest = way; i < 2 * size; ++i, rest /= kWays)
          calls[static_cast<std::size_t>(i % 2)].ways.push_back(static_cast<Way>(rest % kWays));
        lane.make_all(calls);
      }
    }
  }
  return finding_of(lane);
}

// Random calls in random ways and orders. With a `slot` of 4 KiB, the longest steps take whole slots.
template <class Collectives>
LaneFinding random_calls(int size, int runs, std::uint64_t seed, std::size_t slot = 256) {
  static constexpr Collective kAll[] = {Collective::allreduce, Collective::reduce,         Collective::broadcast,
                                        Collective::allgather, Collective::gather,         Collective::scatter,
                                        Collective::alltoall,  Collective::reduce_scatter, Collective::scan};
  static constexpr int kCounts[] = {1, 2, 13, 27, 40, 200, FastLane<Collectives>::kMost};
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  FastLane<Collectives> lane(size, slot);
  for (int run = 0; run < runs && lane.problem().empty(); ++run) {
    std::vector<LaneCall> calls(1 + below(FastLane<Collectives>::kMostCalls));
    for (LaneCall& of : calls) {
      of.place = static_cast<int>(below(FastLane<Collectives>::kPlaces));
      const LaneCall& before = calls[below(calls.size())];
      if (before.call.count > 0 && below(2) == 0)
        of.call = before.call;
      else
        of.call = {kAll[below(std::size(kAll))], kCounts[below(std::size(kCounts))],
                   static_cast<int>(below(static_cast<std::size_t>(size))),
                   below(2) == 0 ? ReduceOp::sum : ReduceOp::max};
      for (int rank = 0; rank < size; ++rank) of.ways.push_back(static_cast<Way>(below(kWays)));
    }
    std::vector<int> choices(100);
    for (int& choice : choices) choice = static_cast<int>(below(60));
    lane.make_once(calls, choices);
  }
  return finding_of(lane);
}

}  // namespace col::test
