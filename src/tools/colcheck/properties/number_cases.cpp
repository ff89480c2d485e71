#include "colcheck/properties/number_cases.hpp"

#include <algorithm>
#include <array>
#include <random>

#include "colcheck/engine/mix.hpp"

namespace col::colcheck {
namespace {

// Elements of a vector that goes in segments of 64 bytes: some segments, the last one short, and not hundreds of them.
constexpr std::size_t kMostSegmented = 97;

template <class Value>
std::vector<Value> shuffled(std::vector<Value> all, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

struct Numbers {
  DType dtype;
  Operator op;
  std::uint64_t variant;
};

std::vector<Numbers> all_numbers(const NumberCases& wanted) {
  std::vector<Numbers> all;
  for (const DType dtype : wanted.dtypes) {
    for (const Operator op : wanted.operators) {
      for (const std::uint64_t variant : wanted.variants) {
        if (is_defined(op, dtype)) all.push_back({dtype, op, variant});
      }
    }
  }
  return all;
}

// Types that the same mistakes are made with: signed and unsigned integers, narrow floats and others.
int kind_of(DType dtype) {
  if (!is_integer(dtype)) return is_narrow(dtype) ? 0 : 1;
  return dtype == DType::int8 || dtype == DType::int32 || dtype == DType::int64 ? 2 : 3;
}

bool is_alike(const Form& form, const Numbers& a, const Numbers& b) {
  return (a.op == b.op || !is_reduction(form.primitive)) && kind_of(a.dtype) == kind_of(b.dtype);
}

class Dealer {
 public:
  Dealer(Draw& draw, const NumberCases& wanted)
      : wanted_(wanted),
        draw_(draw),
        seed_(draw.selection().seed),
        numbers_(shuffled(all_numbers(wanted), mix(seed_))),
        rows_(draw.quick() ? wanted.quick_rows
                           : wanted.full_rows * static_cast<int>(draw.selection().backends.size())) {}

  void deal() {
    std::uint64_t dealt = 0;
    for (const Form& form : draw_.forms()) {
      if (wanted_.takes ? !wanted_.takes(form) : !is_reduction(form.primitive)) continue;
      const std::vector<int> ranks = shuffled(draw_.served(form), mix(seed_, ++dealt));
      if (ranks.empty()) continue;
      std::size_t turn = 0;
      for (const Numbers& chosen : numbers_for(form)) add(form, in_turn(ranks, turn++), chosen);
    }
  }

 private:
  bool allowed(const Form& form, const Numbers& numbers) const {
    if (is_reduction(form.primitive) && (!takes(form, numbers.op) || !takes(form, numbers.dtype))) return false;
    if (!wanted_.allows) return true;
    Case c;
    c.primitive = form.primitive;
    c.dtype = numbers.dtype;
    c.op = numbers.op;
    c.variant = numbers.variant;
    return wanted_.allows(form, c);
  }

  std::vector<Numbers> numbers_for(const Form& form) {
    std::vector<Numbers> chosen;
    for (std::size_t tries = 0; chosen.size() < static_cast<std::size_t>(rows_); ++tries) {
      if (chosen.empty() && tries > numbers_.size() * 2) break;  // nothing is allowed
      const Numbers& next = in_turn(numbers_, drawn_++);
      if (allowed(form, next)) chosen.push_back(next);
    }
    if (form.is_native()) complete(form, chosen);
    return chosen;
  }

  // Adds what `chosen` does not have yet.
  void complete(const Form& form, std::vector<Numbers>& chosen) const {
    const auto known = [&chosen](auto same) { return std::any_of(chosen.begin(), chosen.end(), same); };
    for (const Numbers& numbers : all_numbers(wanted_)) {
      if (!allowed(form, numbers)) continue;
      if (known([&](const Numbers& other) { return is_alike(form, numbers, other); }) &&
          known([&](const Numbers& other) { return other.dtype == numbers.dtype; }) &&
          known([&](const Numbers& other) { return other.variant == numbers.variant; }))
        continue;
      chosen.push_back(numbers);
    }
  }

  void add(const Form& form, int ranks, const Numbers& numbers) {
    Case& c = draw_.add_on(form, ranks);
    c.dtype = numbers.dtype;
    c.op = is_reduction(form.primitive) ? numbers.op : Operator::sum;
    c.variant = numbers.variant;
    if (c.count < wanted_.shortest) c.count += wanted_.shortest;
    if (wanted_.longest > 0 && draw_.quick()) c.count = std::min(c.count, wanted_.longest);
    if (has_short_segments(c)) c.count = std::min(c.count, kMostSegmented);
    // Input and output can be the same memory.
    const bool whole = is_reduction(form.primitive) && row_of(*collective_of(form.primitive)).out == Extent::vector;
    c.in_place = whole && mix(c.seed, 11) % 3 == 0;
    c.asynchronous = form.may_be_asynchronous() && mix(c.seed, 12) % 3 == 0;
    if (wanted_.adapt) wanted_.adapt(c);
  }

  const NumberCases& wanted_;
  Draw& draw_;
  const std::uint64_t seed_;
  const std::vector<Numbers> numbers_;
  std::size_t drawn_ = 0;
  const int rows_;
};

}  // namespace

bool has_short_segments(const Case& c) {
  return c.algorithm.find(":segment=") != std::string::npos;
}

void add_number_cases(Draw& draw, const NumberCases& wanted) {
  Dealer(draw, wanted).deal();
}

Reduction reduction_of(const Case& c, double (*scale)(int rank)) {
  Reduction call;
  call.collective = *collective_of(c.primitive);
  call.algorithm = c.algorithm;
  call.root = c.root;
  call.in_place = c.in_place;
  call.asynchronous = c.asynchronous;
  if (c.op != Operator::premul_sum) {
    call.ops = {static_cast<ReduceOp>(c.op)};
    return call;
  }
  call.ops.clear();
  for (int rank = 0; rank < c.ranks; ++rank) call.ops.push_back(Op::premul_sum(scale(rank)));
  return call;
}

bool takes_blocks(Primitive primitive) {
  const auto collective = primitive.collective();
  return collective && row_of(*collective).reduces() && row_of(*collective).in == Extent::blocks;
}

std::size_t input_count(const Case& c) {
  return takes_blocks(c.primitive) ? c.count * static_cast<std::size_t>(c.ranks) : c.count;
}

double broken_scale(int rank) {
  return (rank % 2 == 0 ? 1 : -1) * (0.3 + 0.7 * (rank % 8));
}

double whole_scale(int rank) {
  constexpr std::array<double, 6> kScales = {3, -7, 0, 1e9 + 7, -1, 0x1p40};
  return kScales[static_cast<std::size_t>(rank) % kScales.size()];
}

}  // namespace col::colcheck
