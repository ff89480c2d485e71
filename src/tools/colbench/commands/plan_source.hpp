// Plans for inspection without running them: of built-in algorithms, and from users' files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <col/plan.hpp>
#include <col/select.hpp>

#include "colbench/cell.hpp"

namespace col::colbench {

// The collective of that name. Throws UsageError, with the nearest name; also for operations without a plan (pingpong).
Collective parse_collective(const std::string& text);

// The problem that the plans of `cell` solve, for all ranks together: blocks of equal length, and 16-bit floats reduced
// in float32, as in a group.
PlanProblem::Spec problem_of(const CellSpec& cell, const AlgorithmSpec& algorithm = {});
// Bytes of an element of a partial result.
std::size_t wide_size_of(const CellSpec& cell);

class PlanSource {
 public:
  // "ring", "knomial:radix=8", "file:my.json". Throws UsageError, with the nearest name. If a file cannot be read or is
  // invalid, throws what PlanFile::load() throws.
  static PlanSource find(Collective collective, const std::string& text);
  // "all", or a list of names.
  static std::vector<PlanSource> list(Collective collective, const std::vector<std::string>& texts);

  const std::string& name() const { return name_; }
  const AlgorithmSpec& spec() const { return spec_; }
  const Algorithm* algorithm() const { return algorithm_; }  // null for a file
  const std::optional<PlanFile>& file() const { return file_; }
  // Why it cannot serve the problem; nothing if it can.
  std::optional<std::string> refuse(const PlanProblem& problem) const;
  // Requires: !refuse(problem). Both have to outlive the result.
  PlanOfRank plans(const PlanProblem& problem) const;

 private:
  AlgorithmSpec spec_;
  std::string name_;
  const Algorithm* algorithm_ = nullptr;
  std::optional<PlanFile> file_;
};

}  // namespace col::colbench
