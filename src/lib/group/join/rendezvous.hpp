// How the ranks of a group find one another through the store.
//
//   every rank    announces itself:  m/<rank> = its view of the group, with a nonce of this attempt
//                 and waits for:     a/<nonce>
//   rank 0        waits for all, checks that they agree, removes the announcements, and then
//                 answers the lowest rank of each host: the roster, which has all members; or each rank: why there is
//                 no group
//   the lowest rank of a host answers the others of that host: where in its memory they find the roster
//
// So the roster is read once a host, and a rank makes one trip to the store, the lowest of a host two, and rank 0
// three. When any rank has left the meeting, no announcement is left that the next meeting under the same name could
// take for its own, whoever its members are. The nonce identifies an attempt that was given up (by a timeout).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <col/job.hpp>
#include <col/store.hpp>

#include "core/unique_fd.hpp"
#include "group/call/operation.hpp"
#include "group/join/member.hpp"
#include "store/base/doze.hpp"

namespace col::group {

struct Roster {
  std::uint64_t token = 0;                   // equal on all members, and on no other process ever
  std::vector<Member> members;               // in rank order
  std::vector<std::uint64_t> answered = {};  // rank 0: the nonces of those it has answered
  std::vector<PeerInfo> peers = {};          // rank 0: the members, as they have announced themselves
  core::UniqueFd shared = {};                // the roster, for ranks of this host: open until all have read it
};

// What a meeting needs to know beside.
struct MeetingHelp {
  std::function<void()> when_slow = [] {};                                // called, again and again, if it takes long
  std::function<std::string(const std::vector<int>&)> name = ranks_text;  // of ranks that are missing, for messages
};

// `scope` is the store's scope of the group's name. Errors:
// already_initialized (a live process has announced itself as this rank), mismatch on every rank (world size, backend
// or version differ; names the rank that differs), timeout (names the missing ranks), and those of wait.check(). On
// failure, the announcement is withdrawn, so that the rank can try again.
Roster meet(std::string_view group, const Member& self, Store& scope, WaitContext& wait, const MeetingHelp& help = {});

// Instead of meet(), for a rank that has to fail: all ranks that wait for it, now or later, fail with its reason. The
// backend of `self` is one with_reason(). Throws as meet() does.
void decline(std::string_view group, const Member& self, Store& scope, WaitContext& wait);

using store::doze;

// Removes the roster and the answers, after every member has read them.
void forget(const Roster& roster, Store& scope, WaitContext& wait) noexcept;

}  // namespace col::group
