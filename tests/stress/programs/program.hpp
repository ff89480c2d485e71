// A random program for all ranks together: events in one order, each in one group.
//
// Every rank begins the events that it takes part in, in that order, and blocks in the blocking ones; when it waits for
// the others, and in which order, it decides by itself. So all programs are correct by the rules of MPI: of the ranks
// that block, the one that has come least far waits for an event that all its ranks have begun.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/col.hpp>

#include "common/reference.hpp"

namespace programs {

// The collectives, each by its own number, and what comes after them.
enum class Kind {
  allreduce = static_cast<int>(col::Collective::allreduce),
  reduce = static_cast<int>(col::Collective::reduce),
  broadcast = static_cast<int>(col::Collective::broadcast),
  alltoall = static_cast<int>(col::Collective::alltoall),
  alltoallv = static_cast<int>(col::Collective::alltoallv),
  scan = static_cast<int>(col::Collective::scan),
  exscan = static_cast<int>(col::Collective::exscan),
  barrier = static_cast<int>(col::Collective::barrier),
  message,   // from `root` to `peer`
  sendrecv,  // every rank to the one that is `peer` ranks on
  batch,     // the transfers
  recv_any,  // `root` takes one from each of the transfers
  objects,   // strings of lengths that differ: every rank gets all
  dup,       // a new group, a call in it, and its end
};
inline constexpr int kKinds = 22, kFirstOther = static_cast<int>(Kind::message);
inline bool is_collective(Kind kind) {
  return kind < Kind::message;
}
inline col::Collective collective_of(Kind kind) {
  return static_cast<col::Collective>(kind);
}
std::string_view name_of(Kind kind);  // of a collective, its own

enum class Operator { sum, product, min, max, avg, band, bor, bxor, premul_sum, first_nonzero };
inline constexpr int kOperators = 10;

struct Transfer {
  int from = 0, to = 0;
  int tag = 0;
};

// Ranks are those of the group.
struct Event {
  int number = 0;          // in the program
  std::uint64_t seed = 0;  // of its values
  Kind kind = Kind::barrier;
  std::size_t group = 0;  // in the list of groups
  int size = 1;           // of the group
  bool is_async = false;  // as one: a blocking call and an asynchronous one do not match
  bool in_place = false;
  bool deterministic = false;
  bool in_shared = false;   // in memory that the ranks share, where a call blocks and there is some
  bool is_dropped = false;  // nobody waits for it: it ends in the next blocking barrier of its group
  col::DType dtype = col::DType::int32;
  Operator op = Operator::sum;
  std::size_t count = 0;  // elements of one block
  int root = 0;
  int peer = 0;
  int tag = 0;
  std::vector<std::size_t> counts = {};  // of the v-forms; of alltoallv: from rank s to rank d at s * size + d
  std::vector<Transfer> transfers = {};

  bool has_operator() const;
  bool takes_part(int rank) const;
  std::string text() const;  // "17: iallreduce of 4096 float32 by sum in group 3"
};

// What there may be besides.
struct Extras {
  bool making = false;    // groups are made in the middle
  bool dropping = false;  // some calls are never waited for
};

// `sizes` are those of the groups; empty groups have no events.
std::vector<Event> make_program(std::uint64_t seed, int events, const std::vector<int>& sizes, Extras extras);

// ---- What the events must give, by the plainest means: every rank can say what every rank brings
//
// All values are whole numbers so small that no type and no order of summing rounds them.

// The collective that an event is. Requires: it is one.
col::tools::ReferenceCall call_of(const Event& event);

// The operator that a rank passes. Requires: the event has one.
col::Op op_of(const Event& event, int rank);

// Element `index` of what a rank brings. Of the transfers of a batch or a recv_any, `rank` is the number.
std::int64_t value_of(const Event& event, int rank, std::size_t index);

using Bytes = std::vector<std::byte>;
Bytes input_of(const Event& event, int rank, std::size_t count);
Bytes expected_output(const Event& event, int rank);

// Empty when they are equal; else the first difference, in words.
std::string difference(const Event& event, const std::byte* found, const Bytes& expected);

}  // namespace programs
