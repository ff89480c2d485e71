// A drill is a row of a table (drills.cpp): what is planted among the ranks of a job, where, and what they must say of
// it, by when. driver.cpp runs a row, and rank_main.cpp is one rank of the job. Both read the row, so that a rank is
// told no more than its case.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>

#include "colcheck/engine/draw.hpp"

namespace col::colcheck {

// Every rank joins group "default", makes some calls, then two barriers, leaves in good order and reports. One rank,
// the odd one, or all of them may do something else.
enum class Act : std::uint8_t {
  calls,         // nothing else
  calls_other,   // the odd one: makes its last call as Drill::change has it
  stays_away,    // the odd one: is away instead of making the last call
  never_joins,   // the odd one: is away instead of joining
  walks_out,     // the odd one: ends before the last call, without col::finalize()
  leaves,        // the odd one: ends before the last call, after col::finalize()
  copies_late,   // all make the last call as in held_copy.cpp, in which the odd one is delayed
  tangles,       // all run a Tangle, in which the odd one is away
  runs_program,  // all run a random program, of which the odd one changes a call (mismatch.cpp)
  dups,          // all make groups and keep them, instead of the last call
  hangs,         // all do what the case's row of hangs() says
};

// ---- What the process that drills does meanwhile, step by step

enum class Who : std::uint8_t { all, odd, others };

struct Step {
  enum class Does : std::uint8_t { await, go_on, release, strike, pause, note, remove_store, explain };
  Does does = Does::note;
  Who who = Who::all;
  std::string_view point = {};
  int signal = 0;
  Duration length = {};
};

// Waits until they have come to a point: "ready", before they join; "call", before the last call; "away", "copying" and
// "overwritten", of some acts; "stopped", by a signal; "report", when they have nothing more to do. At the first two,
// they stop only in drills that await or release them there.
constexpr Step await(Who who, std::string_view point) {
  return {.does = Step::Does::await, .who = who, .point = point};
}
// Lets those go on that wait at a point.
constexpr Step go_on(Who who) {
  return {.does = Step::Does::go_on, .who = who};
}
// Lets each go on as soon as it has come to the point. It may end before.
constexpr Step release(Who who, std::string_view point) {
  return {.does = Step::Does::release, .who = who, .point = point};
}
constexpr Step strike(Who who, int signal) {
  return {.does = Step::Does::strike, .who = who, .signal = signal};
}
// For so long; zero: for as many microseconds as Case::variant says.
constexpr Step pause(Duration length) {
  return {.does = Step::Does::pause, .length = length};
}
// Way::since counts from here.
constexpr Step note() {
  return {.does = Step::Does::note};
}
constexpr Step remove_store() {
  return {.does = Step::Does::remove_store};
}
// Asks what `coljob why` says until it is right.
constexpr Step explain() {
  return {.does = Step::Does::explain};
}

// ---- What must be said

// A set of codes of errors; of kWell alone: there was none.
using Codes = std::uint32_t;
constexpr Codes kWell = 1U << 31, kAnyError = kWell - 1;
template <class... Code>
constexpr Codes any_of(Code... codes) {
  return ((Codes{1} << static_cast<unsigned>(codes)) | ...);
}

// How a rank must have ended.
struct Said {
  enum class End : std::uint8_t {
    reports,  // by itself, with a report
    killed,   // by SIGKILL, without one
    leaves,   // with exit code 0, without one
    any       // in any way
  };
  End end = End::reports;
  Codes codes = kWell;
  bool names_odd = false;  // the error is about the odd rank; otherwise about none in particular
};

struct Way {
  std::uint64_t variant = 0;  // Case::variant, up to that of the next way
  // The plant.
  Act act = Act::calls;
  int calls = 1;  // each with other inputs
  // COL_FAULT. {odd} is the odd rank, {next} the one after it, {step} a step of its plan for the last call, drawn by
  // the seed, and {planned} that of the variant.
  const char* fault = "";
  const char* environment = "";         // one more variable
  const char* store = "";               // COL_STORE; "stranger": a port that somebody else listens at, who says nothing
  std::optional<int> descriptors = {};  // the odd rank may open so many more than at first; -1: as many as the variant
  bool descriptors_late = false;        // … more than before the last call
  std::int64_t file_bytes = -1;         // no file of any rank may become longer than this; -1: no limit
  std::size_t shm_bytes = 0;  // the size of a /dev/shm of their own, without memfd_create(); 0: they have none
  int dups = 0;               // of Act::dups
  bool in_flight = false;     // another call is made before the last call is waited for
  bool regroups = false;      // ranks that have lost one make a group without it, and the call there; so they must
  std::vector<Step> script = {};
  Duration timeout = std::chrono::seconds(5);  // COL_TIMEOUT
  Duration limit = std::chrono::seconds(15);   // of the job: ranks that have not ended by then are killed
  // The words that must come.
  Said said = {};
  std::optional<Said> odd = {};        // by the odd rank; nothing: as by the others
  bool or_well = false;                // or else all must have ended well
  bool somebody = false;               // at least one must have got an error
  std::string_view later = "aborted";  // what the next call after an error ends with, if there is a group
  // By when: so many seconds after that.
  enum class Since : std::uint8_t { noted, odd_ended, called } since = Since::called;
  double within = 1;
  double not_before = 0;  // the call, or where all is well the odd rank, must have lasted so long

