// Which way a call goes that the kernel could serve: what ranks try, and what follows from their times.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "backend/shm/native/kernel_trials.hpp"
#include "support/catch.hpp"
#include "unit/shm/again.hpp"
#include "unit/shm/shm_ranks.hpp"

namespace col::test::kernel_trials {
namespace {

using namespace shm_backend;

constexpr std::size_t kMib = std::size_t{1} << 20;
constexpr KernelCall kBroadcast{KernelShape::vector_of_one, kMib};

struct Cost {
  std::uint32_t kernel, meeting, slots;
};

// All ranks of a group, which see what one another tell.
class Ranks {
 public:
  Ranks(int size, std::size_t before) : trials_(static_cast<std::size_t>(size), KernelTrials(size, before)) {}

  // One call of all, which costs rank r what `costs[r]` says. Whether it went by the kernel; all ranks must agree.
  bool call(const KernelCall& call, const std::vector<Cost>& costs) {
    std::vector<KernelTrials::Turn> turns;
    for (KernelTrials& rank : trials_) turns.push_back(rank.next(call));
    const KernelTrials::Turn first = turns.front();
    for (const auto& turn : turns)
      agree_ = agree_ && turn.by_kernel == first.by_kernel && turn.is_timed == first.is_timed &&
               turn.decides == first.decides;
    bool by_kernel = first.by_kernel;
    if (first.decides) {
      ++decisions_;
      std::vector<Presence> told(trials_.size());
      for (std::size_t r = 0; r < told.size(); ++r) told[r].times = trials_[r].told();
      by_kernel = trials_.front().decide(told);
      for (std::size_t r = 1; r < trials_.size(); ++r) agree_ = trials_[r].decide(told) == by_kernel && agree_;
    }
    for (std::size_t r = 0; first.is_timed && r < trials_.size(); ++r) {
      if (by_kernel)
        trials_[r].took({.kernel = costs[r].kernel, .meeting = costs[r].meeting});
      else
        trials_[r].took({.slots = costs[r].slots});
    }
    return by_kernel;
  }
  int by_kernel(int calls, const std::vector<Cost>& costs, const KernelCall& kind = kBroadcast) {
    int count = 0;
    for (int i = 0; i < calls; ++i) count += call(kind, costs) ? 1 : 0;
    return count;
  }
  bool agree() const { return agree_; }
  int decisions() const { return decisions_; }

