// Reductions give the same bits: on all ranks, every time, and in rank order.
#include <atomic>
#include <optional>
#include <span>
#include <vector>

#include <col/select.hpp>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/engine/number_inputs.hpp"
#include "colcheck/engine/special_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"
#include "core/clock/clock.hpp"

namespace col::colcheck {
namespace {

// ---- same_bits: A result that all ranks get has the same bits on all of them. This also holds where rounding depends
// on the order of the operations, where NaNs with different payloads meet, and wherever in memory each rank has its
// buffers. The digests are compared outside of the library.

constexpr std::uint64_t kPlain = 0, kOnlyCompressed = 1;
constexpr std::uint64_t kVariants[] = {kPlain, kOnlyCompressed};

bool is_alike_everywhere(Primitive primitive) {
  return primitive == Primitive::allreduce || primitive == Primitive::allgather || primitive == Primitive::allgatherv ||
         primitive == Primitive::broadcast;
}

bool can_be_asked(const Form& form, const Case& c) {
  return c.variant == kPlain || (!form.is_native() && is_reduction(form.primitive) && is_narrow(c.dtype));
}

void add_same_bits(Draw& draw) {
  add_number_cases(draw, {.dtypes = kFloats,
                          .operators = kOrdering,
                          .variants = kVariants,
                          .full_rows = 24,
                          .longest = 1500,
                          .takes = [](const Form& form) { return is_alike_everywhere(form.primitive); },
                          .allows = &can_be_asked});
}

// Now and then NaNs on two ranks, each with a payload of its own.
template <class T>
PerRank<T> inputs_with_nans(const Case& c, std::size_t count) {
  PerRank<T> inputs = ill_conditioned_inputs<T>(c.ranks, count, c.seed);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t random = mix(c.seed, 20, i);
    if (random % 16 != 0) continue;
    for (const std::uint64_t where : {random >> 8, random >> 32}) {
      const std::size_t r = where % inputs.size();
      inputs[r][i] = Encoding<T>::nan(static_cast<int>(r));
    }
  }
  return inputs;
}

// What all ranks have after a broadcast or allgather of `inputs`.
template <class T>
std::vector<T> moved(Group& group, const Case& c, const PerRank<T>& inputs, std::size_t offset) {
  const auto me = static_cast<std::size_t>(group.rank());
  const Options options{.root = c.root, .algorithm = c.algorithm};
  std::vector<std::size_t> counts;
  std::size_t total = 0;
  for (int r = 0; r < c.ranks; ++r) total += counts.emplace_back(block_count(c, r, r));
  const bool gathers = c.primitive != Collective::broadcast;
  std::vector<T> in = inputs[me], out(offset + (gathers ? total : in.size()));
  in.resize(counts[me]);
  const TensorView all(out.data() + offset, out.size() - offset, c.dtype);
  if (!gathers && group.rank() == c.root)
    std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(offset));
  const col::Call call = call_of(c, in, all, {}, counts);
  c.asynchronous ? group.start(call, options).wait() : group.run(call, options);
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(offset));
  return out;
}

Finding run_same_bits(Rank& rank, const Case& c) {
  return with_numbers<false>(c.dtype, [&](auto element) {
    using T = decltype(element);
    // Blocks of a v-form are up to twice as long as the average.
    const PerRank<T> inputs = inputs_with_nans<T>(c, is_v_form(c.primitive) ? 2 * c.count : c.count);
    const std::size_t offset = mix(c.seed, 21, static_cast<std::uint64_t>(rank.rank())) % 16;
    std::vector<T> output;
    if (is_reduction(c.primitive)) {
      Reduction call = reduction_of(c, &broken_scale);
      call.compress = c.variant == kOnlyCompressed;
      output = output_of(rank.group(), call, inputs[static_cast<std::size_t>(rank.rank())], offset);
    } else {
      output = moved(rank.group(), c, inputs, offset);
    }
    Finding finding;
    finding.digest = digest_of(std::as_bytes(std::span(output)));
    return finding;
  });
}

// ---- repeatable: The same call with the same inputs gives the same bits every time: whichever rank comes first,
// wherever the buffers are, and in a group that has just been made.

constexpr std::uint64_t kOneGroup = 0, kFreshGroup = 1;
// Making a group takes longer than all the calls in it.
constexpr std::uint64_t kGroups[] = {kOneGroup, kOneGroup, kOneGroup, kOneGroup,
                                     kOneGroup, kOneGroup, kOneGroup, kFreshGroup};
constexpr int kRuns = 4;

void add_repeatable(Draw& draw) {
  add_number_cases(draw, {.dtypes = kFloats,
                          .operators = kScaling,
                          .variants = kGroups,
                          .quick_rows = 2,
                          .full_rows = 6,
                          .longest = 1500});
}

