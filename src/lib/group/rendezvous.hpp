// How the ranks of a group find one another: each announces itself in the store, reads the others, and checks that all
// mean the same group.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <col/job.hpp>
#include <col/store.hpp>

#include "group/member.hpp"

namespace col::group {

// Announces `self` under the group's scope and returns all members in rank order.
//
// Errors: already_initialized (another process announced itself as this rank), mismatch (world size, backend or version
// differ; names who), timeout (names the ranks that are missing), and those of wait.check(). On failure the
// announcement is withdrawn, so that the rank can try again.
std::vector<Member> meet(std::string_view group, const Member& self, Store& scope, WaitContext& wait);

// Takes the announcement back. Safe once every rank has left meet().
void withdraw(int rank, Store& scope) noexcept;

}  // namespace col::group
