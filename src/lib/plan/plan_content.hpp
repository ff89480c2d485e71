// The content of a plan file: steps in the file's unit, elements or chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/plan.hpp>

namespace col::plan {

struct RankSteps {
  std::vector<Step> steps = {};              // of all rounds, one after the other
  std::vector<std::size_t> round_ends = {};  // where in `steps` each round ends
  std::size_t scratch = 0, wide = 0;
};

struct PlanContent {
  std::string name;
  bool in_chunks = false;
  PlanProblem problem;  // in the file's unit; in_chunks: its count is `chunks`
  std::vector<RankSteps> ranks = {};
  std::uint64_t hash = 0;
};

// Throws invalid_argument as PlanFile::parse() does; `source` names the text in messages.
PlanContent read_plan(std::string_view text, std::string source);

// Checks that these slices of a plan in chunks have equal length for every count: the two sides of every message, and
// the operands of every local step. Throws invalid_argument that names the step.
void check_chunk_lengths(const PlanContent& content, std::string_view source);

}  // namespace col::plan
