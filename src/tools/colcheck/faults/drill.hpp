// What goes between the process that drills and the ranks of a sacrificial job: orders, the text after `--fault-rank`,
// and each rank's report at the end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "colcheck/engine/case.hpp"

namespace col::colcheck {

// Every rank joins group "default", makes `calls` calls, then a barrier, leaves in good order and reports. One rank, or
// all, may do something else.
struct Drill {
  enum class Oddity : std::uint8_t {
    none,
    calls_other,        // its last call is `other`
    stays_away,         // does not make the last call, but waits for the order to end
    never_joins,        // waits for the order to end instead of joining
    walks_out,          // ends before the last call, without col::finalize()
    leaves,             // ends before the last call, after col::finalize()
    copies_late,        // all make the last call as in late_copy.cpp, and this one is delayed
    sends_another_tag,  // in place of the last call: to its neighbour, which receives with another one
    all_send_first,     // in place of the last call: all ranks send to the next one, and have nowhere to put it
    hangs               // all ranks run a Tangle; this one stops in it, and waits for the order to end
  };
  Case c = {};  // the call, each time with other inputs
  int calls = 1;
  int odd = -1;  // the rank that is odd; -1: none
  Oddity oddity = Oddity::none;
  std::optional<Case> other = {};
  bool asks_to_join = false;      // every rank says "ready" when it has its store, and waits for the order to join …
  bool asks_to_call = false;      // … and before the last call
  int descriptors = -1;           // the odd rank may open this many more than at first; -1: no limit
  bool descriptors_late = false;  // … more than before the last call
  std::int64_t file_bytes = -1;   // no file of any rank may become longer than this; -1: no limit
  bool without_memfd = false;     // memfd_create() fails as if there were no such call
  pid_t shm_holder = 0;           // of the PrivateShm that the ranks use; 0: none
  bool in_flight = false;         // another call is made before the last call is waited for
  bool regroups = false;          // ranks that have lost a rank make a group without it, and make the call there
  std::int64_t tangle_ms = 1000;  // the timeout of a Tangle's calls
  int more_groups = 0;            // instead of the last call: duplicates of the group that are made and kept
};

// The call of that number, from 1: the last one is numbered(c, calls).
Case numbered(Case c, int number);

// How many steps a rank's plan for the case's call has, with the case's algorithm: the places where COL_FAULT can
// strike. 1 for a backend's own algorithm, which is one step for col. 0 if no plan can be made for it.
int count_steps(const Case& c, int rank);

// A rank's report about itself.
struct Report {
  std::string code = {};       // of the error that ended it, by col::to_string; "wrong_data"; empty if all went well
  int error_rank = -1;         // col::Error::rank()
  std::string message = {};    // of that error, or what is wrong with the data
  std::string doing = {};      // "start", "join", "call 2", "barrier": what ended in this way
  double seconds = 0;          // the time that this took
  std::string later = {};      // the code of the error of a call after the first error; empty if there was none
  std::string regrouped = {};  // "success", or what went wrong in a new group of the remaining ranks; empty: not tried
  std::uint64_t at_ns = 0;     // when it ended, by core::clock_ns()
  bool good() const { return code.empty(); }
};

// One line of JSON each, without its end.
std::string encode(const Drill& drill);
std::string encode(const Report& report);
// Throws std::invalid_argument for another text.
Drill decode_drill(std::string_view text);
// Nothing if the text is not a report.
std::optional<Report> decode_report(std::string_view line);

// What `colcheck --fault-rank TEXT` does (rank_main.cpp): it is one rank of a sacrificial job. Its stdin is a socket to
// the process that started it. It does what `text`, a Drill, says, reports, and returns the exit code: 0 if all went
// well, 1 if something has been reported, 2 if the text is not a Drill or nobody listens. Never throws. Requires: no
// other thread; main() calls it, because the process may end in here.
int fault_rank_main(std::string_view text);

}  // namespace col::colcheck
