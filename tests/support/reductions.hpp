// Calls of every reduction, by every algorithm, with every operator; and all ranks that make them. What they are and
// what they must give is in colcheck/engine.
#pragma once

#include <string>
#include <vector>

#include <col/plan.hpp>

#include "colcheck/engine/judge.hpp"
#include "colcheck/engine/reduction.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace col::test {

using colcheck::PerRank;
using colcheck::Reduction;

// Makes the calls one after the other in a group of inputs.size() ranks. Returns the outputs, [call][rank]; throws what
// went wrong.
template <class T>
std::vector<PerRank<T>> run_all(const std::string& backend, const std::vector<Reduction>& calls,
                                const PerRank<T>& inputs) {
  const int size = static_cast<int>(inputs.size());
  std::vector<PerRank<T>> outputs(calls.size(), PerRank<T>(inputs.size()));
  const auto outcomes = run_threads(size, [&](int rank, Context& context) {
    Group group = context.init_group({.name = "g", .rank = rank, .world_size = size, .backend_name = backend});
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < calls.size(); ++i) outputs[i][r] = output_of(group, calls[i], inputs[r]);
    group.barrier();
  });
  expect(all_good(outcomes), show(outcomes));
  return outputs;
}

// What the results of calls keep.
enum class Promise {
  exact,  // they are those of the fold in rank order, whatever the order
  any,    // they are what <col/group.hpp> promises
};

// Makes the calls, and checks what comes out: the same on all ranks, and as promised.
template <class T>
void check_results(const std::string& backend, const std::vector<Reduction>& calls, const PerRank<T>& inputs,
                   Promise promise) {
  INFO(backend << ", " << inputs.size() << " ranks");
  const auto outputs = run_all<T>(backend, calls, inputs);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CHECK(differs_between_ranks(calls[i], outputs[i]) == "");
    CHECK((promise == Promise::exact ? differs_from_left_fold(calls[i], inputs, outputs[i])
                                     : differs_from_promise(calls[i], inputs, outputs[i])) == "");
  }
}

// The same calls with each of the operators. An operator is a list: by rank, or one for all.
inline std::vector<Reduction> with_ops(const std::vector<Reduction>& calls, const std::vector<std::vector<Op>>& ops) {
  std::vector<Reduction> all;
  for (const auto& op : ops) {
    for (Reduction call : calls) {
      call.ops = op;
      all.push_back(call);
    }
  }
  return all;
}

// The calls, and once more, in place, those that can be.
inline std::vector<Reduction> and_in_place(std::vector<Reduction> calls) {
  std::vector<Reduction> placed = calls;
  std::erase_if(placed, [](const Reduction& call) {
    return call.collective == Collective::reduce_scatter || call.collective == Collective::reduce_scatterv;
  });
  for (Reduction& call : placed) call.in_place = true;
  calls.insert(calls.end(), placed.begin(), placed.end());
  return calls;
}

// A scale for each rank.
template <class Scale>
std::vector<Op> scales(int size, Scale scale) {
  std::vector<Op> ops;
  for (int r = 0; r < size; ++r) ops.push_back(Op::premul_sum(scale(r)));
  return ops;
}

inline const std::vector<Collective>& reductions() {
  static const std::vector<Collective> kAll = {Collective::allreduce,      Collective::reduce,
                                               Collective::scan,           Collective::exscan,
                                               Collective::reduce_scatter, Collective::reduce_scatterv};
  return kAll;
}

// A call of every built-in algorithm that serves `size` ranks; those that cut their vectors into segments also with
// short ones, the rooted ones also with the last rank as root.
inline std::vector<Reduction> every_algorithm(int size) {
  std::vector<Reduction> calls;
  for (const Algorithm& algorithm : algorithms()) {
    if (!row_of(algorithm.collective).reduces()) continue;
    PlanProblem::Spec spec{.collective = algorithm.collective, .size = size, .count = 1};
    if (algorithm.collective == Collective::reduce_scatterv) spec.counts.assign(static_cast<std::size_t>(size), 1);
    const PlanProblem problem(spec);
    if (algorithm.refuse(problem.request(0))) continue;
    Reduction call;
    call.collective = algorithm.collective;
    call.algorithm = algorithm.name;
    call.order = algorithm.order;
    calls.push_back(call);
    if (algorithm.collective == Collective::reduce) {
      call.root = size - 1;
      calls.push_back(call);
    }
    if (algorithm.parameters.find("segment") != std::string_view::npos) {
      call.algorithm += ":segment=40";
      calls.push_back(call);
    }
  }
  return calls;
}

// Every reduction by the algorithm that is chosen for it.
inline std::vector<Reduction> every_default(int size, bool deterministic = false) {
  std::vector<Reduction> calls;
  for (const Collective collective : reductions()) {
    Reduction call;
    call.collective = collective;
    call.order = deterministic ? FoldOrder::rank_order : FoldOrder::any;
    call.root = size - 1;
    call.deterministic = deterministic;
    calls.push_back(call);
  }
  return calls;
}

}  // namespace col::test
