#include "group/join/rendezvous.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <col/error.hpp>

#include "core/hash.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/host.hpp"

namespace col::group {
namespace {

using std::chrono::milliseconds;

// How long rank 0 waits for those who could tell which of two opinions is the odd one.
constexpr Duration kVotingTime = milliseconds(300);
// When rank 0 starts a new attempt, it removes an older refusal. It gets this long to do so.
constexpr Duration kStaleRefusal = milliseconds(300);
// When a waiting rank first looks which others have come. It is later if there are many ranks, because each looks for
// all others. And the longest time between looks.
constexpr Duration kFirstLook = milliseconds(100), kLookForEach = milliseconds(4);
constexpr Duration kLongestLookInterval = std::chrono::seconds(5);
// More members than this are not looked for, whatever a rank claims.
constexpr int kMaxVoters = 4096;

constexpr std::string_view kRefused = "refused";
constexpr std::string_view kWelcome = "welcome ";

std::string member_key(int rank) {
  return fmt::format("member/{}", rank);
}
std::string answer_key(std::uint64_t nonce) {
  return fmt::format("answer/{:016x}", nonce);
}
std::string roster_key(std::uint64_t token) {
  return fmt::format("roster/{:016x}", token);
}

// One rank's attempt to join.
class Attempt {
 public:
  Attempt(std::string_view group, const Member& self, Store& scope, WaitContext& wait)
      : group_(group),
        self_(self),
        scope_(scope),
        wait_(wait),
        started_(Deadline::Clock::now()),
        look_interval_(std::max<Duration>(kFirstLook, self.world_size * kLookForEach)),
        next_look_(started_ + look_interval_) {}

  Roster run();
  void withdraw() noexcept;

  // Ranks that have not come, as far as is known here.
  std::vector<int> missing() const;

 private:
  void require_abandoned(std::string_view announcement) const;
  void announce();
  Roster lead();
  Roster follow();
  void collect(int world_size);
  bool still_there();
  [[noreturn]] void refuse();
  Roster welcome(std::string_view answer);
  void look_around();
  void describe_missing();

  std::string_view group_;
  const Member& self_;
  Store& scope_;
  WaitContext& wait_;
  Deadline::Clock::time_point started_;
  std::map<int, Member> members_;  // those that have been seen
  bool announced_ = false;
  Duration look_interval_;
  Deadline::Clock::time_point next_look_;
};

// An announcement may be replaced when its process has left it behind: this process in an earlier attempt, or one that
// has died since.
void Attempt::require_abandoned(std::string_view announcement) const {
  const Member other = Member::decode(announcement);
  const bool own = other.process_nonce == self_.process_nonce;
  if (own || is_gone(other.peer.pid, other.peer.boot_id, other.peer.pid_namespace)) return;
  throw Error(
      ErrorCode::already_initialized,
      fmt::format("rank {} (pid {} on {}) has already joined: this rank was started twice, or restarted under the "
                  "same COL_JOB_ID and COL_RESTART_COUNT; end the other process or start the job under a new id",
                  other.peer.rank, other.peer.pid, other.peer.hostname),
      group_, self_.peer.rank);
}

void Attempt::announce() {
  const std::string key = member_key(self_.peer.rank);
  for (std::optional<std::string> expected;;) {
    const auto before = scope_.compare_set(key, expected, self_.encode());
    if (before == expected) break;
    if (before) require_abandoned(*before);
    expected = before;
    wait_.check();
  }
  announced_ = true;
}

void Attempt::withdraw() noexcept {
  if (!announced_) return;
  try {
    scope_.erase(member_key(self_.peer.rank));
    scope_.erase(answer_key(self_.nonce));
  } catch (const std::exception&) {  // the store is gone with its job: nothing is left to withdraw from
  }
}

void Attempt::collect(int world_size) {
  for (int rank = 0; rank < world_size; ++rank) {
    if (members_.count(rank) != 0) continue;
    if (const auto text = scope_.get(member_key(rank))) members_.emplace(rank, Member::decode(*text));
  }
}

std::vector<int> Attempt::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < self_.world_size; ++rank) {
    if (members_.count(rank) == 0) ranks.push_back(rank);
  }
  return ranks;
}

// Whether all announcements are still those that were read; forgets those that are not.
bool Attempt::still_there() {
  const auto changed = [&](const auto& entry) {
    const auto text = scope_.get(member_key(entry.first));
    return !text || Member::decode(*text).nonce != entry.second.nonce;
  };
  return std::erase_if(members_, changed) == 0;
}

Roster Attempt::run() {
  announce();
  return self_.peer.rank == 0 ? lead() : follow();
}

