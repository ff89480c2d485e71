// Which algorithm runs a collective: a table of rules, what overrides it, and why it chose what it chose.
//
// Everything here is pure but load(); any thread may call any of it.
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

// An algorithm as text names it: "ring", "knomial:radix=8", "ring_pipelined:segment=64K", "file:my.json".
struct COL_EXPORT AlgorithmSpec {
  std::string name;               // "ring"; "file" for a user's plan
  int radix = 0;                  // 0: the algorithm's default
  std::size_t segment_bytes = 0;  // 0: the algorithm's default
  std::string file = {};          // the path, when name is "file"
  bool operator==(const AlgorithmSpec&) const = default;

  // Throws invalid_argument saying what is wrong and what the form is. Does not look at the file, nor whether there is
  // an algorithm of that name.
  static AlgorithmSpec parse(std::string_view text);
  std::string text() const;  // parse(text()) == *this
};

// What a rule is matched against. Equal on all ranks of a call.
struct SelectionQuery {
  Collective collective = Collective::barrier;
  int ranks = 1;
  int nodes = 1;
  std::size_t bytes = 0;  // the whole vector, or all blocks together, as nccl-tests' "size"
  std::string_view backend = {};
};

// First match wins. A condition that is left out always holds.
struct COL_EXPORT SelectionRule {
  Collective collective = Collective::barrier;
  int min_ranks = 1, max_ranks = std::numeric_limits<int>::max();                  // inclusive
  std::size_t min_bytes = 0, max_bytes = std::numeric_limits<std::size_t>::max();  // inclusive
  std::string backend = {};                                                        // empty: any
  std::optional<bool> power_of_two = {};                                           // of the number of ranks
  AlgorithmSpec algorithm = {};

  bool operator==(const SelectionRule&) const = default;
  bool matches(const SelectionQuery& query) const noexcept;
  std::string text() const;  // "allreduce, 2 to 8 ranks, up to 64K, backend shm: ring"
};

// Rules in order. Immutable.
class COL_EXPORT SelectionTable {
 public:
  // The table of configs/selection.json, compiled in. Has a rule for every collective, number of ranks and size.
  static const SelectionTable& built_in();
  // From JSON text (docs/selection.md has the schema). `source` names it in messages. Throws invalid_argument naming
  // the rule and member that is wrong, with the nearest valid name where one is misspelt.
  static SelectionTable parse(std::string_view text, std::string source);
  // Throws io when the file cannot be read.
  static SelectionTable load(const std::string& path);

  std::span<const SelectionRule> rules() const noexcept { return rules_; }
  const std::string& source() const noexcept { return source_; }  // "built in", or the path
  // Which machine, date and command the rules come from, as the file records it.
  const std::string& evidence() const noexcept { return evidence_; }

 private:
  std::vector<SelectionRule> rules_;
  std::string source_, evidence_;
};

// What COL_ALGORITHM says: "allreduce:ring,broadcast:knomial:radix=8,alltoall:file:my.json". At most one per
// collective. Throws invalid_argument naming the entry.
struct AlgorithmOverride {
  Collective collective;
  AlgorithmSpec algorithm;
};
COL_EXPORT std::vector<AlgorithmOverride> parse_overrides(std::string_view text);

// A decision, and why.
struct Choice {
  AlgorithmSpec algorithm;
  std::string reason;  // "rule 7 of built in: allreduce, …"; with those passed over: "(rule 5: mst: <why not>)"
};

// The first rule of `table` that matches and whose algorithm `why_not` has nothing against; nothing when there is none
// (then `reason` of the returned error text says which were refused and why).
COL_EXPORT std::optional<Choice> choose(const SelectionTable& table, const SelectionQuery& query,
                                        const std::function<std::optional<std::string>(const AlgorithmSpec&)>& why_not,
                                        std::string* refused = nullptr);

// The candidate nearest to a misspelt name (by edit distance); empty when none is near.
COL_EXPORT std::string_view nearest_name(std::string_view misspelt, std::span<const std::string_view> candidates);

}  // namespace col
