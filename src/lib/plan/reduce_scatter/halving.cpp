// Recursive halving reduce-scatter: in every round, two partners share out the blocks that both are still at work on;
// each sends the half that it gives up, and adds what it gets to the half that it keeps.
//
//   4 ranks, the blocks that each one is still at work on (number of contributions in them):
//     before    rank 0: 0 2 1 3   rank 1: 0 2 1 3   rank 2: 0 2 1 3   rank 3: 0 2 1 3    (1)
//     round 0   0 <-> 1, 2 <-> 3:   0 2 | 1 3 | 0 2 | 1 3    (2)
//     round 1   0 <-> 2, 1 <-> 3:   0 | 1 | 2 | 3            (4)
//
// The nearest partners come first, so that only sums over neighbouring ranks ever meet. This is why even and odd blocks
// part in round 0: blocks are kept in the order of their owners' bits read backwards, in which every half is one run.
//
// When p is no power of two, the first pairs of ranks fold (folding.hpp): an extra gives its whole input to the rank
// before it, which acts for both, and gets its own block when that is complete.
//
// With n the bytes of all blocks together, L = log2 p and f = (p-1)/p:
// Steps: L. Bytes on the wire, per rank: fn, both the least possible; where partial results are wider, all but the
// first half in the wide type. Cost: La + fnb + fng, and a copy of n/2. Folded, with L rounded down: L+2 steps, and n
// more bytes to the ranks that have an extra.
// Wins: short and middling vectors. Limits: any p, but best at powers of two; memory for 1.5n, or 2n with an extra, and
// up to n/2 more where partial results are wider.
// Source: R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH, IJHPCA
// 19(1), 2005. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder.
#include <algorithm>
#include <utility>

#include "plan/blocks.hpp"
#include "plan/cost_terms.hpp"
#include "plan/folding.hpp"
#include "plan/support.hpp"

namespace col::plan::reduce_scatter {
namespace {

// The lowest `bits` bits of `value` in reverse order.
std::size_t mirrored(std::size_t value, int bits) {
  std::size_t mirror = 0;
  for (int i = 0; i < bits; ++i) mirror |= (value >> i & 1) << (bits - 1 - i);
  return mirror;
}

// Places [first, last). The place of a group of ranks is its number mirrored.
struct Run {
  std::size_t first = 0, last = 0;
};

// Blocks that a rank works on which acts for its group, and where they lie in memory: one run, by place.
class Halves {
 public:
  explicit Halves(const PlanRequest& request)
      : blocks_(Blocks::of_input(request)),
        folding_(request.size),
        group_(folding_.group_of(request.rank)),
        place_(mirrored(static_cast<std::size_t>(group_), folding_.steps())),
        elements_(static_cast<std::size_t>(folding_.groups()), [this](std::size_t place) {
          std::size_t count = 0;
          each_block({place, place + 1}, [&](std::size_t block, std::size_t) { count += blocks_.count(block); });
          return count;
        }) {}

  const Folding& folding() const { return folding_; }
  int steps() const { return folding_.steps(); }
  int group() const { return group_; }
  int partner(int step) const { return group_ ^ (1 << step); }
  // This rank works on kept() before step `step`, and gives up given() in it.
  Run kept(int step) const {
    const std::size_t width = std::size_t{1} << (steps() - step);
    const std::size_t first = place_ & ~(width - 1);
    return {first, first + width};
  }
  Run given(int step) const {
    const Run stays = kept(step + 1);
    const std::size_t width = stays.last - stays.first;
    return {stays.first ^ width, (stays.first ^ width) + width};
  }
  std::size_t count(Run run) const { return elements_.count(run.first, run.last); }
  // Elements between the beginnings of two runs.
  std::size_t distance(Run from, Run to) const { return elements_.count(from.first, to.first); }
  // visit(block, its offset from the beginning of the run)
  template <class Visit>
  void each_block(Run run, Visit visit) const {
    std::size_t offset = 0;
    for (std::size_t place = run.first; place < run.last; ++place) {
      const int g = static_cast<int>(mirrored(place, folding_.steps()));
      for (int rank = folding_.first_rank(g); rank < folding_.first_rank(g + 1); ++rank) {
        const auto block = static_cast<std::size_t>(rank);
        visit(block, offset);
        offset += blocks_.count(block);
      }
    }
  }

