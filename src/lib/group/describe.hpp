// A collective call in words, and as a number; and ranks in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/backend.hpp>

namespace col::group {

// The elements that all ranks' buffers have in common.
ConstTensorView common_view(const Request& request);

// Which part of a call a request is.
struct Piece {
  std::size_t first = 0;  // its first element's number in the call
  std::size_t whole = 0;  // the call's elements; 0: the request is all of it
};

// What the ranks of one call must have in common, besides the request itself.
struct CallForm {
  bool asynchronous = false;
  bool compress = false;
  std::string_view algorithm = {};  // what runs
  Piece piece = {};
  std::string_view part_of = {};  // the call of the user's that it is made for; empty: this one
};

// "allreduce of 10 float32, sum, by ring", "dup: barrier, by dissemination": equal on ranks whose calls match,
// different on others.
std::string describe(const Request& request, const CallForm& form = {});

// The same as a number, which two calls of a group share only when they are the same but for their memory.
std::uint64_t fingerprint(std::uint64_t group_token, const Request& request, const CallForm& form = {});

// "rank 3" or "ranks 3, 5".
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace col::group
