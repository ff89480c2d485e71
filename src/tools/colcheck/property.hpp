// What colcheck checks: one property of the library per file in properties/, all of them listed in registry.cpp.
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

// What a property has to say where there are GPUs.
enum class OnGpus : std::uint8_t {
  nothing,  // it is not about data, or its data is on the host whatever the backend
  results,  // its buffers are on the host, but groups over NCCL compute on GPUs, and their results are looked at
  buffers,  // its buffers can be memory of GPUs, over every backend
};

// What cases are asked for.
struct Selection {
  Effort effort = Effort::quick;
  std::uint64_t seed = 0;
  std::vector<std::string> backends = {};  // usable ones, by name
  std::vector<int> ranks = {};             // numbers of ranks, ascending, no two equal
  // What buffers are memory of. Unless it is the host's alone, the selection is about GPUs: Property::on_gpus counts.
  std::vector<Devices> devices = {Devices::cpu};
  std::vector<std::string> algorithms = {};  // of --algo; empty: all
  // What each backend offers besides the built-in algorithms: "ring" is here only if the backend has one of its own.
  std::map<std::string, std::map<Collective, std::vector<std::string>>> natives = {};

  // Whether --algo accepts this one. Empty means the default algorithm.
  bool wants_algorithm(std::string_view algorithm) const;
  bool is_about_gpus() const { return devices != std::vector{Devices::cpu}; }
};

// What a rank found out about a case.
struct Finding {
  enum class Verdict : std::uint8_t { pass, skip, fail };
  Verdict verdict = Verdict::pass;
  std::string text = {};  // why it was skipped; what is wrong, in one line
  // A hash of what must be equal on all ranks; the lead compares it. Nothing if there is no such thing.
  std::optional<std::uint64_t> digest = {};

  static Finding pass() { return {}; }
  static Finding skip(std::string why) { return {Verdict::skip, std::move(why), {}}; }
  static Finding fail(std::string what) { return {Verdict::fail, std::move(what), {}}; }
  // Fails unless `problem` is empty.
  static Finding of(std::string problem) { return problem.empty() ? pass() : fail(std::move(problem)); }
};

struct Property {
  // Who runs a case.
  enum class Kind : std::uint8_t {
    group,  // Case::ranks ranks, in a group over Case::backend
    alone,  // one process without a group
    fault,  // one process, which starts others and harms them; only with --faults
  };
  std::string_view name;     // "exact"
  std::string_view summary;  // one line, for --list and docs/checking.md: what holds when it passes
  Kind kind;
  // Appends the cases that `selection` asks for, in any order. Deterministic. Every case has this property's name, and
  // no two are equal.
  void (*cases)(const Selection& selection, std::vector<Case>& cases);
  // One rank's part. Called on all ranks of the case's group at about the same time, in a group that may have served
  // other cases before. Throws col::Error when a call fails that should not: the case has failed then, and the group is
  // not used again. Other exceptions fail the case too.
  Finding (*run)(Rank& rank, const Case& c);
  OnGpus on_gpus = OnGpus::nothing;
};

// In the order of reports.
std::span<const Property* const> properties();
// Null if there is none of that name.
const Property* find_property(std::string_view name);

}  // namespace col::colcheck
