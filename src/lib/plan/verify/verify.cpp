// The verifier: what it promises is in plan.hpp. Values are in verify/symbols.hpp, buffers in verify/memory.hpp, the
// execution in verify/machine.hpp, and what must come out of it in verify/expectation.hpp.
#include <fmt/format.h>

#include <col/plan.hpp>

#include "plan/verify/expectation.hpp"
#include "plan/verify/machine.hpp"
#include "plan/verify/symbols.hpp"

namespace col {
namespace {

// Problems that have no good plan.
void check_problem(const PlanProblem& problem) {
  const PlanProblem::Spec& spec = problem.spec();
  if (!spec.in_place) return;
  if (spec.widens && spec.wide_input)
    throw plan::symbolic::Fault{.sentence = "in place, input and output are of one type: wide_input excludes it"};
  if (spec.collective != Collective::alltoallv) return;
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
    plan::symbolic::Symbols symbols(problem.size());
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
