// Functions that single rows of the table need beside their values, and what ranks do in drills that need more than a
// call.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "colcheck/faults/drill.hpp"

namespace col::colcheck {

// ---- mismatch.cpp: the odd rank's call, from that of the others. It depends only on the case.
void change_primitive(Case& c);
void change_count(Case& c);
void change_dtype(Case& c);
void change_root(Case& c);
void change_operator(Case& c);
void change_something(Case& c);

// A random program of collectives, in which the odd rank differs in one call. Case::variant is how, and how the calls
// are made: kModes * change + mode.
enum class Change : std::uint8_t { primitive, count, dtype, root, op, order, skipped, extra, algorithm, counts };
enum class CallMode : std::uint8_t { blocking, asynchronous, mixed };
inline constexpr std::uint64_t kChanges = 10, kModes = 3, kFirstOfCounts = 9 * kModes;
std::vector<Case> program_of(const Case& c, bool odd);

// ---- draws.cpp: Case::variant of `killed` is the rank, and the step before which it is killed.
void add_killed(Draw& draw);
int killed_rank(const Case& c);
std::uint64_t planned_step(const Case& c);
// The same with one step each.
std::vector<Case> killed_steps(const Case& c);

// ---- hangs.cpp
// Case::variant of the first row of hangs() in the drill `why`.
inline constexpr std::uint64_t kFirstHang = 4;
void add_hangs(Draw& draw);

// ---- tangle.cpp: one rank's part. The one that the case's seed draws calls `hang` instead of a step. Throws what
// calls throw.
void run_tangle(const Group& world, const Case& c, const std::function<void()>& hang);
int tangled_rank(const Case& c);

// ---- held_copy.cpp
// Says that the drill cannot be done here.
class Skipped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// One rank's part in the call. `say` reports that it has come to a point,
// and returns when it may go on. The rank that `copies` says "copying" in the middle of its first copy out of another
// rank's memory (process_vm_readv), before which a filter of system calls asks. The others say "overwritten" when their
// call has failed and they have written into their buffers. Throws what the call throws, and Skipped. Returns what is
// wrong with the data, or "". Requires: called once in this process, because the filter stays.
std::string call_held(Group& group, const Case& c, bool copies, const std::function<void(const std::string&)>& say);

}  // namespace col::colcheck