 private:
  Blocks blocks_;
  Folding folding_;
  int group_;
  std::size_t place_;
  Packed elements_;
};

// The part of a rank that acts for its group.
struct Halving {
  PlanRequest request;
  Blocks blocks;
  Halves halves;
  bool has_extra;
  Slice bare = {};          // without an extra: what is given up in step 0, in one run
  Slice raw_landing = {};   // what comes as bare input: all of the extra's, or the half of a partner without one
  Slice wide_landing = {};  // other halves
  Run summed = {};          // what there is room for in sums
  Slice sums = {};
  Slice handed = {};          // the extra's block, complete
  Packed in_rank_order = {};  // the extra's blocks as they come

  void operator()(std::size_t index, Round& round) const {
    const int before = has_extra || bare.buffer != Buffer::input ? 1 : 0;
    const int k = static_cast<int>(index);
    if (k < before) {
      if (has_extra)
        fold(round);
      else
        pack(round);
    } else if (k - before < halves.steps()) {
      exchange(k - before, round);
    } else {
      round.send(request.rank + 1, handed);
    }
  }

  Slice sum(Run run) const { return sums.part(halves.distance(summed, run), halves.count(run)); }

  void fold(Round& round) const {
    round.recv(request.rank + 1, raw_landing);
    halves.each_block(summed, [&](std::size_t block, std::size_t offset) {
      round.reduce(sums.part(offset, blocks.count(block)), blocks.slice(Buffer::input, block),
                   in_rank_order.range(raw_landing, block, block + 1));
    });
  }

  void pack(Round& round) const {
    halves.each_block(halves.given(0), [&](std::size_t block, std::size_t offset) {
      round.copy(bare.part(offset, blocks.count(block)), blocks.slice(Buffer::input, block));
    });
  }

