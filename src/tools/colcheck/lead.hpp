// The lead's side: gives orders to all ranks, takes part itself, and collects their results.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colcheck/obey.hpp"
#include "colcheck/report/results.hpp"
#include "common/coordinator.hpp"

namespace col::colcheck {

// Thrown if the run cannot go on: a rank is gone or does not answer.
struct RunEnded {
  int exit_code;
  std::string why;
  // The lead's own results in the portion that was running when a rank was lost. The last case is the one in which it
  // ended.
  std::vector<CaseResult> own = {};
};

class Lead {
 public:
  Lead(Context& context, tools::Coordinator& ranks, ObeyOptions options)
      : context_(context), ranks_(ranks), options_(std::move(options)) {}

  // The GPUs of all ranks. Throws RunEnded, as all these functions do.
  std::vector<RankGpu> look();
  // What `backend` offers in addition to the built-in algorithms. Nothing, and the reason in `why`, if the first
  // `ranks` ranks cannot make a group over it.
  std::optional<Natives> probe(const std::string& backend, int ranks, std::string& why);
  // Runs cases that all have the same backend, number of ranks, and kind of devices. If a case breaks its group, the
  // rest go on in a new group. The results are in the order of `cases`.
  std::vector<CaseResult> run(std::span<const Case> cases);
  // Runs cases that need no group, distributed over the first `ranks` ranks.
  std::vector<CaseResult> share(std::span<const Case> cases, int ranks);

 private:
  // Gives the order, and returns the answers of all ranks in rank order. Throws RunEnded.
  std::vector<Answer> give(const Order& order);

  Context& context_;
  tools::Coordinator& ranks_;
  ObeyOptions options_;
  int broken_groups_ = 0;
};

}  // namespace col::colcheck
