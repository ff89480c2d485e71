// A result that all ranks get has the same bits on all of them. This also holds where rounding depends on the order of
// the operations, where NaNs with different payloads meet, and wherever in memory each rank has its buffers. The
// digests are compared outside of the library.
#include <span>

#include "colcheck/engine/digest.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/engine/special_inputs.hpp"
#include "colcheck/properties/list.hpp"
#include "colcheck/properties/number_cases.hpp"

namespace col::colcheck {
namespace {

constexpr Operator kOperators[] = {Operator::sum, Operator::product, Operator::avg,
                                   Operator::min, Operator::max,     Operator::premul_sum};
constexpr std::uint64_t kPlain = 0, kCompressed = 1;
constexpr std::uint64_t kVariants[] = {kPlain, kCompressed};

bool is_alike_everywhere(Primitive primitive) {
  return primitive == Primitive::allreduce || primitive == Primitive::allgather || primitive == Primitive::allgatherv ||
         primitive == Primitive::broadcast;
}

bool can_be_asked(const Form& form, const Case& c) {
  return c.variant == kPlain || (!form.is_native() && is_reduction(form.primitive) && is_half(c.dtype));
}

void cases(const Selection& selection, std::vector<Case>& all) {
  add_number_cases(selection,
                   {.property = "same_bits",
                    .dtypes = kFloats,
                    .operators = kOperators,
                    .variants = kVariants,
                    .full_rows = 24,
                    .fewest_ranks = 2,
                    .longest = 1500,
                    .takes = [](const Form& form) { return is_alike_everywhere(form.primitive); },
                    .allows = &can_be_asked},
                   all);
}

// Now and then NaNs on two ranks, each with a payload of its own.
template <class T>
PerRank<T> inputs_of(const Case& c, std::size_t count) {
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
  const bool async = c.asynchronous;
  if (c.primitive == Collective::allgather) {
    async ? group.iallgather(in, all, options).wait() : group.allgather(in, all, options);
  } else if (c.primitive == Collective::allgatherv) {
    async ? group.iallgatherv(in, all, counts, options).wait() : group.allgatherv(in, all, counts, options);
  } else {
    if (group.rank() == c.root) std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(offset));
    async ? group.ibroadcast(all, options).wait() : group.broadcast(all, options);
  }
  out.erase(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(offset));
  return out;
}

template <class T>
Finding check(Rank& rank, const Case& c) {
  // Blocks of a v-form are up to twice as long as the average.
  const PerRank<T> inputs = inputs_of<T>(c, is_v_form(c.primitive) ? 2 * c.count : c.count);
  const std::size_t offset = mix(c.seed, 21, static_cast<std::uint64_t>(rank.rank())) % 16;
  std::vector<T> output;
  if (is_reduction(c.primitive)) {
    Reduction call = reduction_of(c, &broken_scale);
    call.compress = c.variant == kCompressed;
    output = output_of(rank.group(), call, inputs[static_cast<std::size_t>(rank.rank())], offset);
  } else {
    output = moved(rank.group(), c, inputs, offset);
  }
  Finding finding;
  finding.digest = digest_of(std::as_bytes(std::span(output)));
  return finding;
}

Finding run(Rank& rank, const Case& c) {
  return with_float(c.dtype, [&](auto element) { return check<decltype(element)>(rank, c); });
}

}  // namespace

const Property kSameBits{"same_bits",
                         "all ranks get the same bits from allreduce, allgather(v) and broadcast",
                         Property::Kind::group,
                         &cases,
                         &run,
                         OnGpus::results};

}  // namespace col::colcheck