  bool stops_at(std::string_view point) const;
  const Said& of(int rank, int odd_rank) const { return odd && rank == odd_rank ? *odd : said; }
};

// ---- On how many ranks, in which calls

struct NamedCall {
  Primitive primitive;
  const char* algorithm = "";
};

// Each call on each backend in each variant, unless `add` is there.
struct Choice {
  enum class Sizes : std::uint8_t {
    usual,        // 3 and 4, if the selection allows them, or the smallest above that one machine can run, or 2
    least_three,  // the same without 2: of two that differ, neither is the odd one
    fewest,
    most,  // the first or the last of the usual ones
  };
  Sizes sizes = Sizes::usual;
  std::vector<NamedCall> calls = {{Primitive::allreduce}};
  std::size_t quick_calls = 1;  // so many of them in a quick run
  std::vector<std::uint64_t> variants = {0};
  std::vector<std::uint64_t> full_variants = {};  // in a full run; empty: the same
  bool in_turn = false;                           // in a quick run, each call has one of the variants
  DType dtype = DType::float32;
  std::size_t count = 24;
  std::size_t every_other_count = 0;  // of every other case; 0: the same
  bool (*fits)(Case& c) = nullptr;    // false: the case makes no sense; it may adapt it. Null: all do
  void (*add)(Draw& draw) = nullptr;
};

// The rank that is harmed: drawn.
int drawn_rank(const Case& c);

struct Drill {
  std::string_view name, summary;
  OnGpus on_gpus = OnGpus::nothing;
  Choice draw = {};
  std::vector<Way> ways;  // ascending variants
  int (*odd)(const Case& c) = &drawn_rank;
  void (*change)(Case& c) = nullptr;  // Act::calls_other: the odd rank's call, from that of the others
  std::vector<Case> (*parts)(const Case& c) = nullptr;  // jobs of one case, of which some run at once; null: it is one

  const Way& way_of(const Case& c) const;
};

// The table, in the order of reports.
std::span<const Drill> drills();
// The drill of the case's property. Throws std::invalid_argument if that is none.
const Drill& drill_of(const Case& c);

// ---- What drills draw

// Numbers of ranks for drills; none if the selection allows none.
std::vector<int> drill_ranks(const Selection& selection, Choice::Sizes sizes = Choice::Sizes::usual);
// The drills of the selection. Each is a job of its own. If its ranks are on this host, there is nothing over hosts.
std::vector<std::string> drill_backends(const Selection& selection);
// The cases of a row.
void add_cases(const Choice& choice, Draw& draw);

// The call of that number, from 1: the last one of a way is numbered(c, way.calls).
Case numbered(Case c, int number);
// How many steps a rank's plan for the case's call has, with the case's algorithm: the places where COL_FAULT can
// strike. 1 for a backend's own algorithm, which is one step for col. 0 if no plan can be made for it.
int count_steps(const Case& c, int rank);

// ---- driver.cpp

struct JobSpec;
// Plays the drill's way of this case with ranks that `spec` starts: its program and arguments. Blocks until all of them
// have ended. Throws what Job throws.
Finding play(const Drill& drill, const Case& c, JobSpec spec);
// The drills as properties.
std::span<const Property> drill_properties();

// Does what `colcheck --fault-rank TOKEN` is for (rank_main.cpp): it is one rank of the job of that case. Its stdin is
// a socket to the process that started it. It does its part, reports, and returns the exit code: 0 if all went well, 1
// if something has been reported, 2 if the token is none of a drill or nobody listens. Never throws. Requires: no other
// thread; main() calls it, because the process may end in here.
int fault_rank_main(std::string_view token);

}  // namespace col::colcheck
