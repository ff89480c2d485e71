// The verifier: what it promises is in plan.hpp. Values are in verify/symbols.hpp, buffers in verify/memory.hpp, the
// execution in verify/machine.hpp, and what must come out of it here.
#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <col/plan.hpp>

#include "plan/blocks.hpp"
#include "plan/verify/machine.hpp"
#include "plan/verify/symbols.hpp"

namespace col::plan::symbolic {
namespace {

class ResultCheck {
 public:
  ResultCheck(const PlanProblem& problem, const Symbols& symbols, const Machine& machine)
      : problem_(problem), symbols_(symbols), machine_(machine) {}

  FoldOrder order() const noexcept { return order_; }

  // The rank's output is the reduction of contributions [first, last), from element `index` of them.
  void reduced(int rank, int first, int last, std::size_t index) {
    const Slice output = output_of(rank);
    if (output.empty()) return;
    machine_.memory(rank).read(output, pieces_);
    std::size_t offset = 0;
    for (const Piece& piece : pieces_) {
      const Slice slice = output.part(offset, piece.count);
      check_set(rank, slice, piece);
      if (!symbols_.holds_once(piece.node, first, last)) fail(rank, slice, symbols_.complaint(piece.node, first, last));
      if (piece.index != index + offset)
        fail(rank, slice,
             fmt::format("holds the reduction of element {} and not of element {}", piece.index, index + offset));
      if (!symbols_.is_finished(piece.node)) fail(rank, slice, "the result is complete but was not converted");
      if (!problem_.spec().contributions.empty() && !symbols_.is_tree(piece.node))
        fail(rank, slice, "the contributions are combined in another order than the tree's");
      order_ = std::min(order_, symbols_.order(piece.node));
      offset += piece.count;
    }
  }

  // `slice` of the rank's output is what `source` put in, from element `index` of it.
  void moved(int rank, const Slice& slice, int source, std::size_t index) {
    if (slice.empty()) return;
    machine_.memory(rank).read(slice, pieces_);
    std::size_t offset = 0;
    for (const Piece& piece : pieces_) {
      const Slice part = slice.part(offset, piece.count);
      check_set(rank, part, piece);
      if (piece.node != symbols_.leaf(source) || piece.index != index + offset)
        fail(rank, part,
             fmt::format("holds {} from element {} and not rank {}'s data from element {}",
                         symbols_.describe(piece.node), piece.index, source, index + offset));
      offset += piece.count;
    }
  }

  // All ranks combined in one order: theirs are the same bits.
  void equal_on_all_ranks() {
    const Slice output = output_of(0);
    if (output.empty()) return;
    std::vector<Piece> first;
    machine_.memory(0).read(output, first);
    for (int rank = 1; rank < problem_.size(); ++rank) {
      machine_.memory(rank).read(output, pieces_);
      // Neighbouring pieces differ, so equal contents are equal pieces.
      std::size_t offset = 0;
      for (std::size_t i = 0; i < pieces_.size(); ++i) {
        const Piece& piece = pieces_[i];
        if (piece.node != first[i].node)
          fail(rank, output.part(offset, piece.count),
               "the contributions are combined in another order than on rank 0");
        if (piece.count != first[i].count)
          fail(rank, output.part(offset + std::min(piece.count, first[i].count), 1),
               "the contributions are combined in another order than on rank 0");
        offset += piece.count;
      }
    }
  }

  // Every rank knows of every other that it has entered.
  void all_entered(int rank) const {
    for (int other = 0; other < problem_.size(); ++other) {
      if (machine_.entered(rank).contains(other)) continue;
      throw Fault{rank, machine_.rounds(rank),
                  fmt::format("after the last round, rank {}: leaves the barrier and cannot know that rank {} has "
                              "entered",
                              rank, other)};
    }
  }

  Slice output_of(int rank) const { return {Buffer::output, 0, machine_.memory(rank).count(Buffer::output)}; }

