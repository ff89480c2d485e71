// The choices of a seed for a job, before it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <col/types.hpp>

#include "simulation/faults.hpp"
#include "simulation/fine_channel.hpp"
#include "simulation/mistake.hpp"
#include "simulation/program.hpp"

namespace col::test {

// The version of what a seed is drawn for. Programs and faults of more kinds come with a new version, so that a seed
// that was kept for what it has found stays what it was: version 1 has what there was until seed 3173 of seeds.txt was
// kept; since version 3, a free lock is a place where another thread may go on; since version 4, some jobs end with
// renewals; since version 5, others join then.
inline constexpr int kDraws = 5;

struct JobPlan {
  int draws = kDraws;
  int ranks = 2, hosts = 1;
  bool has_pages = true;  // a control page for each host
  bool meets = false;     // by ContextSpec::meet, which makes the pages
  bool has_progress_thread = false;
  bool is_strict = false;  // COL_CHECK=strict
  bool destroys = false;   // groups one by one, before finalize()
  Duration timeout = {};
  Duration longest_delay = {};  // of most messages
  Program program = {};
  std::vector<Fault> faults = {};
  // Since version 2:
  ChannelKind channel = ChannelKind::plain;
  bool has_turns = false;  // ContextSpec::serialize
  bool records_steps = false;
  std::optional<Mistake> mistake = {};
  // Since version 4: what happens in each renewal of the world by which the job ends, in place of a smaller group.
  std::vector<std::vector<Fault>> renewals = {};
  // Since version 5: ranks in whose place another process joins the world if they are killed.
  std::vector<int> newcomers = {};

  // True if something in it starts the progress thread.
  bool starts_progress_thread() const;
  int host_of(int rank) const { return rank * hosts / ranks; }
  // The numbers of processes: of the ranks, of the store, of the newcomers.
  int process_of_store() const { return ranks; }
  int process_of_newcomer(int newcomer) const { return ranks + 1 + newcomer; }
  int processes() const { return process_of_newcomer(static_cast<int>(newcomers.size())); }
};

JobPlan choose_plan(std::uint64_t seed, int draws = kDraws);
std::string describe(const JobPlan& plan);

}  // namespace col::test
