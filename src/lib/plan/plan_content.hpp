// What a plan file says, once it has been read: steps in the file's unit, elements or chunks.
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
  PlanProblem problem;  // in the file's unit: with `chunks` as its count when in_chunks
  std::vector<RankSteps> ranks = {};
  std::uint64_t hash = 0;
};

// Throws invalid_argument as PlanFile::parse() does; `source` names the text in messages.
PlanContent read_plan(std::string_view text, std::string source);

// Checks that slices of a plan in chunks are of equal length whatever the count: the two sides of every message, the
// operands of every local step. Throws invalid_argument naming the step.
void check_chunk_lengths(const PlanContent& content, std::string_view source);

}  // namespace col::plan
