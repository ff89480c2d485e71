// The file `members` in the directory of a job: a list of the ranks that have entered, and a lock that all ranks in it
// share.
//
//   col members 1 <world size> <time of its making, ns>
//   <rank>
//   …
//
// All functions require the lock of the UserDirectory, so no process writes while another one reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/unique_fd.hpp"

namespace col::group::adopt {

struct Members {
  int world_size = 1;
  std::int64_t made_ns = 0;  // since the epoch
  std::vector<int> ranks;

  bool has(int rank) const;
  bool complete() const { return ranks.size() >= static_cast<std::size_t>(world_size); }
  std::string encode() const;
  // Nothing if `text` is not from encode().
  static std::optional<Members> decode(std::string_view text);
};

// Makes the file in `directory`, with a share of the lock. Throws io, resource.
core::UniqueFd make_members(const std::string& directory, const Members& members);
// Opens it and takes a share of the lock. Nothing if that is not possible.
core::UniqueFd open_members(const std::string& directory);
// Throws io, resource.
void add_member(const core::UniqueFd& file, int rank, const std::string& directory);

std::optional<Members> read_members(const std::string& directory);
// Whether nobody has a share of the lock. Also false if this cannot be known.
bool is_left_over(const std::string& directory) noexcept;

}  // namespace col::group::adopt