  void exchange(int step, Round& round) const {
    const Run stays = halves.kept(step + 1);
    const int partner = halves.partner(step);
    const int peer = halves.folding().first_rank(partner);
    const bool bare_mine = step == 0 && !has_extra;
    const bool bare_theirs = step == 0 && !halves.folding().is_double(partner);
    const Slice landing = (bare_theirs ? raw_landing : wide_landing).part(0, halves.count(stays));
    round.send(peer, bare_mine ? bare : sum(halves.given(step)));
    round.recv(peer, landing);

    const Slice total = sum(stays);
    const auto add = [&](Slice to, Slice mine, Slice theirs) {
      if (partner < halves.group()) std::swap(mine, theirs);
      round.reduce(to, mine, theirs);
    };
    const bool last = step + 1 == halves.steps();
    if (!bare_mine && !last) return add(total, total, landing);
    halves.each_block(stays, [&](std::size_t block, std::size_t offset) {
      const std::size_t n = blocks.count(block);
      const bool own = block == static_cast<std::size_t>(request.rank);
      const Slice result = own ? Slice{Buffer::output, 0, n} : handed;
      const Slice here = total.part(offset, n);
      const Slice to = last && own && !request.widens ? result : here;
      add(to, bare_mine ? blocks.slice(Buffer::input, block) : here, landing.part(offset, n));
      if (last) round.convert(result, to);
    });
  }
};

Packed in_rank_order(const Blocks& blocks) {
  return Packed(blocks.parts(), [&](std::size_t block) { return blocks.count(block); });
}

// The part of an extra: `bare` is its input in one run, which may have to be made first.
Plan build_extra(const PlanRequest& request) {
  const Blocks blocks = Blocks::of_input(request);
  const Packed pieces = in_rank_order(blocks);
  const auto begin = run_of(blocks);
  Scratch scratch;
  const Slice bare =
      begin ? Slice{Buffer::input, *begin, pieces.total()} : scratch.take(raw_buffer(request), pieces.total());
  const Slice result{Buffer::output, 0, blocks.count(static_cast<std::size_t>(request.rank))};
  const std::size_t before = begin ? 0 : 1;
  return make_plan(before + 2, scratch, [=, rank = request.rank](std::size_t index, Round& round) {
    if (index < before) {
      for (std::size_t block = 0; block < blocks.parts(); ++block)
        round.copy(pieces.range(bare, block, block + 1), blocks.slice(Buffer::input, block));
    } else if (index == before) {
      round.send(rank - 1, bare);
    } else {
      round.recv(rank - 1, result);
    }
  });
}

Plan build_halving(const PlanRequest& request) {
  if (request.size == 1) return alone(request);
  Halves halves(request);
  if (halves.folding().is_extra(request.rank)) return build_extra(request);
  const bool has_extra = halves.folding().has_extra(request.rank);
  Halving halving{.request = request, .blocks = Blocks::of_input(request), .halves = halves, .has_extra = has_extra};
  const Run all = halves.kept(0);
  const Run half = halves.kept(1);
  const Run rest = halves.kept(std::min(2, halves.steps()));
  const bool half_is_raw = !halves.folding().is_double(halves.partner(0));
  const Buffer raw = raw_buffer(request);
  Scratch scratch;
  if (has_extra) {
    halving.in_rank_order = in_rank_order(halving.blocks);
    halving.handed = scratch.take(Buffer::scratch, halving.blocks.count(static_cast<std::size_t>(request.rank) + 1));
  } else if (request.size == 2) {
    halving.bare = halving.blocks.slice(Buffer::input, 1 - request.rank);
  } else {
    halving.bare = scratch.take(raw, halves.count(halves.given(0)));
  }
  halving.summed = has_extra ? all : half;
  halving.sums = scratch.take(Buffer::wide, halves.count(halving.summed));
  // Bare input and partial results never come in the same round.
  const std::size_t most_raw = has_extra ? halves.count(all) : half_is_raw ? halves.count(half) : 0;
  const std::size_t most_wide = halves.count(half_is_raw ? rest : half);
  const bool share = raw == Buffer::wide;
  halving.wide_landing = scratch.take(Buffer::wide, share ? std::max(most_raw, most_wide) : most_wide);
  halving.raw_landing = share ? halving.wide_landing : scratch.take(raw, most_raw);
  const bool packs = has_extra || halving.bare.buffer != Buffer::input;
  const int rounds = halves.steps() + (packs ? 1 : 0) + (has_extra ? 1 : 0);
  return make_plan(static_cast<std::size_t>(rounds), scratch, halving);
}

// Folded, the first groups have two blocks each: they are the last to be done with every step.
double reduce_scatter_halving(const CostTerms& t) {
  if (!t.folds()) return in_doubling_steps(t) + t.f() * t.add(t.n);
  const double block = t.n / t.p;
  const int extras = t.p - t.groups();
  double seconds = t.message(t.n) + t.add(t.n) + t.message(block);
  for (int parts = 2; parts <= t.groups(); parts *= 2) {
    const double kept = (t.groups() / parts + (extras + parts - 1) / parts) * block;
    seconds += t.message(kept) + t.add(kept);
  }
  return seconds;
}

}  // namespace

extern constinit const Algorithm halving = {
    .collective = Collective::reduce_scatter,
    .name = "halving",
    .summary = "partners share out what is left, half by half; few steps, for short vectors and powers of two",
    .order = FoldOrder::contiguous,
    .build = build_halving,
    .cost = {.text = "Lα + fnβ + fnγ; folded: (F+2)α + about 2nβ + 2nγ", .seconds = reduce_scatter_halving},
};

}  // namespace col::plan::reduce_scatter
