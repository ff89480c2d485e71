#include "group/join/meeting.hpp"

#include <algorithm>

#include <col/error.hpp>

#include "group/diagnosis/failure.hpp"
#include "group/join/decoded.hpp"

namespace col::group {
namespace {

using std::chrono::milliseconds;

// When rank 0 starts a new attempt, it removes an older refusal. It gets this long to do so.
constexpr Duration kStaleRefusal = milliseconds(300);
// How long rank 0, without which nobody can go on, may take to come with this backend after it has given up another
// one, at most: its program may choose this one itself.
constexpr Duration kTimeToComeAgain = std::chrono::seconds(10);
// When a waiting rank first looks which others have come. It is later if there are many ranks. And the longest time
// between looks.
constexpr Duration kFirstLook = milliseconds(200), kLookForEach = milliseconds(2);
constexpr Duration kLongestLookInterval = std::chrono::seconds(1);
constexpr int kFewRanks = 16;

}  // namespace

Meeting::Meeting(std::string_view group, const Member& self, MeetingRules& rules, Deadline deadline, Time now,
                 bool declines)
    : group_(group),
      self_(self),
      rules_(rules),
      deadline_(deadline),
      started_(now),
      now_(now),
      look_interval_(std::max<Duration>(kFirstLook, self.world_size * kLookForEach)),
      declines_(declines) {
  members_.emplace(self.peer.rank, self);
  begin();
}

void Meeting::ask(Calls calls, Then then, std::optional<Time> until, OnAnswer on_answer) {
  trip_ = std::move(calls);
  then_ = std::move(then);
  until_ = until;
  on_answer_ = std::move(on_answer);
  what_.clear();
}

void Meeting::finish(Calls calls) {
  ask(std::move(calls), [this] { is_over_ = true; });
}

void Meeting::fail(Calls calls, const Error& why) {
  ask(std::move(calls), [why] { throw Error(why); });
}

void Meeting::on_end(Time now) {
  now_ = now;
  std::exchange(then_, {})();
}

void Meeting::look_later() {
  look_interval_ = std::max(look_interval_, std::min(2 * look_interval_, kLongestLookInterval));
}

std::string Meeting::awaited() const {
  const std::vector<int> absent = missing();
  if (what_.empty() && !absent.empty()) return fmt::format("{} to join {}", rules_.name(absent), rules_.title());
  return fmt::format("{} {}", what_.empty() ? "rank 0 to answer the ranks of" : what_, rules_.title());
}

std::vector<int> Meeting::missing() const {
  if (heard_) return *heard_;
  if (!leads() && rules_.is_of_job()) return {0};
  std::vector<int> ranks;
  for (int rank = 0; rank < self_.world_size; ++rank) {
    if (!members_.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

// ---- The announcement

void Meeting::begin() {
  if (declines_) {
    ask({announcement()}, [this] {
      take_announcement(trip_.front());
      go_on();
    });
  } else if (leads()) {
    open();
  } else {
    follow();
  }
}

Meeting::Call Meeting::announcement() const {
  return Call::compare_set(member_key(self_.peer.rank), expected_, self_.encode());
}

// Returns whether this call has made the announcement, and nothing else has to be said. It may replace one that its
// process has left behind: this process in an earlier attempt, or one that has died since. Then it must be made again.
bool Meeting::take_announcement(const Call& call) {
  is_announced_ = call.answer == call.expected || call.answer == call.value;  // the latter: its answer was late
  // Rank 0 may have read the one that stood there: as if that had been taken back.
  has_replaced_ = is_announced_ && call.expected && call.answer == call.expected;
  expected_ = call.answer;
  return is_announced_ && !has_replaced_;
}

// After a trip with the announcement.
void Meeting::go_on() {
  if (is_announced_ && std::exchange(has_replaced_, false)) return ask({taking_back("replaced")}, [this] { go_on(); });
  // Rank 0 finds the announcement, at the latest when it comes. Its own is for all to see at once.
  if (is_announced_ && declines_)
    return finish(!leads() ? Calls()
                           : Calls{Call::set(lack_key(self_), encode_error(*disagreement(group_, {{0, self_}})))});
  if (is_announced_) return leads() ? gather() : look();
  if (expected_) {
    const Member other = Member::decode(*expected_);
    if (!rules_.may_replace(other)) {
      const Error error = rules_.taken(other);
      if (!rules_.is_of_job()) throw Error(error);
      // The others may wait for the rank that this process should be.
      return fail({Call::set(kTwice, fmt::format("{}\n{}", hex(other.nonce), encode_error(error)))}, error);
    }
  }
  begin();
}

// No two writes are alike.
Meeting::Call Meeting::taking_back(std::string_view how) const {
  return Call::set(kTakenBack, fmt::format("{} {}", how, hex(self_.nonce)));
}

// The word comes after the announcement: rank 0 then either has not seen that, or sees that it may be gone.
Meeting::Calls Meeting::withdrawal() const {
  if (!is_announced_ || declines_) return {};
  Calls calls{Call::erase(member_key(self_.peer.rank)), taking_back("by"), Call::erase(answer_key(self_.nonce))};
  if (has_said_) calls.push_back(Call::erase(kMissing));
  return calls;
}

// Looks who has come, in one trip.
void Meeting::collect(int world_size, Then then) {
  Calls calls;
  std::vector<int> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    if (members_.contains(rank)) continue;
    calls.push_back(Call::get(member_key(rank)));
    ranks.push_back(rank);
  }
  ask(std::move(calls), [this, ranks = std::move(ranks), then = std::move(then)] {
    gave_up_.clear();
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (!trip_[i].answer) continue;
      Member member = Member::decode(*trip_[i].answer);
      (gave_up_another(member, self_.backend) ? gave_up_ : members_).insert_or_assign(ranks[i], std::move(member));
    }
    then();
  });
}

// ---- The ranks that do not lead

// Announces itself and waits for the answer in one trip.
void Meeting::follow() {
  Calls calls;
  if (!is_announced_) calls.push_back(announcement());
  calls.push_back(Call::wait(answer_key(self_.nonce)));
  ask(
      std::move(calls),
      [this] {
        if (const auto& answer = trip_.back().answer) return welcome(*answer);
        go_on();
      },
      now_ + look_interval_,
      [this](std::size_t call) { return trip_[call].kind == Call::Kind::wait || take_announcement(trip_[call]); });
}

// The list of missing ranks matters only when this rank gives up. But it cannot look only at that moment, because ranks
// that give up at the same time are just leaving.
void Meeting::look() {
  look_later();
  Calls calls{Call::get(answer_key(self_.nonce)), Call::get(kRefused), Call::get(lack_key(self_)), Call::get(kMissing)};
  if (rules_.is_of_job() && !heard_) calls.push_back(Call::get(kLastRoster));
  ask(std::move(calls), [this] {
    gave_up_.clear();  // what was seen in an earlier look may have changed
    for (const std::size_t place : {0, 1, 2}) {
      if (trip_[place].answer && (place == 0 || now_ - started_ > kStaleRefusal)) return welcome(*trip_[place].answer);
    }
    const auto& word = trip_[3].answer;
    has_said_ = has_said_ && word == said_;  // rank 0 has come, and has the word
    if (word && !has_said_) heard_ = ranks_of(decoded<RankRuns>(*word, "list of missing ranks"), self_.world_size);
    if (trip_.size() > 4 && trip_[4].answer) met_without_ = size_of_roster(*trip_[4].answer);
    // Rank 0 may be one of them. Many ranks do not look before it has had time to come, and to speak.
    const bool looked = std::exchange(has_looked_, true);
    if (heard_ || rules_.is_of_job()) return follow();
    if (self_.world_size <= kFewRanks) return collect(self_.world_size, [this] { look_at_rank_0(); });
    // A word that was taken back has been heard: those who give up with its speaker use it.
    looked ? speak_for_rank_0() : follow();
  });
}

// If each of many ranks looked for all, the store would pass their announcements squared. So whoever takes the word
// looks for the others. The list that it takes it with is empty: nobody is known to be missing yet.
void Meeting::speak_for_rank_0() {
  if (!has_said_)
    return ask({Call::compare_set(kMissing, {}, word_of({}))}, [this] {
      said_ = trip_.front().value;
      has_said_ = !trip_.front().answer;
      has_said_ ? speak_for_rank_0() : follow();  // another one was faster
    });
  collect(self_.world_size, [this] {
    ask({Call::compare_set(kMissing, said_, word_of(missing()))}, [this] {
      if (trip_.front().answer == said_) said_ = trip_.front().value;
      look_at_rank_0();
    });
  });
}

// Rank 0 refuses for all others, but nobody for it. A rank may have waited long before rank 0 gave up another backend.
void Meeting::look_at_rank_0() {
  if (members_.contains(0) || !gave_up_.contains(0)) return follow();
  if (!rank_0_gave_up_) rank_0_gave_up_ = now_;
  if (now_ - *rank_0_gave_up_ <= std::min<Duration>(kTimeToComeAgain, deadline_.budget() / 4)) return follow();
  throw Error(*disagreement(group_, gave_up_));
}

void Meeting::welcome(const std::string& answer) {
  if (!answer.starts_with(kWelcome)) {
    const auto refusal = decode_error(answer);
    if (!refusal) throw Error(ErrorCode::internal, "an answer in the store cannot be read", group_);
    throw Error(refusal->code(), refusal->message(), group_, refusal->rank(), refusal->world_rank());
  }
  const std::size_t line_end = answer.find('\n');
  const auto told = decoded<Welcome>(std::string_view(answer).substr(0, line_end), "answer of rank 0");
  std::optional<std::string> text;
  if (line_end != std::string::npos) text = answer.substr(line_end + 1);
  if (told.descriptor >= 0) text = rules_.shared(told.pid, told.descriptor);
  try {
    if (text) return leave_with(told, *text);
  } catch (const Error&) {  // the descriptor has become something else
  }
  ask({Call::wait(own_roster_key(told.token))}, [this, told] { leave_with(told, *trip_.front().answer); });
  what_ = "the roster of";
}

void Meeting::leave_with(const Welcome& told, const std::string& text) {
  roster_.members = decode_roster(text, told.token, self_);
  roster_.token = told.token;
  Calls calls;
  if (has_said_) calls.push_back(Call::erase(kMissing));  // said after rank 0 had erased it
  if (rules_.is_of_job()) calls.push_back(Call::erase(answer_key(self_.nonce)));
  tell_neighbours(told, text, calls);
  finish(std::move(calls));
}

// Shares the roster with the other ranks of this host, and adds to `calls` what tells them where it is.
void Meeting::tell_neighbours(const Welcome& told, const std::string& text, Calls& calls) {
  if (told.neighbours.empty()) return;
  roster_.shared = rules_.share(text);
  Welcome answer{.token = told.token};
  if (roster_.shared) {
    answer.pid = self_.peer.pid;
    answer.descriptor = roster_.shared.get();
  }
  const std::string words = core::json_line(answer);
  for (const auto& [rank, nonce] : told.neighbours) calls.push_back(Call::set(answer_key(nonce), words));
}

}  // namespace col::group
