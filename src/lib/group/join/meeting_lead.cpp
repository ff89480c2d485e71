// Rank 0's part of a meeting.
#include <algorithm>

#include <col/error.hpp>

#include "core/hash.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/decoded.hpp"
#include "group/join/meeting.hpp"

namespace col::group {
namespace {

// How long rank 0 waits for those who could tell which of two opinions is the odd one, and how often it looks.
constexpr Duration kVotingTime = std::chrono::milliseconds(300), kVotingPause = std::chrono::milliseconds(50);
// How long one that has given up another backend may take to come with this one, at most.
constexpr Duration kStaleAnnouncement = std::chrono::milliseconds(2000);
// More members than this are not looked for, whatever a rank claims.
constexpr int kMaxVoters = 4096;

// Nothing if another version of col has written it, or nobody's.
std::optional<Member> readable(const std::string& text) {
  try {
    return Member::decode(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void Meeting::open() {
  ask({Call::erase(kRefused), Call::erase(lack_key(self_)), Call::erase(kMissing), Call::get(kTakenBack),
       announcement()},
      [this] {
        taken_back_ = trip_[3].answer;
        take_announcement(trip_[4]);
        go_on();
      });
}

// Waits for all announcements at once.
void Meeting::gather() {
  if (are_all_here()) return look_whether_still_there();
  std::vector<int> ranks{self_.world_size};  // a rank that was told of a larger world
  for (int rank = 1; rank < self_.world_size; ++rank) {
    if (!members_.contains(rank)) ranks.push_back(rank);
  }
  Calls calls;
  for (const int rank : ranks) calls.push_back(Call::wait(member_key(rank)));
  // One that does not count is read at once, again and again. Nobody answers rank 0: this waits a moment.
  if (std::exchange(has_stale_, false)) calls.push_back(Call::wait(answer_key(self_.nonce)));
  ask(
      std::move(calls), [this] { judge(); }, now_ + look_interval_,
      [this, ranks = std::move(ranks)](std::size_t call) {
        return call == ranks.size() || take(ranks[call], *trip_[call].answer);
      });
}

// An announcement has come. Returns whether others are still awaited.
bool Meeting::take(int rank, const std::string& text) {
  std::optional<Member> member = readable(text);
  if (!member) {
    unreadable_ = rank;
    return false;
  }
  // One that has given up another backend would have come by now. It has long stood there when the others give up.
  const bool has_had_time = now_ - started_ > std::min<Duration>(kStaleAnnouncement, deadline_.budget() / 2);
  if (rules_.lost(*member) || (gave_up_another(*member, self_.backend) && !has_had_time)) {
    has_stale_ = true;
    return true;
  }
  is_odd_ = is_odd_ || !agree(self_, *member);
  members_.emplace(rank, *std::move(member));
  return !is_odd_ && !are_all_here();
}

void Meeting::judge() {
  if (unreadable_ >= 0)
    return refuse(Error(ErrorCode::mismatch,
                        fmt::format("rank {} announces itself in words that this version of col ({}) cannot read; "
                                    "install one version on all hosts",
                                    unreadable_, own_version()),
                        group_, unreadable_));
  if (is_odd_) {
    voting_until_ = std::min<Time>(now_ + kVotingTime, deadline_.at());
    return vote();
  }
  are_all_here() ? look_whether_still_there() : look_around();
}

void Meeting::look_around() {
  look_later();
  if (!rules_.is_of_job()) return say_missing();
  Calls calls{Call::get(kTwice)};
  std::vector<int> ended{0};
  for (const auto& [rank, member] : members_) {
    if (rank == 0 || !rules_.lost(member)) continue;
    calls.push_back(Call::get(member_key(rank)));
    ended.push_back(rank);
  }
  ask(std::move(calls), [this, ended = std::move(ended)] {
    const std::string twice = trip_.front().answer.value_or("");
    const std::size_t line_end = std::min(twice.find('\n'), twice.size());
    const auto error = decode_error(std::string_view(twice).substr(line_end));
    const auto other = members_.find(error ? error->rank() : -1);
    // Else it is of an earlier attempt.
    if (other != members_.end() && twice.substr(0, line_end) == hex(other->second.nonce)) return refuse(*error);
    // One that gives up removes its announcement; one that is killed does not.
    for (std::size_t i = 1; i < ended.size(); ++i) {
      const Member& member = members_.at(ended[i]);
      if (trip_[i].answer && Member::decode(*trip_[i].answer).nonce == member.nonce)
        return refuse(*rules_.lost(member));  // who has come would wait for rank 0
    }
    say_missing();
  });
}

// For the others, each of whom would otherwise have to look for all.
void Meeting::say_missing() {
  std::string text = word_of(missing());
  if (text == said_) return gather();
  has_said_ = true;  // a word whose answer was late may stand there, too
  ask({Call::set(kMissing, std::move(text))}, [this] {
    said_ = trip_.front().value;
    gather();
  });
}

// The announcements are only read again if some rank has taken one back.
void Meeting::look_whether_still_there() {
  ask({Call::get(kTakenBack)}, [this] {
    if (trip_.front().answer == taken_back_) return answer();
    taken_back_ = trip_.front().answer;
    collect_again();
  });
}

// Forgets those that are other ones by now.
void Meeting::collect_again() {
  std::map<int, Member> before = std::exchange(members_, {{0, self_}});
  collect(self_.world_size, [this, before = std::move(before)] {
    std::erase_if(members_, [&](const auto& entry) {
      const auto known = before.find(entry.first);
      return known == before.end() || known->second.nonce != entry.second.nonce;
    });
    are_all_here() ? answer() : gather();
  });
}

// One trip, in this order: when any rank has left the meeting, no announcement is left.
void Meeting::answer() {
  roster_.token = core::Hash().add(group_).add(self_.nonce).add(self_.process_nonce).value();
  for (const auto& [rank, member] : members_) {
    roster_.members.push_back(member);
    roster_.peers.push_back(member.peer);
    if (rank != 0) roster_.answered.push_back(member.nonce);
  }
  const std::string text = encode_roster(roster_.token, roster_.members, rules_.is_of_job());
  const std::vector<int> hosts = hosts_of(roster_.peers);
  std::map<int, Welcome> leaders;  // by rank
  std::map<int, int> leader_of;    // by host
  for (const auto& [rank, member] : members_) {
    const int leader = leader_of.emplace(hosts[static_cast<std::size_t>(rank)], rank).first->second;
    Welcome& told = leaders[leader];
    if (leader == rank)
      told.token = roster_.token;
    else
      told.neighbours.emplace_back(rank, member.nonce);
  }
  Calls calls;
  for (const auto& [rank, member] : members_) calls.push_back(Call::erase(member_key(rank)));
  if (taken_back_) calls.push_back(Call::erase(kTakenBack));
  calls.push_back(Call::erase(kMissing));
  if (rules_.is_of_job()) calls.push_back(Call::erase(kTwice));
  calls.push_back(Call::set(own_roster_key(roster_.token), text));
  for (const auto& [rank, told] : leaders) {
    if (rank == 0)
      tell_neighbours(told, text, calls);
    else
      calls.push_back(
          Call::set(answer_key(members_.at(rank).nonce), fmt::format("{}\n{}", core::json_line(told), text)));
  }
  roster_.members = decode_roster(text, roster_.token, self_);  // as the others know them
  finish(std::move(calls));
  what_ = "the store to take the answers to the ranks of";
}

int Meeting::voters() const {
  int voters = 0;
  for (const auto& [rank, member] : members_) voters = std::max(voters, std::min(member.world_size, kMaxVoters));
  return voters;
}

// Waits a moment for the others to vote, and then tells all ranks, also those that come later.
void Meeting::vote() {
  collect(voters(), [this] {
    int absent = 0;
    while (members_.contains(absent)) ++absent;
    if (absent >= voters() || now_ >= voting_until_) return refuse(*disagreement(group_, members_));
    ask(
        {Call::wait(member_key(absent))}, [this] { vote(); }, std::min<Time>(now_ + kVotingPause, voting_until_));
  });
}

void Meeting::refuse(const Error& why) {
  const Error error = rules_.refusal(why);
  const std::string text = encode_error(error);
  // One who falls back to another backend does not care who lacks this one.
  Calls calls{Call::set(why.code() == ErrorCode::unavailable ? lack_key(self_) : std::string(kRefused), text)};
  for (const auto& [rank, member] : members_) {
    calls.push_back(Call::erase(member_key(rank)));
    if (rank != 0) calls.push_back(Call::set(answer_key(member.nonce), text));
  }
  fail(std::move(calls), error);
}

}  // namespace col::group
