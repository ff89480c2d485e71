#include "group/join/rendezvous.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/clock/this_process.hpp"
#include "core/hash.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/decoded.hpp"
#include "group/join/host.hpp"
#include "group/join/shared_text.hpp"
#include "json/json_fields.hpp"
#include "store/base/call_limit.hpp"
#include "store/base/run.hpp"

namespace col::group {

// What rank 0 tells the lowest rank of each host, with the roster on a line of its own; and that one the other ranks of
// its host.
struct Welcome {
  std::uint64_t token = 0;
  std::vector<std::pair<int, std::uint64_t>> neighbours = {};  // rank and nonce of those it must tell
  std::int64_t pid = 0;                                        // for the others: whose descriptor has the roster
  int descriptor = -1;                                         // -1: the store has it
};

template <class Visit>
void fields(Welcome& welcome, Visit& visit) {
  auto& [token, neighbours, pid, descriptor] = welcome;
  visit("welcome", token);
  visit.if_set("tell", neighbours, !neighbours.empty());
  visit.if_set("pid", pid, descriptor >= 0);
  visit.if_set("fd", descriptor, descriptor >= 0);
}

namespace {

using std::chrono::milliseconds;

// How long rank 0 waits for those who could tell which of two opinions is the odd one.
constexpr Duration kVotingTime = milliseconds(300);
// When rank 0 starts a new attempt, it removes an older refusal. It gets this long to do so.
constexpr Duration kStaleRefusal = milliseconds(300);
// How long one that has given up another backend may take to come with this one, at most.
constexpr Duration kStaleAnnouncement = milliseconds(2000);
// The same for rank 0, without which nobody can go on: its program may choose the other backend itself.
constexpr Duration kTimeToComeAgain = std::chrono::seconds(10);
// When a waiting rank first looks which others have come. It is later if there are many ranks. And the longest time
// between looks.
constexpr Duration kFirstLook = milliseconds(200), kLookForEach = milliseconds(2);
constexpr Duration kLongestLookInterval = std::chrono::seconds(1);
constexpr int kFewRanks = 16;
// When a meeting takes long.
constexpr Duration kSlow = milliseconds(500);
// More members than this are not looked for, whatever a rank claims.
constexpr int kMaxVoters = 4096;

constexpr std::string_view kRefused = "refused";
// What rank 0 says while it waits: the ranks that have not come. Where many wait for rank 0, one of them speaks in its
// place.
constexpr std::string_view kMissing = "missing";
// How often a rank has taken its announcement back.
constexpr std::string_view kTakenBack = "taken back";
constexpr std::string_view kWelcome = "{\"welcome\"";

// Short, as they pass for each rank several times.
std::string member_key(int rank) {
  return fmt::format("m/{}", rank);
}
std::string answer_key(std::uint64_t nonce) {
  return fmt::format("a/{:x}", nonce);
}
std::string roster_key(std::uint64_t token) {
  return fmt::format("roster/{:x}", token);
}

// Where rank 0 says that a rank cannot use the backend that this one wants.
std::string lack_key(const Member& self) {
  return fmt::format("lacks/{}", wanted_backend(self));
}

// What kMissing says. It is short, because all ranks read it again and again.
std::string word_of(const std::vector<int>& missing) {
  return core::json_line(runs_of(missing));
}

// Nothing if another version of col has written it, or nobody's.
std::optional<Member> readable(const std::string& text) {
  try {
    return Member::decode(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

using Kind = store::Call::Kind;

// Shares the roster with the other ranks of this host, and adds to `calls` what tells them where it is.
void tell_neighbours(Roster& roster, const Welcome& told, const std::string& text, std::vector<store::Call>& calls) {
  if (told.neighbours.empty()) return;
  roster.shared = share_text(text);
  Welcome answer{.token = told.token};
  if (roster.shared) {
    answer.pid = core::own_pid();
    answer.descriptor = roster.shared.get();
  }
  const std::string words = core::json_line(answer);
  for (const auto& [rank, nonce] : told.neighbours)
    calls.push_back({.kind = Kind::set, .key = answer_key(nonce), .value = words});
}

// One rank's attempt to join.
class Attempt {
 public:
  Attempt(std::string_view group, const Member& self, Store& scope, WaitContext& wait, const MeetingHelp& help)
      : group_(group),
        self_(self),
        scope_(scope),
        wait_(wait),
        help_(help),
        started_(Deadline::Clock::now()),
        look_interval_(std::max<Duration>(kFirstLook, self.world_size * kLookForEach)) {}

  Roster run();
  void decline();
  void withdraw() noexcept;

  // Ranks that have not come, as far as is known here.
  std::vector<int> missing() const;

 private:
  void ask(std::vector<store::Call>& calls, const store::Answered& answered = {});
  std::optional<std::string> ask(store::Call call);
  bool ask_until_look(std::vector<store::Call>& calls, const store::Answered& answered);
  store::Call announcement() const;
  bool is_announced(const store::Call& call);
  void require_abandoned(std::string_view announcement) const;

  Roster lead();
  bool gather();
  void collect(int world_size);
  bool has_had_time() const;
  bool rank_0_has_given_up();
  bool still_there();
  Roster answer();
  [[noreturn]] void refuse();
  [[noreturn]] void refuse_unreadable(int rank);
  void say_missing();

  Roster follow();
  std::optional<std::string> look();
  void speak_for_rank_0();
  Roster welcome(const std::string& answer);
  void describe_missing();
  void say_if_slow();

  std::string_view group_;
  const Member& self_;
  Store& scope_;
  WaitContext& wait_;
  const MeetingHelp& help_;
  Deadline::Clock::time_point started_;
  std::map<int, Member> members_;  // those that have been seen
  std::map<int, Member> gave_up_;  // those that could not use another backend, and may come with this one
  std::optional<Deadline::Clock::time_point> rank_0_gave_up_;  // when it was first seen
  bool announced_ = false;
  std::optional<std::string> expected_;  // what stands in place of the announcement
  Duration look_interval_;
  std::optional<std::string> taken_back_;  // rank 0: the counter, when it began
  std::string said_;                       // the ranks that are missing, by the one who speaks
  bool said_any_ = false;
  std::optional<std::vector<int>> heard_;  // the others: that word
  bool has_looked_ = false;
};

// ---- The store

void Attempt::ask(std::vector<store::Call>& calls, const store::Answered& answered) {
  store::run(scope_, calls, wait_, answered);
}

// A call of the store itself has the store's own timeout: it would go on beyond the deadline, and hear of nothing.
std::optional<std::string> Attempt::ask(store::Call call) {
  std::vector<store::Call> calls{std::move(call)};
  ask(calls);
  return std::move(calls.front().answer);
}

// Returns false if the time to look around has come before all had an answer. Not before the store has answered once:
// to reach it may take long, and is not begun again and again.
bool Attempt::ask_until_look(std::vector<store::Call>& calls, const store::Answered& answered) {
  struct TimeToLook {};
  const auto look_at = Deadline::Clock::now() + look_interval_;
  WaitContext until_look(wait_.deadline(), wait_.page(), wait_.record());
  until_look.meanwhile([&] {
    wait_.check();
    if (announced_ && Deadline::Clock::now() >= look_at) throw TimeToLook();
  });
  try {
    store::run(scope_, calls, until_look, answered);
    return true;
  } catch (const TimeToLook&) {
    look_interval_ = std::max(look_interval_, std::min(2 * look_interval_, kLongestLookInterval));
    return false;
  }
}

// ---- The announcement

store::Call Attempt::announcement() const {
  return {
      .kind = Kind::compare_set, .key = member_key(self_.peer.rank), .value = self_.encode(), .expected = expected_};
}

// Whether this call has made the announcement. It may replace one that its process has left behind: this process in an
// earlier attempt, or one that has died since. Then it must be made again.
bool Attempt::is_announced(const store::Call& call) {
  announced_ = call.answer == call.expected || call.answer == call.value;  // the latter: of a try whose answer was late
  if (!announced_ && call.answer) require_abandoned(*call.answer);
  // Rank 0 may have read the one that stood there: as if that had been taken back.
  if (announced_ && call.expected && call.answer == call.expected) {
    const store::CallLimit limit(wait_.deadline());
    scope_.add(kTakenBack, 1);
  }
  expected_ = call.answer;
  return announced_;
}

void Attempt::require_abandoned(std::string_view announcement) const {
  const Member other = Member::decode(announcement);
  const bool own = other.process_nonce == self_.process_nonce;
  const bool declined = gave_up_another(other, {});  // its process may live, and has nothing to do with this group
  if (own || declined || is_gone(other.peer.pid, other.peer.boot_id, other.peer.pid_namespace)) return;
  throw has_already_joined(group_, other.peer);
}

// The counter comes after the announcement: rank 0 then either has not seen that, or sees that it may be gone.
void Attempt::withdraw() noexcept {
  if (!announced_) return;
  const store::CallLimit limit(kStoreTime);
  try {
    scope_.erase(member_key(self_.peer.rank));
    scope_.add(kTakenBack, 1);
    scope_.erase(answer_key(self_.nonce));
    if (said_any_) scope_.erase(kMissing);
  } catch (const std::exception&) {  // the store is gone with its job: nothing is left to withdraw from
  }
}

// Those who have come, in one trip.
void Attempt::collect(int world_size) {
  std::vector<store::Call> calls;
  std::vector<int> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    if (members_.count(rank) != 0) continue;
    calls.push_back({.kind = Kind::get, .key = member_key(rank)});
    ranks.push_back(rank);
  }
  gave_up_.clear();
  ask(calls, [&](std::size_t i) {
    if (!calls[i].answer) return true;
    Member member = Member::decode(*calls[i].answer);
    (gave_up_another(member, self_.backend) ? gave_up_ : members_).insert_or_assign(ranks[i], std::move(member));
    return true;
  });
}

// One that has given up another backend would have come by now. It has long stood there when the others give up.
bool Attempt::has_had_time() const {
  return Deadline::Clock::now() - started_ > std::min<Duration>(kStaleAnnouncement, wait_.deadline().budget() / 2);
}

// The same of rank 0, for a rank that may have waited long before that one gave up another backend.
bool Attempt::rank_0_has_given_up() {
  if (members_.count(0) != 0 || gave_up_.count(0) == 0) return false;
  const auto now = Deadline::Clock::now();
  if (!rank_0_gave_up_) rank_0_gave_up_ = now;
  return now - *rank_0_gave_up_ > std::min<Duration>(kTimeToComeAgain, wait_.deadline().budget() / 4);
}

std::vector<int> Attempt::missing() const {
  if (heard_) return *heard_;
  std::vector<int> ranks;
  for (int rank = 0; rank < self_.world_size; ++rank) {
    if (members_.count(rank) == 0) ranks.push_back(rank);
  }
  return ranks;
}

void Attempt::describe_missing() {
  const std::vector<int> absent = missing();
  wait_.describe(absent.empty() ? fmt::format("rank 0 to answer the ranks of group '{}'", group_)
                                : fmt::format("{} to join group '{}'", help_.name(absent), group_));
}

void Attempt::say_if_slow() {
  if (Deadline::Clock::now() - started_ > kSlow) help_.when_slow();
}

Roster Attempt::run() {
  members_.emplace(self_.peer.rank, self_);
  return self_.peer.rank == 0 ? lead() : follow();
}

// Rank 0 finds the announcement, at the latest when it comes. Its own is for all to see at once.
void Attempt::decline() {
  while (!announced_) {
    std::vector<store::Call> calls{announcement()};
    ask(calls);
    if (!is_announced(calls.front())) wait_.check();
  }
  if (self_.peer.rank == 0)
    ask({.kind = Kind::set, .key = lack_key(self_), .value = encode_error(*disagreement(group_, {{0, self_}}))});
}

// ---- Rank 0

Roster Attempt::lead() {
  while (!announced_) {
    std::vector<store::Call> calls{{.kind = Kind::erase, .key = std::string(kRefused)},
                                   {.kind = Kind::erase, .key = lack_key(self_)},
                                   {.kind = Kind::erase, .key = std::string(kMissing)},
                                   {.kind = Kind::get, .key = std::string(kTakenBack)},
                                   announcement()};
    ask(calls);
    taken_back_ = calls[3].answer;
    if (!is_announced(calls[4])) wait_.check();
  }
  do {
    while (!gather()) {
      say_if_slow();
      wait_.check();
    }
  } while (!still_there());
  return answer();
}

// Waits for all announcements at once. Returns false if the time to look around has come.
bool Attempt::gather() {
  const int size = self_.world_size;
  std::vector<store::Call> calls;
  std::vector<int> ranks;
  bool odd = false, is_stale = false;
  int unreadable = -1;
  const auto look_for = [&](int rank) {
    calls.push_back({.kind = Kind::wait, .key = member_key(rank)});
    ranks.push_back(rank);
  };
  look_for(size);  // a rank that was told of a larger world
  for (int rank = 1; rank < size; ++rank) {
    if (members_.count(rank) == 0) look_for(rank);
  }
  std::size_t absent = calls.size() - 1;
  describe_missing();
  const bool all = absent == 0 || ask_until_look(calls, [&](std::size_t i) {
                     std::optional<Member> read = readable(*calls[i].answer);
                     if (!read) {
                       unreadable = ranks[i];
                       return false;
                     }
                     Member& member = *read;
                     // It is of an earlier attempt, unless it stands for long.
                     if (gave_up_another(member, self_.backend) && !has_had_time()) {
                       is_stale = true;
                       return true;
                     }
                     odd = odd || !agree(self_, member);
                     members_.emplace(ranks[i], std::move(member));
                     if (ranks[i] < size) --absent;
                     return !odd && absent > 0;
                   });
  if (unreadable >= 0) refuse_unreadable(unreadable);
  if (odd) refuse();
  // What stands there is soon replaced. Nobody answers rank 0: this waits a moment.
  if (all && absent > 0 && is_stale) doze(scope_, answer_key(self_.nonce), wait_);
  if (all && absent == 0) return true;
  say_missing();
  return false;
}

// For the others, each of whom would otherwise have to look for all.
void Attempt::say_missing() {
  describe_missing();
  std::string text = word_of(missing());
  if (text == said_) return;
  said_any_ = true;  // a word whose answer was late may stand there, too
  ask({.kind = Kind::set, .key = std::string(kMissing), .value = text});
  said_ = std::move(text);
}

// Whether all announcements are still those that were read; forgets those that are not. They are only read again if
// some rank has taken one back.
bool Attempt::still_there() {
  std::vector<store::Call> counter{{.kind = Kind::get, .key = std::string(kTakenBack)}};
  ask(counter);
  if (counter.front().answer == taken_back_) return true;
  taken_back_ = counter.front().answer;
  const std::map<int, Member> before = std::exchange(members_, {{0, self_}});
  collect(self_.world_size);
  std::erase_if(members_, [&](const auto& entry) {
    const auto known = before.find(entry.first);
    return known == before.end() || known->second.nonce != entry.second.nonce;
  });
  return static_cast<int>(members_.size()) == self_.world_size;
}

// One trip, in this order: when any rank has left the meeting, no announcement is left.
Roster Attempt::answer() {
  Roster roster;
  roster.token = core::Hash().add(group_).add(self_.nonce).add(self_.process_nonce).value();
  for (auto& [rank, member] : members_) roster.members.push_back(member);
  const std::string text = encode_roster(roster.token, roster.members);

  for (const Member& member : roster.members) roster.peers.push_back(member.peer);
  const std::vector<int> hosts = hosts_of(roster.peers);
  std::map<int, Welcome> leaders;  // by rank
  std::map<int, int> leader_of;    // by host
  for (const Member& member : roster.members) {
    const int rank = member.peer.rank;
    const int leader = leader_of.emplace(hosts[static_cast<std::size_t>(rank)], rank).first->second;
    Welcome& told = leaders[leader];
    if (leader == rank)
      told.token = roster.token;
    else
      told.neighbours.emplace_back(rank, member.nonce);
  }
  std::vector<store::Call> calls;
  for (const Member& member : roster.members)
    calls.push_back({.kind = Kind::erase, .key = member_key(member.peer.rank)});
  if (taken_back_) calls.push_back({.kind = Kind::erase, .key = std::string(kTakenBack)});
  calls.push_back({.kind = Kind::erase, .key = std::string(kMissing)});
  calls.push_back({.kind = Kind::set, .key = roster_key(roster.token), .value = text});
  for (auto& [rank, told] : leaders) {
    if (rank == 0)
      tell_neighbours(roster, told, text, calls);
    else
      calls.push_back({.kind = Kind::set,
                       .key = answer_key(roster.members[static_cast<std::size_t>(rank)].nonce),
                       .value = fmt::format("{}\n{}", core::json_line(told), text)});
  }
  for (const Member& member : roster.members) {
    if (member.peer.rank != 0) roster.answered.push_back(member.nonce);
  }
  wait_.describe(fmt::format("the store to take the answers to the ranks of group '{}'", group_));
  ask(calls);
  roster.members = decode_roster(text, roster.token, self_);  // as the others know them
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
  // One who falls back to another backend does not care who lacks this one.
  const bool is_lack = error.code() == ErrorCode::unavailable;
  std::vector<store::Call> calls{
      {.kind = Kind::set, .key = is_lack ? lack_key(self_) : std::string(kRefused), .value = text}};
  for (const auto& [rank, member] : members_) {
    calls.push_back({.kind = Kind::erase, .key = member_key(rank)});
    if (rank != 0) calls.push_back({.kind = Kind::set, .key = answer_key(member.nonce), .value = text});
  }
  ask(calls);
  throw error;
}

void Attempt::refuse_unreadable(int rank) {
  const Error error(ErrorCode::mismatch,
                    fmt::format("rank {} announces itself in words that this version of col ({}) cannot read; install "
                                "one version on all hosts",
                                rank, own_version()),
                    group_, rank);
  ask({.kind = Kind::set, .key = std::string(kRefused), .value = encode_error(error)});
  throw error;
}

// ---- The others

// Announces itself and waits for the answer in one trip.
Roster Attempt::follow() {
  for (;;) {
    std::vector<store::Call> calls;
    if (!announced_) calls.push_back(announcement());
    calls.push_back({.kind = Kind::wait, .key = answer_key(self_.nonce)});
    describe_missing();
    const bool asked =
        ask_until_look(calls, [&](std::size_t i) { return calls[i].kind == Kind::wait || is_announced(calls[i]); });
    std::optional<std::string> answer = std::move(calls.back().answer);
    if (!asked) {
      say_if_slow();
      answer = look();
    }
    if (answer) return welcome(*answer);
    wait_.check();
  }
}

// Returns a refusal, if there is one. The list of missing ranks matters only when this rank gives up. But it cannot
// look only at that moment, because ranks that give up at the same time are just leaving.
std::optional<std::string> Attempt::look() {
  std::vector<store::Call> calls{{.kind = Kind::get, .key = answer_key(self_.nonce)},
                                 {.kind = Kind::get, .key = std::string(kRefused)},
                                 {.kind = Kind::get, .key = std::string(kMissing)},
                                 {.kind = Kind::get, .key = lack_key(self_)}};
  ask(calls);
  gave_up_.clear();  // what was seen in an earlier look may have changed
  if (calls[0].answer) return calls[0].answer;
  const bool counts = Deadline::Clock::now() - started_ > kStaleRefusal;
  if (counts && calls[1].answer) return calls[1].answer;
  if (counts && calls[3].answer) return calls[3].answer;
  // Rank 0 may be one of them. Many ranks do not look before it has had time to come, and to speak.
  const bool is_few = self_.world_size <= kFewRanks, looked = std::exchange(has_looked_, true);
  said_any_ = said_any_ && calls[2].answer == said_;  // rank 0 has come, and has the word
  if (calls[2].answer && !said_any_)
    heard_ = ranks_of(decoded<RankRuns>(*calls[2].answer, "list of missing ranks"), self_.world_size);
  else if (!heard_ && is_few)
    collect(self_.world_size);
  else if (!heard_ && looked)  // a word that was taken back has been heard: those who give up with its speaker use it
    speak_for_rank_0();
  // It refuses for all others, but nobody for it.
  if (rank_0_has_given_up()) return encode_error(*disagreement(group_, gave_up_));
  describe_missing();
  return std::nullopt;
}

// If each of many ranks looked for all, the store would pass their announcements squared. So whoever takes the word
// looks for the others. The list that it takes it with is empty: nobody is known to be missing yet.
void Attempt::speak_for_rank_0() {
  if (!said_any_) {
    said_ = word_of({});
    said_any_ = !ask({.kind = Kind::compare_set, .key = std::string(kMissing), .value = said_});
    if (!said_any_) return;  // another one was faster
  }
  collect(self_.world_size);
  std::string text = word_of(missing());
  if (ask({.kind = Kind::compare_set, .key = std::string(kMissing), .value = text, .expected = said_}) == said_)
    said_ = std::move(text);
}

Roster Attempt::welcome(const std::string& answer) {
  if (!answer.starts_with(kWelcome)) {
    const auto refusal = decode_error(answer);
    throw refusal ? Error(refusal->code(), refusal->message(), group_, refusal->rank())
                  : Error(ErrorCode::internal, "an answer in the store cannot be read", group_);
  }
  const std::size_t line_end = answer.find('\n');
  const auto told = decoded<Welcome>(std::string_view(answer).substr(0, line_end), "answer of rank 0");
  Roster roster;
  roster.token = told.token;
  std::optional<std::string> text;
  if (line_end != std::string::npos) text = answer.substr(line_end + 1);
  if (told.descriptor >= 0) text = shared_text(told.pid, told.descriptor);
  const auto read = [&](const std::string& found) { return decode_roster(found, told.token, self_); };
  if (text) {
    try {
      roster.members = read(*text);
    } catch (const Error&) {  // the descriptor has become something else
    }
  }
  if (roster.members.empty()) {
    wait_.describe(fmt::format("the roster of group '{}'", group_));
    text = scope_.wait(roster_key(told.token), wait_);
    roster.members = read(*text);
  }
  std::vector<store::Call> calls;
  if (said_any_)
    calls.push_back({.kind = Kind::erase, .key = std::string(kMissing)});  // said after rank 0 had erased it
  tell_neighbours(roster, told, *text, calls);
  if (!calls.empty()) ask(calls);
  return roster;
}

}  // namespace

Roster meet(std::string_view group, const Member& self, Store& scope, WaitContext& wait, const MeetingHelp& help) {
  Attempt attempt(group, self, scope, wait, help);
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

void decline(std::string_view group, const Member& self, Store& scope, WaitContext& wait) {
  const MeetingHelp help;
  Attempt(group, self, scope, wait, help).decline();
}

void forget(const Roster& roster, Store& scope, WaitContext& wait) noexcept {
  try {
    std::vector<store::Call> calls{{.kind = Kind::erase, .key = roster_key(roster.token)}};
    for (const std::uint64_t nonce : roster.answered) calls.push_back({.kind = Kind::erase, .key = answer_key(nonce)});
    store::run(scope, calls, wait);
  } catch (const std::exception&) {  // the store went with its job
  }
}

}  // namespace col::group
