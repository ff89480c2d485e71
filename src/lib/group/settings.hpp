// What the members of a group must agree on, and who is the odd one when they do not.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include <col/error.hpp>

#include "group/member.hpp"

namespace col::group {

bool agree(const Member& a, const Member& b);

// The mismatch among `members` (by rank); nothing when they agree. Names the odd rank when a majority says otherwise.
std::optional<Error> disagreement(std::string_view group, const std::map<int, Member>& members);

}  // namespace col::group
