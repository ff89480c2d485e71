// A collective call in words and as a number; and ranks in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/backend.hpp>

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
};

// "allreduce of 10 float32, sum, by ring", "dup: barrier, by dissemination". Equal on ranks whose calls match, and
// different on others.
std::string describe(const Request& request, const CallForm& form = {});

// The same as a number. Two calls of a group have the same number only if they differ in nothing but their memory.
std::uint64_t fingerprint(std::uint64_t group_token, const Request& request, const CallForm& form = {});

// "rank 3" or "ranks 3, 5".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace col::group
