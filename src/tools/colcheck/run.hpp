// The lead's program: from options to results.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "colcheck/lead.hpp"
#include "colcheck/options.hpp"
#include "colcheck/report/results.hpp"

namespace col::colcheck {

// ---- Which cases run, and in which portions; and the smallest case that still fails (cases.cpp)

// Cases for one order: all of one kind, backend, number of ranks, and kind of devices.
struct Portion {
  Property::Kind kind;
  std::vector<Case> cases;
};

// The properties' cases, each once, in portions. Few groups have to be made, and reports come often enough for somebody
// who watches. Cases without a group come first, drills last.
//
// A selection about GPUs has only cases of properties that matter there (Property::on_gpus). They take its devices in
// turn; in a full run, each case comes with all of them.
std::vector<Portion> schedule(std::span<const Property* const> properties, const Selection& selection);

// Simpler cases, one step away, the boldest first. All are possible ones: a root is one of the ranks.
std::vector<Case> simpler(const Case& c);

// Goes from case to simpler case as long as `fails` says that one fails too. Asks at most `most_tries` times.
std::optional<CaseResult> shrink(const Case& c, int most_tries,
                                 const std::function<std::optional<CaseResult>(const Case&)>& fails);

// ---- The program

// Gets progress messages during a run.
struct RunListener {
  std::function<void(std::size_t total)> on_planned = {};
  std::function<void(const CaseResult&)> on_result = {};
};

class Run {
 public:
  // All must outlive it.
  Run(Lead& lead, const Options& options, const ContextSpec& spec, RunListener listener);

  // Fills `results`, whose facts about the world are already set. Returns the exit code. Throws nothing because of
  // ranks or cases. Throws UsageError for usage errors (a number of ranks that this world does not have), before any
  // case.
  int run(Results& results);

 private:
  // What is checked, and where: one selection for the host, one for GPUs whose data goes through the host, and one for
  // NCCL. Selections that are not requested, or not possible here, are left out.
  std::vector<Selection> selections(Results& results);
  void find_backends(Results& results, Selection& selection);
  void find_gpus(Results& results, std::vector<Selection>& all);
  void find_nccl(Results& results, std::vector<Selection>& all);
  bool wants_backend(std::string_view name) const;
  void leave_out(const std::string& name, const std::string& why, Results& results);
  void run_portions(const std::vector<Portion>& portions, Results& results);
  void run_until(Deadline deadline, std::vector<Selection> selections, Results& results);
  void run_token(Results& results);
  void find_smallest(Results& results);
  struct Chosen {
    std::vector<const Property*> usual, drills;
  };
  Chosen chosen() const;
  std::vector<int> numbers_of_ranks() const;

  Lead& lead_;
  const Options& options_;
  const ContextSpec& spec_;
  RunListener listener_;
};

}  // namespace col::colcheck
