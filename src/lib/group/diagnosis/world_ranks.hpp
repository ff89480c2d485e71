// Errors of groups that are a part of the job: which rank of the job the one is that they are about.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <col/error.hpp>
#include <col/request.hpp>

namespace col::group {

// `error`, which names ranks of the group, with the culprit's rank in the job. Its text then says both numbers where
// they differ. One that says so already is returned as it is.
Error with_world_rank(const Error& error, std::span<const PeerInfo> peers);

// "rank 1 did not" becomes "rank 1 (world rank 5) did not", and "ranks 0, 1 called" "ranks 0, 1 (world ranks 4, 5)
// called", each once; "rank 5 of the job" stays, and so do the words of another group's error.
std::string name_world_ranks(std::string_view message, std::span<const PeerInfo> peers);

}  // namespace col::group
