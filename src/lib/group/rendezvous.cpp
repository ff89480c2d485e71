#include "group/rendezvous.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/error.hpp>

namespace col::group {
namespace {

std::string member_key(int rank) {
  return fmt::format("member/{}", rank);
}

std::string who(const Member& member) {
  return fmt::format("rank {} (pid {} on {})", member.peer.rank, member.peer.pid, member.peer.hostname);
}

void announce(std::string_view group, const Member& self, Store& scope) {
  const auto before = scope.compare_set(member_key(self.peer.rank), std::nullopt, self.encode());
  if (!before) return;
  const Member other = Member::decode(*before);
  throw Error(ErrorCode::already_initialized,
              fmt::format("{} has already joined: this rank was started twice, or restarted under the same COL_JOB_ID "
                          "and COL_RESTART_COUNT; end the other process or start the job under a new id",
                          who(other)),
              group, self.peer.rank);
}

// One setting of two members; `value` renders it.
template <class Get>
void require_equal(std::string_view group, const Member& self, const Member& other, std::string_view what, Get get) {
  const auto mine = get(self);
  const auto theirs = get(other);
  if (mine == theirs) return;
  throw Error(ErrorCode::mismatch,
              fmt::format("ranks disagree on the {}: rank {} says {}, {} says {}; start all ranks with the same value",
                          what, self.peer.rank, mine, who(other), theirs),
              group, other.peer.rank);
}

void require_agreement(std::string_view group, const Member& self, const Member& other) {
  require_equal(group, self, other, "world size", [](const Member& m) { return m.world_size; });
  require_equal(group, self, other, "backend", [](const Member& m) { return fmt::format("'{}'", m.backend); });
  require_equal(group, self, other, "version of col's protocol", [](const Member& m) { return m.protocol; });
}

// A rank outside the world that this rank believes in: the other one was told of a larger world.
void require_no_outsider(std::string_view group, const Member& self, Store& scope) {
  if (const auto text = scope.get(member_key(self.world_size))) require_agreement(group, self, Member::decode(*text));
}

std::vector<int> missing(const std::vector<std::optional<Member>>& members) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (!members[r]) ranks.push_back(static_cast<int>(r));
  }
  return ranks;
}

void collect(std::string_view group, const Member& self, Store& scope, std::vector<std::optional<Member>>& members) {
  for (std::size_t r = 0; r < members.size(); ++r) {
    if (members[r]) continue;
    const auto text = scope.get(member_key(static_cast<int>(r)));
    if (!text) continue;
    members[r] = Member::decode(*text);
    require_agreement(group, self, *members[r]);
  }
}

// A wait for one key that gives up after a slice, so that the caller can look at all the others again.
void doze(Store& scope, int rank, WaitContext& wait) {
  WaitContext brief(Deadline::after(std::max<Duration>(wait.slice(), std::chrono::milliseconds(1))), wait.page(),
                    wait.record());
  try {
    scope.wait(member_key(rank), brief);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
  }
}

}  // namespace

std::vector<Member> meet(std::string_view group, const Member& self, Store& scope, WaitContext& wait) {
  announce(group, self, scope);
  try {
    std::vector<std::optional<Member>> members(static_cast<std::size_t>(self.world_size));
    for (;;) {
      collect(group, self, scope, members);
      require_no_outsider(group, self, scope);
      const std::vector<int> absent = missing(members);
      if (absent.empty()) break;
      wait.describe(fmt::format("{} {} to join group '{}'", absent.size() == 1 ? "rank" : "ranks",
                                fmt::join(absent, ", "), group));
      wait.check();
      doze(scope, absent.front(), wait);
    }
    std::vector<Member> all;
    all.reserve(members.size());
    for (auto& member : members) all.push_back(std::move(*member));
    return all;
  } catch (const Error& error) {
    // A disagreement stays announced, so that everybody else finds it too; anything else may be tried again.
    if (error.code() != ErrorCode::mismatch) withdraw(self.peer.rank, scope);
    throw;
  }
}

void withdraw(int rank, Store& scope) noexcept {
  try {
    scope.erase(member_key(rank));
  } catch (const std::exception&) {  // the store is gone with its job: nothing is left to withdraw from
  }
}

}  // namespace col::group
