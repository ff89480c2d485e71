// Every primitive on every backend with every element type and every operator that is defined on it: the table has no
// hole.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "colcheck/engine/call.hpp"
#include "conformance/group/worlds.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

namespace {

using namespace col::colcheck;
using namespace col::test;

constexpr int kRanks = 3;
constexpr std::uint64_t kSeed = 20261121;

using Cell = std::tuple<Primitive, col::DType, Operator>;

// What one rank saw.
struct Findings {
  std::set<Cell> right, refused;
  std::vector<std::string> wrong;
};

// How many cells a primitive has, from first principles: eight integer types take eleven operators each, four floating
// ones all but the three bitwise operators, booleans these three, min, max and the two functions, two complex types
// sum, product, avg, premul_sum and the functions; what only moves data has one cell per type.
std::size_t cells_of(Primitive primitive) {
  if (primitive == Primitive::barrier) return 1;
  return is_reduction(primitive) ? 8 * 11 + 6 * 8 + 7 + 2 * 6 : 17;
}

// In place and out of place, blocking and not; counts and roots take turns, so that each primitive meets all of them.
// False when the operator is refused; then nothing else has been tried.
bool try_cell(col::Group& group, Case c, std::uint64_t& number, Findings& findings) {
  bool right = true, first = true;
  for (const bool in_place : {false, true}) {
    for (const bool asynchronous : {false, true}) {
      if ((in_place && !has_in_place(c.primitive)) || (asynchronous && !has_i_form(c.primitive))) continue;
      c.in_place = in_place;
      c.asynchronous = asynchronous;
      c.seed = mix(kSeed, ++number);
      c.root = static_cast<int>(number % kRanks);
      c.tag = tag_of(c.primitive, number);
      if (c.primitive != Primitive::barrier)
        c.count = count_of(static_cast<int>(mix(c.seed, 5) % kCountClasses), kRanks, c.seed);
      try {
        if (std::string problem = run_case(group, c); !problem.empty()) {
          findings.wrong.push_back(describe(c) + ": " + problem);
          right = false;
        }
      } catch (const col::Error& error) {
        if (error.code() != col::ErrorCode::invalid_argument || !first) throw;
        return false;
      }
      first = false;
    }
  }
  if (right) findings.right.insert({c.primitive, c.dtype, c.op});
  return true;
}

void try_all(col::Group& group, Findings& findings) {
  std::uint64_t number = 0;
  for (int primitive = 0; primitive < kPrimitiveCount; ++primitive) {
    Case c;
    c.primitive = static_cast<Primitive>(primitive);
    const bool reduces = is_reduction(c.primitive);
    for (int dtype = 0; dtype < (c.primitive == Primitive::barrier ? 1 : col::kDTypeCount); ++dtype) {
      for (int op = 0; op < (reduces ? kOperatorCount : 1); ++op) {
        c.dtype = static_cast<col::DType>(dtype);
        c.op = static_cast<Operator>(op);
        if (!try_cell(group, c, number, findings)) findings.refused.insert({c.primitive, c.dtype, c.op});
      }
    }
  }
}

std::size_t count_cells(const std::set<Cell>& cells, Primitive primitive) {
  return static_cast<std::size_t>(
      std::count_if(cells.begin(), cells.end(), [&](const Cell& cell) { return std::get<0>(cell) == primitive; }));
}

// The cells that are right on all ranks.
std::set<Cell> right_everywhere(const std::vector<Findings>& findings) {
  std::set<Cell> cells = findings.front().right;
  for (const Findings& f : findings) std::erase_if(cells, [&](const Cell& cell) { return f.right.count(cell) == 0; });
  return cells;
}

}  // namespace

TEST_CASE("table: every primitive is right with every type and operator on every backend", "[table]") {
  std::map<std::string, std::set<Cell>> right;
  for (const std::string& backend : usable_backends()) {
    std::vector<Findings> findings(kRanks);
    INFO(backend);
    check_good(run_threads(kRanks, rank_body(kRanks, backend, [&](col::Group& group) {
                             try_all(group, findings[static_cast<std::size_t>(group.rank())]);
                           })));
    for (const Findings& f : findings) {
      for (std::size_t i = 0; i < f.wrong.size() && i < 10; ++i) FAIL_CHECK(f.wrong[i]);
      CHECK(f.wrong.size() == 0);
      // Refused is what is not defined, and nothing else.
      CHECK(f.refused.size() == 6 * (3 * 6 + 4 + 2 * 5));
      for (const auto& [primitive, dtype, op] : f.refused) CHECK_FALSE(is_defined(op, dtype));
    }
    right[backend] = right_everywhere(findings);
  }

  std::string table = fmt::format("Right of all cells (type x operator), {} ranks:\n{:16}", kRanks, "");
  for (const auto& [backend, cells] : right) table += fmt::format("{:>10}", backend);
  for (int i = 0; i < kPrimitiveCount; ++i) {
    const auto primitive = static_cast<Primitive>(i);
    table += fmt::format("\n{:16}", to_string(primitive));
    for (const auto& [backend, cells] : right)
      table += fmt::format("{:>10}", fmt::format("{}/{}", count_cells(cells, primitive), cells_of(primitive)));
  }
  fmt::print("{}\n", table);
  REQUIRE(!right.empty());
  for (const auto& [backend, cells] : right) {
    for (int i = 0; i < kPrimitiveCount; ++i) {
      const auto primitive = static_cast<Primitive>(i);
      INFO(to_string(primitive) << " on " << backend);
      REQUIRE(count_cells(cells, primitive) == cells_of(primitive));
    }
  }
}
