// How col selects the algorithm of a collective: a table of rules, overrides, and the reason for each choice.
//
// Everything here is a pure function, except load(). Any thread may call any of it.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/types.hpp>

namespace col {

// An algorithm as written in text: "ring", "knomial:radix=8", "ring_pipelined:segment=64K", "file:my.json".
struct COL_EXPORT AlgorithmSpec {
  std::string name;               // "ring"; "file" for a user's plan
  int radix = 0;                  // 0: the algorithm's default
  std::size_t segment_bytes = 0;  // 0: the algorithm's default
  std::string file = {};          // the path, if name is "file"
  bool operator==(const AlgorithmSpec&) const = default;

  // Throws invalid_argument that says what is wrong and what form is expected. Does not read the file, and does not
  // check that the algorithm exists.
  static AlgorithmSpec parse(std::string_view text);
  std::string text() const;  // parse(text()) == *this
};

// The facts of a call that rules are compared with. They are equal on all ranks of the call.
struct SelectionQuery {
  Collective collective = Collective::barrier;
  int ranks = 1;
  int nodes = 1;
  int ranks_per_node = 1;  // of the node with the most
  std::size_t bytes = 0;   // the whole vector, or all blocks together, like "size" in nccl-tests
  std::string_view backend = {};
};

// The first rule that matches wins. A condition that is left out always holds.
struct COL_EXPORT SelectionRule {
  Collective collective = Collective::barrier;
  int min_ranks = 1, max_ranks = std::numeric_limits<int>::max();  // inclusive
  int min_nodes = 1, max_nodes = std::numeric_limits<int>::max();  // inclusive
  // Inclusive; on the node with the most ranks.
  int min_ranks_per_node = 1, max_ranks_per_node = std::numeric_limits<int>::max();
  std::size_t min_bytes = 0, max_bytes = std::numeric_limits<std::size_t>::max();  // inclusive
  std::string backend = {};                                                        // empty: any
  std::optional<bool> power_of_two = {};  // the number of ranks is a power of two
  AlgorithmSpec algorithm = {};

  bool operator==(const SelectionRule&) const = default;
  bool matches(const SelectionQuery& query) const noexcept;
  std::string text() const;  // "allreduce, 2 to 8 ranks, up to 64K, backend shm: ring"
};

// The measurement that the rules of a table come from.
struct SelectionEvidence {
  std::string machine, date, command;
};

// The text of a table for SelectionTable::parse(), with one rule a line. Pure.
COL_EXPORT std::string selection_to_json(std::span<const SelectionRule> rules, const SelectionEvidence& evidence);

// Rules in order. Immutable.
class COL_EXPORT SelectionTable {
 public:
  // The table of configs/selection.json, compiled in. If it has rules for a collective, they cover every number of
  // ranks and every size.
  static const SelectionTable& built_in();
  // Makes a table from JSON text (docs/selection.md has the schema). `source` is its name in messages. Throws
  // invalid_argument that names the wrong rule and member, and the nearest valid name for a misspelt one.
  static SelectionTable parse(std::string_view text, std::string source);
  // Throws io when the file cannot be read.
  static SelectionTable load(const std::string& path);

  std::span<const SelectionRule> rules() const noexcept { return rules_; }
  const std::string& source() const noexcept { return source_; }  // "built in", or the path
  // The machine, date and command that the rules come from, as the file records them.
  const std::string& evidence() const noexcept { return evidence_; }

 private:
  std::vector<SelectionRule> rules_;
  std::string source_, evidence_;
};

// The entries of COL_ALGORITHM: "allreduce:ring,broadcast:knomial:radix=8,alltoall:file:my.json". At most one entry for
// each collective. Throws invalid_argument that names the wrong entry.
struct AlgorithmOverride {
  Collective collective;
  AlgorithmSpec algorithm;
};
COL_EXPORT std::vector<AlgorithmOverride> parse_overrides(std::string_view text);

// A choice of algorithm, and the reason.
struct Choice {
  AlgorithmSpec algorithm;
  std::string reason;  // "rule 7 of built in: allreduce, …", and refused rules: "(rule 5: mst: <why not>)"
};

// Chooses the first rule of `table` that matches, if `why_not` returns no reason against its algorithm. Returns nothing
// if there is no such rule; `*refused` then says which algorithms were refused and why.
COL_EXPORT std::optional<Choice> choose(const SelectionTable& table, const SelectionQuery& query,
                                        const std::function<std::optional<std::string>(const AlgorithmSpec&)>& why_not,
                                        std::string* refused = nullptr);

// The candidate that is nearest to a misspelt name, by edit distance; empty if none is near.
COL_EXPORT std::string_view nearest_name(std::string_view misspelt, std::span<const std::string_view> candidates);

}  // namespace col
