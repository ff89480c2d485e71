// A barrier separates: no rank leaves it before the last one has entered. By the one monotonic clock that the ranks of
// a host share, read just before and just after.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "colcheck/engine/draw.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/properties/list.hpp"
#include "core/clock/clock.hpp"

namespace col::colcheck {
namespace {

constexpr int kBarrierRounds = 6;
constexpr std::size_t kQuickRanks = 3;  // numbers of ranks that a form comes with in a quick run
// One rank, another one each round, enters so much later; the others up to a tenth of that.
constexpr std::int64_t kLateNs = 150'000;

void add_barrier(Draw& draw) {
  for (const std::string& backend : draw.selection().backends) {
    for (const Form& form : draw.forms_of(Primitive::barrier)) {
      if (form.is_native() && form.backend != backend) continue;
      std::vector<int> served = draw.ranks();
      std::erase_if(served, [&](int n) { return !serves(form, n); });
      const std::size_t wanted = draw.quick() ? std::min(kQuickRanks, served.size()) : served.size();
      for (std::size_t i = 0, first = draw.number(); i < wanted; ++i) {
        for (const bool asynchronous : {false, true}) {
          if (asynchronous && !form.may_be_asynchronous()) continue;
          Case& c = draw.add(backend, form.primitive, 0, in_turn(served, first + i));
          c.algorithm = form.algorithm;
          c.asynchronous = asynchronous;
        }
      }
    }
  }
}

std::int64_t now() {
  return static_cast<std::int64_t>(core::clock_ns());
}

void spin(std::int64_t nanoseconds) {
  const std::int64_t end = now() + nanoseconds;
  while (now() < end) {
  }
}

struct Passage {
  std::int64_t entered = 0, left = 0;
};

Passage pass(Group& group, const Case& c) {
  Passage passage{now(), 0};
  if (c.asynchronous)
    group.ibarrier({.algorithm = c.algorithm}).wait();
  else
    group.barrier({.algorithm = c.algorithm});
  passage.left = now();
  return passage;
}

Finding run_barrier(Rank& rank, const Case& c) {
  const auto me = static_cast<std::uint64_t>(rank.rank()), n = static_cast<std::uint64_t>(rank.size());
  std::vector<Passage> own;
  for (std::uint64_t round = 0; round < kBarrierRounds; ++round) {
    const std::uint64_t random = mix(c.seed, me, round);
    const bool is_late = (mix(c.seed) + round) % n == me;
    spin(is_late ? kLateNs : static_cast<std::int64_t>(random % (kLateNs / 10)));
    own.push_back(pass(rank.group(), c));
  }
  const std::vector<std::vector<Passage>> ranks = rank.group().allgather_object(own);
  for (std::size_t round = 0; round < kBarrierRounds; ++round) {
    std::size_t last = 0, first = 0;
    for (std::size_t r = 1; r < ranks.size(); ++r) {
      if (ranks[r][round].entered > ranks[last][round].entered) last = r;
      if (ranks[r][round].left < ranks[first][round].left) first = r;
    }
    const std::int64_t early = ranks[last][round].entered - ranks[first][round].left;
    if (early > 0)
      return Finding::fail(
          fmt::format("in round {}, rank {} left {} ns before rank {} had entered", round, first, early, last));
  }
  return Finding::pass();
}

}  // namespace

const Property kBarrier =
    in_group("barrier", "no rank leaves a barrier before the last one has entered it", &add_barrier, &run_barrier);

}  // namespace col::colcheck
