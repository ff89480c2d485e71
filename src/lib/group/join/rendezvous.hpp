// How the ranks of a group find one another through the store: meeting.hpp, with a store, a clock and this host.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <col/job.hpp>
#include <col/store.hpp>

#include "group/call/operation.hpp"
#include "group/join/meeting.hpp"
#include "store/base/doze.hpp"

namespace col::group {

// A meeting needs to know this beside.
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

// Makes the calls of a meeting until it is over. On failure, withdraws the announcement.
void hold(
    Meeting& meeting, Store& scope, WaitContext& wait, const std::function<void()>& when_slow = [] {});

using store::doze;

// Removes the roster and the answers, after every member has read them.
void forget(const Roster& roster, Store& scope, WaitContext& wait) noexcept;

}  // namespace col::group
