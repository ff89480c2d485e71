// How the ranks of a group find one another through the store.
//
//   every rank    announces itself:  member/<rank> = its view of the group, with a nonce of this attempt
//   rank 0        reads them all, checks that they agree, removes the announcements, and then
//                 answers each:      answer/<nonce> = where the roster is, or why there is no group
//   every rank    reads the roster:  all members in rank order
//
// So when any rank has left the meeting, no announcement is left that the next meeting under the same name could take
// for its own, whoever its members are. The nonce identifies an attempt that was given up (by a timeout).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <col/job.hpp>
#include <col/store.hpp>

#include "group/join/member.hpp"

namespace col::group {

struct Roster {
  std::uint64_t token = 0;      // equal on all members, and on no other process ever
  std::vector<Member> members;  // in rank order
};

// `scope` is the store's scope of the group's name. Errors: already_initialized (a live process has announced itself as
// this rank), mismatch on every rank (world size, backend or version differ; names the rank that differs), timeout
// (names the missing ranks), and those of wait.check(). On failure, the announcement is withdrawn, so that the rank can
// try again.
Roster meet(std::string_view group, const Member& self, Store& scope, WaitContext& wait);

// A short wait for a key, for callers that look at other things too: sleeps until `key` is set, or for one slice of
// `wait`. Throws what the store throws, except a timeout.
void doze(Store& scope, const std::string& key, WaitContext& wait);

// Removes the roster, after every member has read it.
void forget(const Roster& roster, Store& scope) noexcept;

}  // namespace col::group
