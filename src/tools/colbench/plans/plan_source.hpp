// Plans for inspection without running them: of built-in algorithms, and from users' files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "colbench/machine/model.hpp"

namespace col::colbench {

class CommandLine;

// The collective of that name. Throws UsageError, with the nearest name; also for operations without a plan (pingpong).
Collective parse_collective(const std::string& text);
// Of its built-in algorithms.
std::vector<std::string_view> names_of(Collective collective);

// The options that say of what kind the plans of a cell are: --dtype, --op, --root.
struct CellOptions {
  std::string dtype = "float32", op = "sum", root = "0";
  void define(CommandLine& line);
  // Requires: the cell's ranks are known. Throws UsageError.
  void apply(CellSpec& cell) const;
};

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
