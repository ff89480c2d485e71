// One thing that a rank does in a group, as others compare it with what they do.
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

// What a rank is said to have called that has left in good order.
inline constexpr std::string_view kHasLeft = "nothing more, and left the group";

struct Operation {
  std::string text;        // "allreduce of 10 float32, sum": equal on all ranks that match
  std::string board = {};  // of a message: its place on the board, "p/0/3/tag/5"
  std::uint64_t sequence = 0;
  bool collective = true;
  std::string called = {};               // what the user has called, where the text does not say
  std::optional<int> received_tag = {};  // of a message that is received
  std::vector<int> counterparts;         // the group ranks that must do the same, or, for a send, the matching recv
  // alltoallv alone: what this rank sends to, and expects from, each rank. Compared block by block.
  std::vector<std::size_t> in_counts = {}, out_counts = {};

  // What goes on the board.
  std::string encode() const;
};

// Whether what `rank` put on the board is the counterpart of what this rank does.
bool matches(const Operation& own, int own_rank, const std::string& posted, int rank);

// The mismatch between what this rank does and what others have put on the board (by rank, this rank excepted). Nothing
// while it is not clear yet who is the odd one and `final` is false: the first that is not of the majority, or, without
// one, that has left. Of a message, the error is about the peer. Requires: at least one does not match.
std::optional<Error> judge(const Operation& own, int own_rank, const std::map<int, std::string>& posted,
                           std::string_view group, bool final);

}  // namespace col::group