 private:
  std::vector<KernelTrials> trials_;
  bool agree_ = true;
  int decisions_ = 0;
};

TEST_CASE("trials: so many bytes go through slots first", "[shm]") {
  Ranks two(2, 8 * kMib);
  CHECK(two.by_kernel(8, {{1, 1, 100}, {1, 1, 100}}) == 0);
  CHECK(two.call(kBroadcast, {{1, 1, 100}, {1, 1, 100}}));
  // Of each block there are as many as ranks.
  const KernelCall alltoall{KernelShape::blocks_of_each, kMib};
  CHECK(two.by_kernel(4, {{1, 1, 100}, {1, 1, 100}}, alltoall) == 0);
  CHECK(two.call(alltoall, {{1, 1, 100}, {1, 1, 100}}));
  Ranks at_once(2, 0);
  CHECK(at_once.call(kBroadcast, {{1, 1, 100}, {1, 1, 100}}));
}

TEST_CASE("trials: nearly all calls go the way that is faster for the slowest rank", "[shm]") {
  constexpr int kCalls = 2000, kFew = kCalls / 20;
  const auto by_kernel = [&](const std::vector<Cost>& costs) {
    Ranks ranks(static_cast<int>(costs.size()), 0);
    const int count = ranks.by_kernel(kCalls, costs);
    CHECK(ranks.agree());
    return count;
  };
  CHECK(by_kernel({{50, 1, 100}, {60, 2, 90}}) > kCalls - kFew);
  CHECK(by_kernel({{50, 1, 40}, {60, 2, 30}}) < kFew);
  // A root that only reads nothing, or only writes, ends early.
  CHECK(by_kernel({{1, 1, 100}, {60, 2, 90}, {50, 2, 10}}) > kCalls - kFew);
  CHECK(by_kernel({{150, 100, 1}, {150, 2, 149}}) < kFew);
  // The meeting that slots do without counts, without the time that a rank waits in it for a slower one.
  CHECK(by_kernel({{95, 10, 100}, {95, 10, 100}}) < kFew);
  CHECK(by_kernel({{95, 90, 100}, {95, 3, 100}}) > kCalls - kFew);
}

TEST_CASE("trials: they come back, and find out that it has changed", "[shm]") {
  const std::vector<Cost> again = {{50, 1, 100}, {50, 1, 100}}, anew = {{150, 1, 100}, {150, 1, 100}};
  Ranks ranks(2, 0);
  ranks.by_kernel(5000, again);
  const int far_apart = ranks.decisions();
  CHECK(far_apart < 5000 / static_cast<int>(KernelTrials::kLongestRound) + 8);
  CHECK(ranks.by_kernel(2 * KernelTrials::kLongestRound, anew) < static_cast<int>(KernelTrials::kLongestRound) + 20);
  CHECK(ranks.by_kernel(1000, anew) < 60);
  CHECK(ranks.by_kernel(2 * KernelTrials::kLongestRound, again) > static_cast<int>(KernelTrials::kLongestRound) - 20);
}

TEST_CASE("trials: where the kernel is far behind, they are rare from the first on", "[shm]") {
  constexpr int kCalls = 4 * static_cast<int>(KernelTrials::kLongestRound);
  Ranks far(2, 0), near(2, 0);
  CHECK(far.by_kernel(kCalls, {{100, 1, 50}, {151, 1, 100}}) == 4 * 4);  // each trial calls the kernel four times
  CHECK(far.decisions() == 4);
  CHECK(near.by_kernel(kCalls, {{100, 1, 90}, {140, 1, 100}}) > 4 * 4);
}

TEST_CASE("trials: a rank that loses its processor in one call of a trial changes nothing", "[shm]") {
  constexpr int kTrialCalls = 10;  // with the one that decides
  for (const auto& [usual, is_faster] : {std::pair{Cost{50, 1, 100}, true}, std::pair{Cost{100, 1, 50}, false}}) {
    for (int late = 0; late < kTrialCalls; ++late) {
      Ranks ranks(2, 0);
      bool by_kernel = false;
      for (int i = 0; i < kTrialCalls; ++i) {
        const Cost slow{100'000, 1, 100'000};
        by_kernel = ranks.call(kBroadcast, {usual, i == late ? slow : usual});
      }
      INFO("call " << late);
      CHECK(ranks.decisions() == 1);
      CHECK(by_kernel == is_faster);
    }
  }
}

// Over real memory, whichever way is faster here: several kinds in turns, through several rounds, with calls that are
// started and waited for later.
TEST_CASE("trials: calls give what they should in every turn", "[shm]") {
  constexpr Collective kAll[] = {Collective::broadcast, Collective::reduce, Collective::allreduce,
                                 Collective::scatter,   Collective::gather, Collective::allgather,
                                 Collective::alltoall};
  constexpr int kMost = 8000, kSteps = 700;
  const int size = GENERATE(2, 3);
  const auto seed = std::random_device{}();
  const auto tuner = [](const Segment& segment, int processors) {
    Tuning tuning = mixed_ways(segment, processors);
    tuning.copies = KernelCopies::automatic;
    tuning.kernel.fill(~std::uint64_t{0});
    tuning.before_trials = kMost * sizeof(std::int32_t);
    return tuning;
  };
  const RankBody body = [&](int rank, ShmChannel& channel) {
    std::mt19937 common(seed), own(seed + static_cast<unsigned>(rank) + 1);
    AgainPart part(rank, size, kMost);
    for (int step = 0; step < kSteps; ++step) {
      const Again call{.collective = kAll[common() % std::size(kAll)],
                       .count = kMost - static_cast<int>(common() % 2),
                       .root = static_cast<int>(common() % static_cast<unsigned>(size)),
                       .op = common() % 2 == 0 ? ReduceOp::sum : ReduceOp::max};
      const Request& request = part.prepare(call, step, static_cast<std::uint64_t>(step) + 1);
      WaitContext wait = wait_for(std::chrono::seconds(20));
      if (own() % 2 == 0)
        channel.native(request, wait);
      else
        channel.wait(channel.start_native(request, wait), wait);
      expect(part.is_right(), "the result");
    }
  };
  const auto endings = run_ranks(size, body, tuner);
  INFO(size << " ranks, seed " << seed << "\n" << show(endings));
  CHECK(all_well(endings));
}

// The result of an allreduce, or of a reduce to rank 1, of two ranks.
std::vector<std::byte> folded(DType dtype, ReduceOp op, bool rooted, const std::vector<std::byte> (&inputs)[2],
                              KernelCopies copies) {
  std::vector<std::byte> results[2];
  const RankBody body = [&](int rank, ShmChannel& channel) {
    const auto& in = inputs[rank];
    auto& out = results[rank];
    for (int i = 0; i < 4; ++i) {  // in the first ones the ranks find out that they can copy
      out.assign(in.size(), std::byte{0xee});
      const std::size_t count = in.size() / size_of(dtype);
      Request request{.collective = rooted ? Collective::reduce : Collective::allreduce};
      request.in = {in.data(), count, dtype};
      request.out = {out.data(), rooted && rank == 0 ? 0 : count, dtype};
      request.op = op;
      request.root = rooted ? 1 : 0;
      request.fingerprint = static_cast<std::uint64_t>(i) + 1;
      WaitContext wait = wait_for(std::chrono::seconds(20));
      channel.native(request, wait);
    }
  };
  require_well(run_ranks(2, body, [&](const Segment& segment, int processors) {
    return decide(shape_of(segment, processors), {.copies = copies});
  }));
  if (!rooted) CHECK(results[0] == results[1]);
  return results[1];
}

TEST_CASE("by the kernel: two ranks fold to the bits that they get through slots", "[shm]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const DType dtype :
       {DType::int8, DType::uint32, DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    std::vector<std::byte> inputs[2];
    for (auto& input : inputs) {
      input.resize(size_of(dtype) * 90'001);  // float32 and more: in several pieces
      for (std::size_t i = 0; i < input.size(); ++i) {
        const bool is_top = (i + 1) % size_of(dtype) == 0 && dtype != DType::int8 && dtype != DType::uint32;
        input[i] = static_cast<std::byte>(random() & (is_top ? 0x3b : 0xff));  // a float below 2
      }
    }
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max, ReduceOp::avg}) {
      for (const bool rooted : {false, true}) {
        INFO(to_string(dtype) << ", " << to_string(op) << (rooted ? ", reduce" : ", allreduce"));
        CHECK(folded(dtype, op, rooted, inputs, KernelCopies::on) ==
              folded(dtype, op, rooted, inputs, KernelCopies::off));
      }
    }
  }
}

TEST_CASE("trials: kinds of calls and sizes are tried each for itself", "[shm]") {
  Ranks ranks(2, 0);
  const std::vector<Cost> fast = {{50, 1, 100}, {50, 1, 100}}, slow = {{150, 1, 100}, {150, 1, 100}};
  const KernelCall small{KernelShape::vector_of_one, kMib / 4}, scatter{KernelShape::blocks_of_one, kMib};
  int large_ones = 0, small_ones = 0, scatters = 0;
  for (int i = 0; i < 1000; ++i) {
    large_ones += ranks.call(kBroadcast, fast) ? 1 : 0;
    small_ones += ranks.call(small, slow) ? 1 : 0;
    scatters += ranks.call(scatter, fast) ? 1 : 0;
  }
  CHECK(large_ones > 900);
  CHECK(small_ones < 100);
  CHECK(scatters > 900);
  CHECK(ranks.agree());
}

TEST_CASE("trials: ranks decide alike whatever they measure, also where a call went a third way", "[shm]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const int size = GENERATE(1, 2, 5);
  std::vector<KernelTrials> ranks(static_cast<std::size_t>(size), KernelTrials(size, kMib));
  bool agree = true;
  for (int i = 0; i < 3000; ++i) {
    const KernelCall call{static_cast<KernelShape>(random() % kKernelShapes), std::size_t{1} << (14 + random() % 8)};
    const bool is_timed = random() % 4 != 0;  // or it went through memory of col::alloc()
    std::vector<KernelTrials::Turn> turns;
    for (KernelTrials& rank : ranks) turns.push_back(rank.next(call));
    std::vector<Presence> told(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) told[r].times = ranks[r].told();
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (turns[r].decides) turns[r].by_kernel = ranks[r].decide(told);
      if (turns[r].is_timed && is_timed) {
        const auto time = static_cast<std::uint32_t>(random());
        ranks[r].took(turns[r].by_kernel ? WayTimes{.kernel = time, .meeting = time / 2} : WayTimes{.slots = time});
      }
    }
    agree = agree && std::all_of(turns.begin(), turns.end(), [&](const KernelTrials::Turn& turn) {
              return turn.by_kernel == turns[0].by_kernel && turn.is_timed == turns[0].is_timed;
            });
  }
  CHECK(agree);
}

}  // namespace
}  // namespace col::test::kernel_trials
