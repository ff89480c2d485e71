// The number of cases in a run: by primitive and backend, by property and backend, and by reason of skipping. And the
// facts of a run in words.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "colcheck/engine/primitive.hpp"
#include "colcheck/report/results.hpp"

namespace col::colcheck {

struct Count {
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::size_t run() const { return passed + failed; }
  std::size_t all() const { return run() + skipped; }
  void add(Finding::Verdict verdict);
  bool operator==(const Count&) const = default;
};

// A backend, and the kind of memory of the buffers.
struct Column {
  std::string backend;  // "shm"
  Devices devices = Devices::cpu;
  bool fake = false;  // on stand-ins for GPUs: such results say nothing about GPUs
  bool used = false;
  std::string why_not = {};  // why it was not used: "nccl: there is no libnccl.so.2"
  // "shm (cpu)", "nccl (cuda)", "nccl (cuda, fake)".
  std::string label() const;
  // The same, but only "shm" if it has nothing but the host.
  std::string short_label() const;
};

// The state of a cell of the support matrix.
enum class State {
  passed,       // something ran, and nothing failed
  failed,       // something failed
  skipped,      // there were cases, and all were skipped
  none,         // a hole: the backend was used, but not for this
  unavailable,  // the backend was not used
};
std::string_view to_string(State state);

struct PropertyCount {
  std::string name;
  std::string summary;         // empty if there is no such property
  std::vector<Count> columns;  // as Tally::columns
  Count alone;                 // cases that need no backend
  Count total;
};

struct SkipReason {
  std::string text;
  std::size_t count = 0;
};

struct Tally {
  std::vector<Column> columns;  // those used, in the order of Results, then the rest
  std::array<std::vector<Count>, kPrimitiveCount> primitives =
      {};                                 // of each, per column; cases without backend left out
  std::vector<PropertyCount> properties;  // those with a case, in the order of properties()
  std::vector<SkipReason> skips;          // most frequent first
  Count total;

  State state(std::size_t primitive, std::size_t column) const;
  std::size_t holes() const;
  bool has_alone() const;  // whether any case needed no backend
};

Tally tally(const Results& results);

// ---- In words, for reports that people read

// Names and values, in the order in which a reader wants them. No value is empty.
std::vector<std::pair<std::string, std::string>> facts_of(const Results& results);

// The names of the backends that were used, each once.
std::vector<std::string> backends_of(const Results& results);

// "rank 2: what is wrong".
std::string found_by(const CaseResult& result);

// "smallest: TOKEN: what is wrong in it"; empty if none was found.
std::string smallest_of(const CaseResult& result);

// "colcheck --repro 'TOKEN'", of the smallest case that is known to fail.
std::string repro_of(const CaseResult& result);

}  // namespace col::colcheck
