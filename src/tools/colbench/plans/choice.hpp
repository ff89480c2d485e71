// Which algorithm a group would run, without a group: the answer of Group::explain(), and its reasons.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <col/channel.hpp>
#include <col/select.hpp>

#include "colbench/cell/cell.hpp"

namespace col::colbench {

// The environment's settings for algorithms.
struct ChoiceSettings {
  std::vector<AlgorithmOverride> overrides = {};  // COL_ALGORITHM
  std::optional<SelectionTable> table = {};       // COL_SELECTION
  enum class Numerics { fast, strict, deterministic } numerics = Numerics::fast;

  // Throws UsageError for an invalid value; io if a file cannot be read.
  static ChoiceSettings from_environment();
};

// The backend on one host: "auto" gives "shm".
std::string backend_of(const std::string& asked);

// Decides like a group of cell.ranks ranks on one host with backend `backend`.
class Chooser {
 public:
  // Throws UsageError if `backend` is not a name that find_backend() knows.
  Chooser(std::string backend, ChoiceSettings settings);
  Chooser(const Chooser&) = delete;
  Chooser& operator=(const Chooser&) = delete;

  struct Result {
    AlgorithmSpec algorithm;
    std::string reason;
    const SelectionTable* table = nullptr;  // the table of the rule; null if the algorithm was requested by name
    // As Group::explain(), which adds how the group's connections go about it: "ring: rule 7 of built in: …".
    std::string text() const;
    std::string content = {};  // hash of the user's plan, if it is one
  };
  // Requires: cell.ranks > 1. Throws UsageError if the algorithm in COL_ALGORITHM cannot be used, or no algorithm can.
  Result choose(const CellSpec& cell) const;
  // The same with only `table`, without the environment.
  std::optional<Choice> choose_by(const SelectionTable& table, const CellSpec& cell) const;
  // Why that algorithm cannot serve the cell. `by_name`: it was requested by name.
  std::optional<std::string> why_not(const AlgorithmSpec& algorithm, const CellSpec& cell, bool by_name) const;
  // The backend's own algorithms; none if it cannot be used on this machine.
  std::span<const NativeEntry> natives() const { return natives_; }
  const std::string& backend() const { return backend_; }
  const ChoiceSettings& settings() const { return settings_; }
  // Why the backend cannot be used here; empty if it can.
  const std::string& unavailable() const { return unavailable_; }

 private:
  Result named(const AlgorithmSpec& algorithm, const CellSpec& cell) const;
  std::optional<std::string> why_not_file(const AlgorithmSpec& algorithm, const CellSpec& cell) const;

  std::string backend_;
  ChoiceSettings settings_;
  std::vector<NativeEntry> natives_;
  std::vector<std::string> native_names_;  // natives_ points into it
  std::string unavailable_;
};

// What rules are compared with for that cell.
SelectionQuery query_of(const CellSpec& cell, const std::string& backend);

// Algorithms with parameters ("ring_pipelined:segment=512K") that the rules of the tables in use may run for such a
// cell, for any size. "all" knows only defaults, and would leave them out.
std::vector<std::string> tuned_variants(const SelectionTable& table, const CellSpec& cell);

// `cells`; after each cell for "all" algorithms, there is one for every such variant of the built-in table.
std::vector<CellSpec> with_tuned_variants(const std::vector<CellSpec>& cells);

}  // namespace col::colbench
