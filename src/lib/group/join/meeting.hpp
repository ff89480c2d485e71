// How processes that share a store become a group: each learns who the others are, or who is missing.
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
//
// The meeting is a state machine: it says which calls the store is to make next, and is told the answers and the time.
// It makes no system call. What only the host knows, it asks its Rules.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/job.hpp>

#include "core/unique_fd.hpp"
#include "group/join/meeting_words.hpp"
#include "group/join/member.hpp"
#include "store/base/run.hpp"

namespace col::group {

struct Roster {
  std::uint64_t token = 0;                   // equal on all members, and on no other process ever
  std::vector<Member> members;               // in rank order
  std::vector<std::uint64_t> answered = {};  // rank 0: the nonces of those it has answered
  std::vector<PeerInfo> peers = {};          // rank 0: the members, as they have announced themselves
  core::UniqueFd shared = {};                // the roster, for ranks of this host: open until all have read it
};

// Tells the meeting of a group from that of a job, and knows what only the host knows.
class MeetingRules {
 public:
  virtual ~MeetingRules() = default;
  // True for a job: nobody tidies up after it, so each rank erases its answer, and the roster stays until the next
  // meeting replaces it. Rank 0 alone knows who is missing, and a process that was told the rank of another one ends it
  // for all.
  virtual bool is_of_job() const = 0;
  // "group 'default'"
  virtual std::string title() const = 0;
  virtual std::string name(const std::vector<int>& missing) const = 0;
  // True if the announcement that stands in place of this rank's own is worth nothing any more.
  virtual bool may_replace(const Member& other) = 0;
  // The error of a process that has ended; nothing if it lives, as far as this is known here.
  virtual std::optional<Error> lost(const Member& /*member*/) { return std::nullopt; }
  // Errors: that process has the rank of this one; and why nobody can meet, as all are to hear it.
  virtual Error taken(const Member& other) = 0;
  virtual Error refusal(const Error& why) { return why; }
  // A text for the other ranks of this host; what one of them has shared.
  virtual core::UniqueFd share(const std::string& text);
  virtual std::optional<std::string> shared(std::int64_t pid, int descriptor);
};

class Meeting {
 public:
  using Time = Deadline::Clock::time_point;
  using Call = store::Call;
  using Calls = std::vector<Call>;

  // The attempt of `self` to join `group`, by `deadline`. `declines`: it says that it cannot; then there is no roster.
  Meeting(std::string_view group, const Member& self, MeetingRules& rules, Deadline deadline, Time now,
          bool declines = false);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  bool is_over() const { return is_over_; }
  // The next calls of the store, in one trip.
  Calls& calls() { return trip_; }
  // That call has its answer; returns whether the others are still needed.
  bool on_answer(std::size_t call, Time now) {
    now_ = now;
    return !on_answer_ || on_answer_(call);
  }
  // True if the trip has lasted so long that the calls which still wait are to be given up. Not before the store has
  // answered once: to reach it may take long, and is not begun again and again.
  bool has_lasted(Time now) const { return until_ && is_announced_ && now >= *until_; }
  // The trip has ended. Throws why there is no group.
  void on_end(Time now);
  // The calls that take back what this rank has said, after an error.
  Calls withdrawal() const;

  // Requires: it is over.
  Roster take_roster() { return std::move(roster_); }

  bool is_announced() const { return is_announced_; }
  bool waits() const { return until_.has_value(); }  // for other ranks
  // In words, for the message of a timeout.
  std::string awaited() const;
  // Ranks that have not come, as far as is known here, and whether rank 0 has said so, or is this one.
  std::vector<int> missing() const;
  bool has_heard() const { return leads() || heard_; }
  // The number of ranks with which the job has met without this process, if it has.
  std::optional<int> met_without() const { return met_without_; }

 private:
  using Then = std::function<void()>;
  using OnAnswer = std::function<bool(std::size_t call)>;

  bool leads() const { return self_.peer.rank == 0; }
  bool are_all_here() const { return static_cast<int>(members_.size()) == self_.world_size; }
  std::string own_roster_key(std::uint64_t token) const {
    return rules_.is_of_job() ? std::string(kLastRoster) : roster_key(token);
  }
  // Calls of the store, and what comes then. With `until`, this waits for others.
  void ask(Calls calls, Then then, std::optional<Time> until = {}, OnAnswer on_answer = {});
  void finish(Calls calls);
  void fail(Calls calls, const Error& why);
  void look_later();

  void begin();
  Call announcement() const;
  bool take_announcement(const Call& call);
  void go_on();
  Call taking_back(std::string_view how) const;
  void collect(int world_size, Then then);

  // Rank 0.
  void open();
  void gather();
  bool take(int rank, const std::string& text);
  void judge();
  void look_around();
  void say_missing();
  void look_whether_still_there();
  void collect_again();
  void answer();
  int voters() const;
  void vote();
  void refuse(const Error& why);

  // The others.
  void follow();
  void look();
  void speak_for_rank_0();
  void look_at_rank_0();
  void welcome(const std::string& answer);
  void leave_with(const Welcome& told, const std::string& text);
  void tell_neighbours(const Welcome& told, const std::string& text, Calls& calls);

  const std::string group_;
  const Member& self_;
  MeetingRules& rules_;
  const Deadline deadline_;
  const Time started_;
  Time now_;
  Calls trip_ = {};
  Then then_ = {};
  OnAnswer on_answer_ = {};
  std::optional<Time> until_ = {};
  std::string what_ = {};  // that is waited for, if it is not those that are missing
  Duration look_interval_;
  const bool declines_;
  bool is_over_ = false;
  Roster roster_ = {};

  std::map<int, Member> members_ = {};  // those that have been seen
  std::map<int, Member> gave_up_ = {};  // those that could not use another backend, and may come with this one
  bool is_announced_ = false, has_replaced_ = false;
  std::optional<std::string> expected_ = {};  // what stands in place of the announcement
  std::string said_ = {};                     // the ranks that are missing, by the one who speaks
  bool has_said_ = false;

  std::optional<std::string> taken_back_ = {};  // rank 0: what that key was when it began
  bool is_odd_ = false, has_stale_ = false;     // rank 0: of what has come
  int unreadable_ = -1;
  Time voting_until_ = {};

  std::optional<std::vector<int>> heard_ = {};  // the others: who is missing
  bool has_looked_ = false;
  std::optional<int> met_without_ = {};
  std::optional<Time> rank_0_gave_up_ = {};  // when it was first seen
};

}  // namespace col::group
