// How the ranks of a job find one another through a store alone.
//
//   every rank    announces itself:   member/<rank>, with a nonce of this attempt
//   rank 0        reads them all, checks that they agree, removes them, and writes the roster: who shares a host
//   every rank    reads the roster
//
// So a rank needs two calls to the store, and rank 0 two for each rank. The roster stays in the store until the next
// meeting of the job replaces it: a rank knows that of its own meeting by its nonce. While rank 0 waits, its word says
// who is missing; or it says why rank 0 refuses.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <col/group.hpp>

#include "core/clock/clock.hpp"
#include "core/job/process.hpp"

namespace col::group {

// By rank.
struct JobRoster {
  std::vector<std::uint64_t> nonces = {};
  std::vector<std::uint64_t> processes = {};  // words of core::ProcessId
  std::vector<int> hosts = {};                // the first rank on the same host

  std::uint64_t nonce(int rank) const { return nonces[static_cast<std::size_t>(rank)]; }
  core::ProcessId process(int rank) const {
    return core::ProcessId::from_word(processes[static_cast<std::size_t>(rank)]);
  }
  int host(int rank) const { return hosts[static_cast<std::size_t>(rank)]; }
};

// The part of the store in which a job meets. Requires a store.
std::shared_ptr<Store> meeting_scope(const ContextSpec& spec);

// Blocks until all ranks of `spec` have come. Errors: those of ContextSpec::meet() but for what is about the page. On
// failure, the announcement is withdrawn, so that the rank can try again.
JobRoster meet_job(const ContextSpec& spec, Store& scope, const Deadline& deadline);

// That process has ended, which another rank has waited for.
Error lost_in_meeting(const ContextSpec& spec, int rank, const core::ProcessId& process);

// The value of `key` that belongs to this meeting: what `accept` makes of it. Others are left over from earlier ones,
// and will be replaced.
template <class Accept>
auto read_own(Store& scope, std::string_view key, WaitContext& wait, const Accept& accept) {
  constexpr Duration kShortestPause = std::chrono::microseconds(50), kLongestPause = std::chrono::milliseconds(5);
  for (Duration pause = kShortestPause;; pause = std::min(2 * pause, kLongestPause)) {
    if (auto own = accept(scope.wait(key, wait))) return *std::move(own);
    core::sleep_for(pause);
    wait.check();
  }
}

}  // namespace col::group
