// What colcheck checks: one property of the library in each file in properties/, all listed in registry.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "colcheck/engine/case.hpp"
#include "colcheck/rank.hpp"

namespace col::colcheck {

enum class Effort : std::uint8_t {
  quick,  // all cases of all properties together: a few thousand, in ten seconds on two cores
  full,   // in five minutes
};

// What a property checks if there are GPUs.
enum class OnGpus : std::uint8_t {
  nothing,  // it is not about data, or its data is on the host for every backend
  results,  // its buffers are on the host, but groups over NCCL compute on GPUs, and their results are checked
  buffers,  // its buffers can be in GPU memory, over every backend
};

// What the cases should cover.
struct Selection {
  Effort effort = Effort::quick;
  std::uint64_t seed = 0;
  std::vector<std::string> backends = {};  // usable ones, by name
  std::vector<int> ranks = {};             // numbers of ranks, ascending, no two equal
  // The kinds of memory of the buffers. Unless this is only host memory, the selection is about GPUs: then
  // Property::on_gpus matters.
  std::vector<Devices> devices = {Devices::cpu};
  std::vector<std::string> algorithms = {};  // of --algo; empty: all
  // What each backend offers in addition to the built-in algorithms: "ring" is here only if the backend has its own.
  std::map<std::string, std::map<Collective, std::vector<std::string>>> natives = {};

  // Whether --algo accepts this one. Empty means the default algorithm.
  bool wants_algorithm(std::string_view algorithm) const;
  bool is_about_gpus() const { return devices != std::vector{Devices::cpu}; }
};

// A rank's result for a case.
struct Finding {
  enum class Verdict : std::uint8_t { pass, skip, fail };
  Verdict verdict = Verdict::pass;
  std::string text = {};  // why it was skipped, or what is wrong, in one line
  // A hash of what must be equal on all ranks; the lead compares it. Nothing if there is no such thing.
  std::optional<std::uint64_t> digest = {};

  static Finding pass() { return {}; }
  static Finding skip(std::string why) { return {Verdict::skip, std::move(why), {}}; }
  static Finding fail(std::string what) { return {Verdict::fail, std::move(what), {}}; }
  // Fails unless `problem` is empty.
  static Finding of(std::string problem) { return problem.empty() ? pass() : fail(std::move(problem)); }
};

struct Property {
  // What runs a case.
  enum class Kind : std::uint8_t {
    group,  // Case::ranks ranks, in a group over Case::backend
    alone,  // one process without a group
    fault,  // one process, which starts other processes and harms them; only with --faults
  };
  std::string_view name;     // "exact"
  std::string_view summary;  // one line, for --list and docs/checking.md: what holds if it passes
  Kind kind;
  // Appends the cases for `selection`, in any order. Deterministic. Every case has this property's name, and no two are
  // equal.
  void (*cases)(const Selection& selection, std::vector<Case>& cases);
  // One rank's part. It is called on all ranks of the case's group at about the same time, in a group that may have
  // served other cases before. Throws col::Error if a call fails that should not: the case has then failed, and the
  // group is not used again. Other exceptions make the case fail too.
  Finding (*run)(Rank& rank, const Case& c);
  OnGpus on_gpus = OnGpus::nothing;
};

// In the order of the reports.
std::span<const Property* const> properties();
// Null if there is none of that name.
const Property* find_property(std::string_view name);

}  // namespace col::colcheck