Roster Attempt::lead() {
  scope_.erase(kRefused);
  members_.emplace(0, self_);
  for (;;) {
    collect(self_.world_size + 1);  // one more: a rank that was told of a larger world
    if (std::any_of(members_.begin(), members_.end(), [&](const auto& m) { return !agree(self_, m.second); })) refuse();
    const std::vector<int> absent = missing();
    if (absent.empty() && still_there()) break;
    describe_missing();
    wait_.check();
    if (!absent.empty()) doze(scope_, member_key(absent.front()), wait_);
  }
  Roster roster;
  roster.token = core::Hash().add(group_).add(self_.nonce).add(self_.process_nonce).value();
  for (auto& [rank, member] : members_) roster.members.push_back(member);
  scope_.set(roster_key(roster.token), encode_roster(roster.members));
  for (const Member& member : roster.members) scope_.erase(member_key(member.peer.rank));
  for (const Member& member : roster.members) {
    if (member.peer.rank != 0) scope_.set(answer_key(member.nonce), fmt::format("{}{:016x}", kWelcome, roster.token));
  }
  return roster;
}

// Waits a moment for the others to vote, and then tells all ranks, also those that come later.
void Attempt::refuse() {
  const Deadline voting = Deadline::after(std::min<Duration>(kVotingTime, wait_.deadline().remaining()));
  for (;;) {
    int world_size = 0;
    for (const auto& [rank, member] : members_)
      world_size = std::max(world_size, std::min(member.world_size, kMaxVoters));
    collect(world_size);
    if (static_cast<int>(members_.size()) >= world_size || voting.expired()) break;
    for (int rank = 0; rank < world_size; ++rank) {
      if (members_.count(rank) != 0) continue;
      doze(scope_, member_key(rank), wait_);
      break;
    }
  }
  const Error error = *disagreement(group_, members_);
  const std::string text = encode_error(error);
  scope_.set(kRefused, text);
  for (const auto& [rank, member] : members_) {
    scope_.erase(member_key(rank));
    if (rank != 0) scope_.set(answer_key(member.nonce), text);
  }
  throw error;
}

// The list of missing ranks matters only when this rank gives up. But it cannot look only at that moment, because ranks
// that give up at the same time are just leaving. A rank that was there once has come.
void Attempt::look_around() {
  const auto now = Deadline::Clock::now();
  if (now < next_look_ && !wait_.deadline().expired()) return;
  next_look_ = now + look_interval_;
  look_interval_ = std::max(look_interval_, std::min(2 * look_interval_, kLongestLookInterval));
  members_.emplace(self_.peer.rank, self_);
  collect(self_.world_size);
  describe_missing();
}

void Attempt::describe_missing() {
  const std::vector<int> absent = missing();
  wait_.describe(absent.empty() ? fmt::format("rank 0 to answer the ranks of group '{}'", group_)
                                : fmt::format("{} {} to join group '{}'", absent.size() == 1 ? "rank" : "ranks",
                                              fmt::join(absent, ", "), group_));
}

Roster Attempt::follow() {
  const std::string key = answer_key(self_.nonce);
  for (;;) {
    std::optional<std::string> answer = scope_.get(key);
    if (!answer && Deadline::Clock::now() - started_ > kStaleRefusal) answer = scope_.get(kRefused);
    if (answer) return welcome(*answer);
    look_around();
    wait_.check();
    doze(scope_, key, wait_);
  }
}

Roster Attempt::welcome(std::string_view answer) {
  if (!answer.starts_with(kWelcome)) {
    const auto refusal = decode_error(answer);
    throw refusal ? Error(refusal->code(), refusal->message(), group_, refusal->rank())
                  : Error(ErrorCode::internal, "an answer in the store cannot be read", group_);
  }
  scope_.erase(answer_key(self_.nonce));
  Roster roster;
  roster.token = std::stoull(std::string(answer.substr(kWelcome.size())), nullptr, 16);
  wait_.describe(fmt::format("the roster of group '{}'", group_));
  roster.members = decode_roster(scope_.wait(roster_key(roster.token), wait_));
  return roster;
}

}  // namespace

void doze(Store& scope, const std::string& key, WaitContext& wait) {
  const auto shortest = std::chrono::milliseconds(1);
  WaitContext brief(Deadline::after(std::max<Duration>(wait.slice(), shortest)), wait.page(), wait.record());
  try {
    scope.wait(key, brief);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
  }
}

Roster meet(std::string_view group, const Member& self, Store& scope, WaitContext& wait) {
  Attempt attempt(group, self, scope, wait);
  try {
    return attempt.run();
  } catch (const Error& error) {
    const std::vector<int> absent = attempt.missing();
    attempt.withdraw();
    // If only one rank has not come, the error is about that rank.
    if (error.code() != ErrorCode::timeout || error.rank() >= 0 || absent.size() != 1) throw;
    throw Error(error.code(), error.message(), group, absent.front());
  } catch (...) {
    attempt.withdraw();
    throw;
  }
}

void forget(const Roster& roster, Store& scope) noexcept {
  try {
    scope.erase(roster_key(roster.token));
  } catch (const std::exception&) {  // the store went with its job
  }
}

}  // namespace col::group