 private:
  void check_set(int rank, const Slice& slice, const Piece& piece) const {
    if (piece.node == kUnset) fail(rank, slice, "was never written");
  }
  [[noreturn]] void fail(int rank, const Slice& slice, const std::string& what) const {
    throw Fault{rank, machine_.rounds(rank),
                fmt::format("after the last round, rank {}, {}: {}", rank, describe(slice), what)};
  }

  const PlanProblem& problem_;
  const Symbols& symbols_;
  const Machine& machine_;
  FoldOrder order_ = FoldOrder::rank_order;
  std::vector<Piece> pieces_;
};

int contributions_of(const PlanProblem& problem) {
  const std::vector<std::size_t>& listed = problem.spec().contributions;
  return listed.empty() ? problem.size() : static_cast<int>(std::reduce(listed.begin(), listed.end()));
}

// Compares what the buffers hold when all plans have ended. Throws Fault if an output does not hold what the collective
// promises. Returns the strongest order in which all reduced elements were combined.
FoldOrder check_results(const PlanProblem& problem, const Symbols& symbols, const Machine& machine) {
  ResultCheck check(problem, symbols, machine);
  const int size = problem.size();
  const int root = problem.spec().root;
  const CollectiveRow& row = row_of(problem.spec().collective);
  for (int rank = 0; rank < size; ++rank) {
    const PlanRequest request = problem.request(rank);
    const auto own = static_cast<std::size_t>(rank);
    const auto place = [&](int of) {  // of this rank's block in the input of that one
      return row.in == col::Extent::blocks ? Blocks::of_input(problem.request(of)).offset(own) : 0;
    };
    if (row.reduces()) {
      const int end = row.folds == Folds::all          ? contributions_of(problem)
                      : row.folds == Folds::up_to_rank ? rank + 1
                                                       : rank;
      if (end > 0) check.reduced(rank, 0, end, place(rank));  // on the root alone, there may be no output
    } else if (row.out == col::Extent::blocks) {
      for (int source = 0; source < size && row.has_output(rank == root); ++source)
        check.moved(rank, Blocks::of_output(request).slice(Buffer::output, source), source, place(source));
    } else if (row.rooted) {
      check.moved(rank, check.output_of(rank), root, place(root));
    } else {
      check.all_entered(rank);
    }
  }
  if (row.folds == Folds::all && row.out == col::Extent::vector && !row.out_on_root) check.equal_on_all_ranks();
  return check.order();
}

}  // namespace

}  // namespace col::plan::symbolic

namespace col {
namespace {

// Problems that have no good plan.
void check_problem(const PlanProblem& problem) {
  const PlanProblem::Spec& spec = problem.spec();
  if (!spec.in_place) return;
  if (spec.widens && spec.wide_input)
    throw plan::symbolic::Fault{.sentence = "in place, input and output are of one type: wide_input excludes it"};
  if (row_of(spec.collective).counts != BlockCounts::pairs) return;
  const auto size = static_cast<std::size_t>(spec.size);
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const std::size_t there = spec.counts[a * size + b];
      const std::size_t back = spec.counts[b * size + a];
      if (there != back)
        throw plan::symbolic::Fault{
            .rank = static_cast<int>(a),
            .sentence = fmt::format("in place, a rank receives as much as it sends: rank {} sends {} elements to rank "
                                    "{}, which sends {}",
                                    a, there, b, back)};
    }
  }
}

}  // namespace

Verdict verify(const PlanProblem& problem, const PlanOfRank& plans) {
  Verdict verdict;
  try {
    check_problem(problem);
    plan::symbolic::Symbols symbols(plan::symbolic::contributions_of(problem), problem.spec().contributions.empty());
    plan::symbolic::Machine machine(problem, plans, symbols, verdict);
    machine.run();
    verdict.order = plan::symbolic::check_results(problem, symbols, machine);
  } catch (const plan::symbolic::Fault& fault) {
    verdict.good = false;
    verdict.problem = fault.sentence;
    verdict.rank = fault.rank;
    verdict.round = fault.round;
  }
  return verdict;
}

}  // namespace col
