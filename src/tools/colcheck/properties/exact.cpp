// Values whose every partial sum is exact: whatever the order of the reduction, one result is right, to the bit. Looks
// at every byte of input and output, and beside them.
//
// Every pair of circumstances occurs in some case: a primitive by one of its algorithms, a number of ranks, a backend,
// a type, an operator, a count, a root, in place or not, blocking or not.
#include <array>
#include <random>

#include "colcheck/engine/covering.hpp"
#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"

namespace col::colcheck {
namespace {

// The last value of a parameter that has a "none".
constexpr int kNoDType = kDTypeCount, kNoOperator = kOperatorCount, kNoCount = kCountClasses;

class Circumstances {
 public:
  explicit Circumstances(const Selection& selection)
      : selection_(selection), forms_(forms_of(selection)), no_root_(selection.ranks.back()) {}

  std::vector<Row> rows() const {
    if (forms_.empty() || selection_.backends.empty()) return {};
    const auto count = [](const auto& list) { return static_cast<int>(list.size()); };
    const Parameters parameters{{count(forms_), count(selection_.ranks), count(selection_.backends), kNoDType + 1,
                                 kNoOperator + 1, kNoCount + 1, no_root_ + 1, 2, 2},
                                [this](Choice a, Choice b) { return compatible(a, b); }};
    std::mt19937_64 random(selection_.seed);
    return cover(parameters, random);
  }

  Case case_of(const Row& row, std::size_t number, std::uint64_t seed) const {
    const Form& form = forms_[static_cast<std::size_t>(row[kForm])];
    Case c;
    c.seed = seed;
    c.backend = selection_.backends[static_cast<std::size_t>(row[kBackend])];
    c.ranks = selection_.ranks[static_cast<std::size_t>(row[kRanks])];
    c.primitive = form.primitive;
    c.algorithm = form.algorithm;
    if (row[kDType] != kNoDType) c.dtype = static_cast<DType>(row[kDType]);
    if (row[kOperator] != kNoOperator) c.op = static_cast<Operator>(row[kOperator]);
    if (row[kCount] != kNoCount) c.count = count_of(row[kCount], c.ranks, seed);
    if (row[kRoot] != no_root_) c.root = row[kRoot];
    c.in_place = row[kPlace] == 1;
    c.asynchronous = row[kWay] == 1;
    c.tag = collective_of(c.primitive) ? 0 : tag_of(c.primitive, number);
    return c;
  }

 private:
  // The parameters of a row, in this order.
  enum Parameter : std::size_t { kForm, kRanks, kBackend, kDType, kOperator, kCount, kRoot, kPlace, kWay };

  bool form_allows(const Form& form, Choice other) const {
    const bool moves = form.primitive != Primitive::barrier;
    switch (other.parameter) {
      case kRanks:
        return serves(form, selection_.ranks[static_cast<std::size_t>(other.value)]);
      case kBackend:
        return !form.is_native() || form.backend == selection_.backends[static_cast<std::size_t>(other.value)];
      case kDType:
        return moves == (other.value != kNoDType) && (!moves || takes(form, static_cast<DType>(other.value)));
      case kOperator:
        return is_reduction(form.primitive) == (other.value != kNoOperator) &&
               takes(form, static_cast<Operator>(other.value));
      case kCount:
        return moves == (other.value != kNoCount);
      case kRoot:
        return is_rooted(form.primitive) == (other.value != no_root_);
      case kPlace:
        return other.value == 0 || has_in_place(form.primitive);
      case kWay:
        return other.value == 0 || form.may_be_asynchronous();
      default:
        return true;
    }
  }

  bool compatible(Choice a, Choice b) const {
    if (a.parameter == kForm) return form_allows(forms_[static_cast<std::size_t>(a.value)], b);
    if (a.parameter == kRanks && b.parameter == kRoot)
      return b.value == no_root_ || b.value < selection_.ranks[static_cast<std::size_t>(a.value)];
    if (a.parameter == kDType && b.parameter == kOperator && a.value != kNoDType && b.value != kNoOperator)
      return is_defined(static_cast<Operator>(b.value), static_cast<DType>(a.value));
    return true;
  }

  const Selection& selection_;
  std::vector<Form> forms_;
  int no_root_;
};

void add_exact(Draw& draw) {
  const Circumstances all(draw.selection());
  for (std::size_t repeat = 0, number = 0; repeat < (draw.quick() ? 1 : 4); ++repeat) {
    for (const Row& row : all.rows()) {
      draw.add(all.case_of(row, number, mix(draw.selection().seed, number)));
      ++number;
    }
  }
}

}  // namespace

const Property kExact =
    in_group("exact", "every byte of every output is right, and no other byte changes, where sums are exact",
             &add_exact, &run_whole_case, OnGpus::buffers);

}  // namespace col::colcheck
