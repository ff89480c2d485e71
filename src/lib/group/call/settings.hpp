// What the members of a group must agree on, and which rank differs if they do not.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include <col/error.hpp>

#include "group/join/member.hpp"

namespace col::group {

bool agree(const Member& a, const Member& b);

// The mismatch among `members` (by rank); nothing if they agree. It names the rank that differs from the majority.
std::optional<Error> disagreement(std::string_view group, const std::map<int, Member>& members);

}  // namespace col::group