// Makes this rank late by some microseconds, or not.
void come_late(std::uint64_t random) {
  for (std::uint64_t i = 0; i < random % 8; ++i) core::yield();
  const std::uint64_t rounds = (random >> 8) % 4 * ((random >> 16) % 10000);
  for (std::uint64_t i = 0; i < rounds; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);  // stays a loop
}

template <class T>
std::string difference_of_runs(const std::vector<T>& first, const std::vector<T>& later, int run) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (bits_of(first[i]) != bits_of(later[i]))
      return fmt::format("element {} is {} in run 1 and {} in run {}", i, show(first[i]), show(later[i]), run);
  }
  return {};
}

Finding run_repeatable(Rank& rank, const Case& c) {
  return with_numbers<false>(c.dtype, [&](auto element) {
    using T = decltype(element);
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
      if (problem.empty()) problem = difference_of_runs(first, output, run);
      held.push_back(std::move(output));
      held.emplace_back(random % 100);
    }
    return Finding::of(problem);
  });
}

// ---- rank_order: Options::deterministic: the result is ((x0 op x1) op x2) op …, to the bit, by whatever algorithm, at
// any length. An algorithm that combines in another order is refused by name, before any data moves; the group goes on.
// A backend's own collective is either refused or keeps the order.

// The built-in algorithm of that name; null for a backend's own.
const Algorithm* built_in(Primitive primitive, const std::string& algorithm) {
  return find_algorithm(*collective_of(primitive), AlgorithmSpec::parse(algorithm).name);
}

bool keeps_rank_order(Primitive primitive, const std::string& algorithm) {
  if (algorithm.empty()) return true;
  const Algorithm* const found = built_in(primitive, algorithm);
  return found != nullptr && found->order == FoldOrder::rank_order;
}

void add_rank_order(Draw& draw) {
  const auto keeps = [](const Form& form) { return keeps_rank_order(form.primitive, form.algorithm); };
  add_number_cases(draw, {.dtypes = kFloats,
                          .operators = kScaling,
                          .quick_rows = 5,
                          .full_rows = 24,
                          .shortest = 0,  // the order must not depend on the length
                          .takes = [&](const Form& form) { return is_reduction(form.primitive) && keeps(form); }});
  if (draw.ranks().empty() || draw.ranks().back() == 1) return;  // nobody refuses
  constexpr DType kOne[] = {DType::float32};
  constexpr Operator kSum[] = {Operator::sum};
  add_number_cases(draw,
                   {.dtypes = kOne, .operators = kSum, .quick_rows = 1, .full_rows = 3, .takes = [&](const Form& form) {
                      return is_reduction(form.primitive) && !keeps(form);
                    }});
}

// Empty when it is refused, in the right words.
template <class T>
std::string problem_with_refusal(Rank& rank, const Reduction& call, const std::vector<T>& input,
                                 std::optional<std::vector<T>>& output) {
  try {
    output = output_of(rank.group(), call, input);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument && error.message().find("rank order") != std::string::npos)
      return {};
    return fmt::format("{} was refused, but with: {}", call.algorithm, error.what());
  }
  return fmt::format("{} was not refused, though it does not promise rank order", call.algorithm);
}

Finding run_rank_order(Rank& rank, const Case& c) {
  return with_numbers<false>(c.dtype, [&](auto element) {
    using T = decltype(element);
    Reduction call = reduction_of(c, &broken_scale);
    call.deterministic = true;
    const std::size_t count = input_count(c);
    const PerRank<T> inputs = ill_conditioned_inputs<T>(c.ranks, count, c.seed);
    const auto& input = inputs[static_cast<std::size_t>(rank.rank())];
    std::optional<std::vector<T>> output;
    if (!keeps_rank_order(c.primitive, c.algorithm)) {
      std::string problem = problem_with_refusal(rank, call, input, output);
      if (!problem.empty() && !(output && built_in(c.primitive, c.algorithm) == nullptr))
        return Finding::fail(std::move(problem));
      call.algorithm.clear();  // the group must serve the next call
    }
    if (!output) output = output_of(rank.group(), call, input);
    return Finding::of(problem_on_rank(call, rank.rank(), c.ranks, count, *output, judge_left_fold(call, inputs)));
  });
}

}  // namespace

const Property kSameBits =
    in_group("same_bits", "all ranks get the same bits from allreduce, allgather(v) and broadcast", &add_same_bits,
             &run_same_bits, OnGpus::results, 2);
const Property kRepeatable = in_group("repeatable", "the same call gives the same bits again, whoever comes late",
                                      &add_repeatable, &run_repeatable, OnGpus::results, 2);
const Property kRankOrder =
    in_group("rank_order", "deterministic calls combine in rank order, to the bit, or are refused", &add_rank_order,
             &run_rank_order, OnGpus::results);

}  // namespace col::colcheck
