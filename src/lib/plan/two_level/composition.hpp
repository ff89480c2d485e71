// Plans made of plans for fewer ranks, one after the other: those of a node, or one of each node.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/support.hpp"

namespace col::plan {

// The ranks that a part of a plan is for, and where its buffers are in the plan of all.
struct Place {
  std::vector<int> ranks;  // number i of the part is this rank; empty: all ranks
  Slice input = {}, output = {};
  // The results are partial: they stay in the wide type, in a wide `output`, until a later part converts them.
  bool is_partial = false;
  // All that it moves has the wide type, in its scratch too.
  bool is_wide = false;
};

class Composition {
 public:
  Slice take(Buffer buffer, std::size_t count) noexcept { return scratch_.take(buffer, count); }
  // An array that a request points to, and that lives as long as the plan.
  std::span<const std::size_t> keep(std::vector<std::size_t> counts) {
    kept_.push_back(std::make_shared<const std::vector<std::size_t>>(std::move(counts)));
    return *kept_.back();
  }
  // Pieces one after the other, as the blocks of a request.
  void keep(const Packed& pieces, std::span<const std::size_t>& counts, std::span<const std::size_t>& displacements) {
    std::vector<std::size_t> all, starts;
    for (std::size_t i = 0; i < pieces.parts(); ++i) {
      all.push_back(pieces.count(i, i + 1));
      starts.push_back(pieces.start(i));
    }
    counts = keep(std::move(all));
    displacements = keep(std::move(starts));
  }

  // Next, the part of one of `place.ranks` in the algorithm of that name.
  void add(std::string_view algorithm, const PlanRequest& request, Place place) {
    add(find_algorithm(request.collective, algorithm)->build(request), std::move(place));
  }
  void add(const Plan& plan, Place place) {
    const Slice scratch = scratch_.take(place.is_wide ? Buffer::wide : Buffer::scratch, plan.scratch);
    const Slice wide = scratch_.take(Buffer::wide, plan.wide);
    add(plan.rounds,
        [generate = plan.generate, place = std::move(place), scratch, wide](std::size_t index, Round& round) {
          Round inner;
          generate(index, inner);
          const auto placed = [&](Slice slice) {
            const Slice* const in[] = {&place.input, &place.output, &scratch, &wide};
            const Slice& base = *in[static_cast<std::size_t>(slice.buffer)];
            return Slice{base.buffer, base.offset + slice.offset, slice.count};
          };
          for (Step step : inner.steps()) {
            if (step.is_message() && !place.ranks.empty()) step.peer = place.ranks[static_cast<std::size_t>(step.peer)];
            for (Slice* slice : {&step.to, &step.left, &step.right}) *slice = placed(*slice);
            if (step.kind == Step::Kind::convert && place.is_partial)
              round.copy(step.to, step.left);
            else
              round.add(step);
          }
        });
  }
  // Next, a round of this rank alone, or rounds of its own making.
  void add_round(std::function<void(Round&)> generate) {
    add(1, [generate = std::move(generate)](std::size_t, Round& round) { generate(round); });
  }
  void add(std::size_t rounds, std::function<void(std::size_t, Round&)> generate) {
    parts_.push_back({rounds_, std::move(generate)});
    rounds_ += rounds;
  }

  Plan done() {
    const std::size_t rounds = rounds_;
    return make_plan(rounds, scratch_,
                     [parts = std::make_shared<const std::vector<Part>>(std::move(parts_)), kept = std::move(kept_)](
                         std::size_t index, Round& round) {
                       const auto after =
                           std::upper_bound(parts->begin(), parts->end(), index,
                                            [](std::size_t i, const Part& part) { return i < part.begin; });
                       const Part& part = *(after - 1);
                       part.generate(index - part.begin, round);
                     });
  }

 private:
  struct Part {
    std::size_t begin;  // its first round
    std::function<void(std::size_t, Round&)> generate;
  };

  Scratch scratch_;
  std::size_t rounds_ = 0;
  std::vector<Part> parts_;
  std::vector<std::shared_ptr<const std::vector<std::size_t>>> kept_;  // shared by the copies of the plan
};

}  // namespace col::plan
