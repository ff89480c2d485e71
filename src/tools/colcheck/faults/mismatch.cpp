// Calls that differ on one rank: of one call, and in a random program.
#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/rows.hpp"

namespace col::colcheck {
namespace {

// A number from 0 to `values` - 1.
std::uint64_t drawn(const Case& c, std::uint64_t values) {
  return mix(c.seed, 3) % values;
}

}  // namespace

void change_primitive(Case& c) {
  struct Odd {
    Primitive call, instead;
  };
  constexpr std::array<Odd, 7> kInstead = {{{Primitive::allreduce, Primitive::reduce},
                                            {Primitive::broadcast, Primitive::scatter},
                                            {Primitive::allgather, Primitive::alltoall},
                                            {Primitive::gather, Primitive::allgather},
                                            {Primitive::alltoall, Primitive::reduce_scatter},
                                            {Primitive::exscan, Primitive::scan},
                                            {Primitive::reduce, Primitive::reduce}}};
  const auto* const found = std::ranges::find(kInstead, c.primitive, &Odd::call);
  if (c.primitive == Primitive::gather) c.root = 0;
  if (found == kInstead.end()) {
    c.primitive = Primitive::allreduce;
    c.count = 1;
  } else if (found->instead == c.primitive) {
    c.asynchronous = !c.asynchronous;
  } else {
    c.primitive = found->instead;
  }
}

// One more, one less, twice as many (as 1 x 2560 against 2 x 2560), far more than fits any buffer, none.
void change_count(Case& c) {
  const std::size_t counts[] = {c.count + 1, c.count - 1, 2 * c.count, 100'000, 0};
  c.count = counts[drawn(c, 5)];
}

// Of the same size, a larger, a smaller one.
void change_dtype(Case& c) {
  constexpr DType kTypes[] = {DType::float32, DType::float64, DType::int8, DType::float16};
  c.dtype = kTypes[drawn(c, 4)];
}

void change_root(Case& c) {
  c.root = (c.root + 1 + static_cast<int>(drawn(c, static_cast<std::uint64_t>(c.ranks - 1)))) % c.ranks;
}

void change_operator(Case& c) {
  constexpr Operator kOperators[] = {Operator::product, Operator::min, Operator::avg, Operator::bxor, Operator::user};
  c.op = kOperators[drawn(c, 5)];
}

// All ranks wait in the next call, which is the same on all of them.
void change_something(Case& c) {
  if (is_rooted(c.primitive) && drawn(c, 2) == 0)
    c.root = (c.root + 1) % c.ranks;
  else if (c.primitive == Primitive::barrier)
    c.primitive = Primitive::allreduce;
  else
    c.count = c.count + 1;
}

// ---- Programs

namespace {

// The rest of a call, which the changes above do not make.
constexpr DType kTypes[] = {DType::int32, DType::int64, DType::uint32};
constexpr Operator kOps[] = {Operator::sum, Operator::max};
// Short ones, one that is longer than what transports send at once, and one that fits no buffer.
constexpr std::size_t kCounts[] = {40, 41, 42, 4'000, 60'000};

class Differing {
 public:
  explicit Differing(const Case& c)
      : like_(c),
        mode_(static_cast<CallMode>(c.variant % kModes)),
        change_(static_cast<Change>(c.variant / kModes % kChanges)),
        random_(mix(c.seed, 4)) {}

  std::vector<Case> program() {
    std::vector<Case> steps;
    for (std::size_t length = 5 + below(11); steps.size() < length;) steps.push_back(step());
    place_ = below(steps.size() - 1);  // there is one after it
    while (!can_differ(steps[place_])) steps[place_] = step();
    while (steps[place_].primitive == steps[place_ + 1].primitive) steps[place_ + 1] = step();
    if (change_ == Change::algorithm) steps[place_].algorithm = candidates(steps[place_], like_.ranks)[0]->name;
    return steps;
  }

  void differ(std::vector<Case>& steps) {
    // In the order of Change.
    constexpr std::array kOfOneCall = {&change_primitive, &change_count, &change_dtype, &change_root, &change_operator};
    const auto place = steps.begin() + static_cast<std::ptrdiff_t>(place_);
    switch (change_) {
      default:
        return kOfOneCall[static_cast<std::size_t>(change_)](*place);
      case Change::order:
        return std::swap(*place, *(place + 1));
      case Change::skipped:
        steps.erase(place);
        return;
      case Change::extra:
        steps.insert(place, Case(*place));
        return;
      case Change::algorithm:
        place->algorithm = candidates(*place, like_.ranks)[1]->name;
        return;
      case Change::counts:  // are drawn by the seed
        const Case known = *place;
        while (block_count(*place, 0, 0) == block_count(known, 0, 0) ||
               block_count(*place, 1, 1) == block_count(known, 1, 1))
          place->seed = random_();
        return;
    }
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  Case step() {
    Case c = like_;
    c.seed = random_();
    c.primitive = Primitive(below(Primitive::collectives()));
    c.op = kOps[below(std::size(kOps))];
    if (c.primitive != Primitive::barrier) {
      c.dtype = kTypes[below(std::size(kTypes))];
      c.count = kCounts[below(std::size(kCounts))];
    }
    if (is_rooted(c.primitive)) c.root = static_cast<int>(below(static_cast<std::uint64_t>(c.ranks)));
    c.asynchronous =
        has_i_form(c.primitive) && (mode_ == CallMode::asynchronous || (mode_ == CallMode::mixed && below(2) == 0));
    return c;
  }

  // True if that kind of change is possible there.
  bool can_differ(const Case& c) const {
    if (change_ == Change::count) return c.primitive != Primitive::barrier && !is_v_form(c.primitive);
    if (change_ == Change::dtype) return c.primitive != Primitive::barrier;
    if (change_ == Change::root) return is_rooted(c.primitive);
    if (change_ == Change::op) return is_reduction(c.primitive);
    if (change_ == Change::algorithm) return candidates(c, like_.ranks).size() > 1;
    if (change_ == Change::counts) return is_v_form(c.primitive);
    return true;
  }

  const Case like_;
  const CallMode mode_;
  const Change change_;
  std::mt19937_64 random_;
  std::size_t place_ = 0;
};

}  // namespace

std::vector<Case> program_of(const Case& c, bool odd) {
  Differing program(c);
  std::vector<Case> steps = program.program();
  if (odd) program.differ(steps);
  return steps;
}

}  // namespace col::colcheck
