// One operation of a rank in a group, in the form in which ranks compare it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>

namespace col::group {

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

// Whether the entry of `rank` on the board is the counterpart of what this rank does.
bool matches(const Operation& own, int own_rank, const std::string& posted, int rank);

// The mismatch between what this rank does and what others have written on the board (by rank, without this rank).
// Nothing while `final` is false and it is not clear which rank differs. The culprit is the first rank that is not of
// the majority, or, without a majority, one that has left. For a message, the error is about the peer. Requires: at
// least one entry does not match.
std::optional<Error> judge(const Operation& own, int own_rank, const std::map<int, std::string>& posted,
                           std::string_view group, bool final);

}  // namespace col::group
