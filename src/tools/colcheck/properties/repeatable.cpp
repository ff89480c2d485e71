// The same call with the same inputs gives the same bits every time: whichever rank comes first, wherever the buffers
// are, and in a group that has just been made.
#include <atomic>
#include <thread>

#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

constexpr Operator kOperators[] = {Operator::sum, Operator::product, Operator::avg, Operator::premul_sum};
constexpr std::uint64_t kOneGroup = 0, kFreshGroup = 1;
// Making a group takes longer than all the calls in it.
constexpr std::uint64_t kVariants[] = {kOneGroup, kOneGroup, kOneGroup, kOneGroup,
                                       kOneGroup, kOneGroup, kOneGroup, kFreshGroup};
constexpr int kRuns = 4;

void cases(const Selection& selection, std::vector<Case>& all) {
  add_number_cases(selection,
                   {.property = "repeatable",
                    .dtypes = kFloats,
                    .operators = kOperators,
                    .variants = kVariants,
                    .quick_rows = 2,
                    .full_rows = 6,
                    .fewest_ranks = 2,
                    .longest = 1500},
                   all);
}

// Makes this rank late by some microseconds, or not.
void come_late(std::uint64_t random) {
  for (std::uint64_t i = 0; i < random % 8; ++i) std::this_thread::yield();
  const std::uint64_t rounds = (random >> 8) % 4 * ((random >> 16) % 10000);
  for (std::uint64_t i = 0; i < rounds; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);  // stays a loop
}

template <class T>
std::string difference(const std::vector<T>& first, const std::vector<T>& later, int run) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (bits_of(first[i]) != bits_of(later[i]))
      return fmt::format("element {} is {} in run 1 and {} in run {}", i, show(first[i]), show(later[i]), run);
  }
  return {};
}

template <class T>
Finding check(Rank& rank, const Case& c) {
  const Reduction call = reduction_of(c, &broken_scale);
  const auto me = static_cast<std::size_t>(rank.rank());
  const auto input = ill_conditioned_inputs<T>(c.ranks, input_count(c), c.seed)[me];
  PerRank<T> held;  // the buffers of earlier runs, so that later buffers are elsewhere
  std::vector<T> first;
  std::string problem;
  for (int run = 1; run <= kRuns; ++run) {
    const std::uint64_t random = mix(c.seed, 30 + me, static_cast<std::uint64_t>(run));
    const bool fresh = run == kRuns && c.variant == kFreshGroup;
    Group group = fresh ? rank.make_group() : rank.group();
    come_late(random);
    auto output = output_of(group, call, input, random % 16);
    if (fresh) rank.drop(group);
    if (run == 1) first = output;
    if (problem.empty()) problem = difference(first, output, run);
    held.push_back(std::move(output));
    held.emplace_back(random % 100);
  }
  return Finding::of(problem);
}

Finding run(Rank& rank, const Case& c) {
  return with_float(c.dtype, [&](auto element) { return check<decltype(element)>(rank, c); });
}

}  // namespace

const Property kRepeatable{
    "repeatable",   "the same call gives the same bits again, whoever comes late", Property::Kind::group, &cases, &run,
    OnGpus::results};

}  // namespace col::colcheck
