// Calls in words and as numbers, in the form in which ranks compare them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <col/error.hpp>
#include <col/request.hpp>

#include "group/call/dispatch.hpp"

namespace col::group {

// The elements that the buffers of all ranks have in common.
ConstTensorView common_view(const Request& request);

// The part of a call that a request is.
struct Piece {
  std::size_t first = 0;  // the number of its first element in the call
  std::size_t whole = 0;  // the number of elements of the call; 0: the request is the whole call
};

// What the ranks of one call must have in common, in addition to the request itself.
struct CallForm {
  bool asynchronous = false;
  bool compress = false;
  std::string_view algorithm = {};  // the algorithm that runs
  Piece piece = {};
  std::string_view part_of = {};  // the user's call that it is made for; empty: this one
  std::size_t length = 0;         // of a reduce in the tree's order: elements of the result, if all ranks know it
};

// "allreduce of 10 float32, sum, by ring", "dup: barrier, by dissemination". Equal on ranks whose calls match, and
// different on others.
std::string describe(const Request& request, const CallForm& form = {});

// The same as a number. Two calls of a group have the same number only if they differ in nothing but their memory.
std::uint64_t fingerprint(std::uint64_t group_token, const Request& request, const CallForm& form = {});

// "rank 3", or "ranks 3, 5, 8-15"; not more than a line can hold.
std::string ranks_text(const std::vector<int>& ranks);
// Ascending ranks as runs: the first and the last of each row of ranks without a gap. ranks_of() is the way back; it
// leaves out what is no rank of a group of that size, because the runs may come from another process.
using RankRuns = std::vector<std::pair<int, int>>;
RankRuns runs_of(const std::vector<int>& ranks);
std::vector<int> ranks_of(const RankRuns& runs, int world_size);

// The call of a rank that has left in good order, for messages.
inline constexpr std::string_view kHasLeft = "nothing more, and left the group";

struct Operation {
  std::string text;        // "allreduce of 10 float32, sum": equal on all ranks that match
  std::string board = {};  // for a message: its place on the board, "p/0/3/tag/5"
  std::uint64_t sequence = 0;
  bool collective = true;
  std::string called = {};               // the user's call, if the text does not say it
  std::optional<int> received_tag = {};  // for a message that is received
  std::vector<int> counterparts;  // the ranks of the group that must do the same, or, for a send, the matching recv
  // Only for alltoallv: what this rank sends to each rank and expects from it. Compared block by block.
  std::vector<std::size_t> in_counts = {}, out_counts = {};

  // The value for the board.
  std::string encode() const;
};

// A collective call, as far as ranks compare it.
struct CollectiveCall {
  std::uint64_t call = 0;  // hash of the call without its number
  Request request = {};    // its spans point to the copies below
  std::string words = {};  // for a call without a request: what it is, equal on all ranks that match
  CallForm form = {};
  std::vector<std::size_t> in_counts = {}, out_counts = {};
  std::shared_ptr<const Decision> decision = {};  // shared with the dispatcher's cache: form points into it
};
Operation operation_of(const CollectiveCall& call, std::uint64_t sequence, int rank, int size);

// The ranks below `size` without `rank`.
std::vector<int> all_but(int rank, int size);

// Whether the entry of `rank` on the board is the counterpart of what this rank does.
bool matches(const Operation& own, int own_rank, const std::string& posted, int rank);

// The mismatch between what this rank does and what others have written on the board (by rank, without this rank).
// Nothing while `final` is false and it is not clear which rank differs. The culprit is the first rank that is not of
// the majority, or, without a majority, one that has left. For a message, the error is about the peer. Requires: at
// least one entry does not match.
std::optional<Error> judge(const Operation& own, int own_rank, const std::map<int, std::string>& posted,
                           std::string_view group, bool final);

}  // namespace col::group
