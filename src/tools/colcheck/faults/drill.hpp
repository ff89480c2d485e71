// The orders for the ranks of a sacrificial job: the text after `--fault-rank`.
#pragma once

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
    calls_other,  // its last call is `other`
    stays_away,   // does not make the last call, but waits for the order to end
    never_joins,  // waits for the order to end instead of joining
    walks_out,    // ends before the last call, without col::finalize()
    leaves,       // ends before the last call, after col::finalize()
    copies_late,  // all make the last call as in held_copy.hpp, and this one is delayed
    hangs         // all ranks run a Tangle; this one stops in it, and waits for the order to end
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
  bool in_flight = false;         // another call is made before the last call is waited for
  bool regroups = false;          // ranks that have lost a rank make a group without it, and make the call there
  int more_groups = 0;            // instead of the last call: duplicates of the group that are made and kept
};

// The call of that number, from 1: the last one is numbered(c, calls).
Case numbered(Case c, int number);

// "TOKEN;calls=2;odd=1;oddity=stays_away": decode_drill(encode(d)) is d.
std::string encode(const Drill& drill);
// Throws std::invalid_argument that says what is wrong with the text.
Drill decode_drill(std::string_view text);

}  // namespace col::colcheck
