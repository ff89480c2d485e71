// The results of a run of colcheck: everything that the reports are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "colcheck/engine/case.hpp"
#include "colcheck/engine/gpus.hpp"
#include "colcheck/engine/property.hpp"

namespace col::colcheck {

struct CaseResult {
  Case c;
  Finding::Verdict verdict = Finding::Verdict::pass;
  int rank = -1;          // the lowest rank that found something wrong; -1: none did, or not a single rank
  std::string text = {};  // of that finding
  double seconds = 0;     // 0: not known
  // For some failures: the smallest case that was found to fail too, and what is wrong in it.
  std::string smallest_token = {}, smallest_text = {};
};

// A backend or device that was requested, or would be expected here, but cannot be used.
struct Unavailable {
  std::string name;  // "nccl", "cuda"
  std::string why;
};

struct UsedBackend {
  std::string name;
  Devices devices = Devices::cpu;
  bool operator==(const UsedBackend&) const = default;
};

struct Results {
  std::string version;   // of colcheck
  std::string command;   // as it was called
  std::string launcher;  // "colcheck" if it started its ranks itself, else "openmpi" …
  int world_size = 1;
  std::string host;
  int cpus = 1;
  std::string effort;  // "quick", "full", "soak", "repro"
  std::uint64_t seed = 0;
  std::string started;  // ISO 8601, UTC
  double seconds = 0;
  std::vector<UsedBackend> backends;  // those used
  std::vector<RankGpu> gpus = {};     // by rank; empty when no case was about GPUs
  std::vector<Unavailable> unavailable;
  std::vector<int> ranks;                // numbers of ranks that groups had
  std::vector<std::string> limits = {};  // what could not be checked completely here, and why
  std::vector<CaseResult> cases;
  // Cases of --soak that passed after the first round. They are counted and not kept, because a soak may go on for
  // days.
  std::size_t passed_while_soaking = 0;
  // Why the run ended before all was tried: a rank died, or a wait timed out. Empty if it did not end early.
  std::string ended_early;

  std::size_t count(Finding::Verdict verdict) const;
};

}  // namespace col::colcheck
