#include "group/diagnosis/diagnosis.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "core/duration.hpp"
#include "core/joined.hpp"
#include "core/own_loss.hpp"
#include "group/call/operation.hpp"
#include "group/diagnosis/failure.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {
namespace {

using std::chrono::milliseconds;
using State = RankActivity::State;

// How long a broken connection waits for the rank that knows the cause to publish it.
constexpr Duration kExplainTime = milliseconds(250);
// How long a store that has not answered is left alone.
constexpr Duration kMutePause = std::chrono::seconds(5);
// So soon after that, it is not even asked at the end of a wait.
constexpr Duration kMoment = milliseconds(100);
// How long a rank that others have lost may take to find out what has happened: a connection that is silent is known to
// be lost by then.
constexpr Duration kFindsOutTime = std::chrono::seconds(3);
// Between two looks whether it has.
constexpr Duration kExplainPause = milliseconds(10);
// How many texts a rank leaves on the board: more than it usually has in flight.
constexpr std::size_t kKeptTexts = 16;
// Where the control page cuts a group's name.
constexpr std::size_t kRecordedName = 47;

std::uint64_t ns_of(Duration time) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
}

// The key with the rank that `rank` has lost: its error as text.
std::string loss_key(int rank) {
  return fmt::format("lost/{}", rank);
}

}  // namespace

std::string board_key(const Operation& operation, int rank) {
  return fmt::format("board/{}/{}", operation.board, rank);
}

bool is_same_group(const std::string& recorded, const std::string& group) {
  return recorded == group.substr(0, kRecordedName);
}

bool StoreHealth::is_mute() const noexcept {
  const std::uint64_t failed = failed_ns_.load(std::memory_order_relaxed);
  return failed != 0 && core::clock_ns() - failed < ns_of(kMutePause);
}

void StoreHealth::has_not_answered() noexcept {
  failed_ns_.store(core::clock_ns(), std::memory_order_relaxed);
}

void StoreHealth::ask_again() noexcept {
  const std::uint64_t failed = failed_ns_.load(std::memory_order_relaxed);
  if (failed != 0 && core::clock_ns() - failed >= ns_of(kMoment)) failed_ns_.store(0, std::memory_order_relaxed);
}

bool Surroundings::records_show_all() const {
  if (!control) return false;
  const std::vector<int> hosts = hosts_of(peers);
  return std::all_of(hosts.begin(), hosts.end(), [](int host) { return host == 0; });
}

// A launcher that is cut off ends its ranks in the name of no rank.
bool Surroundings::store_is_mute() const {
  if (store->is_mute()) return true;
  const auto ended = control && control->aborted() ? control->abort_cause() : std::nullopt;
  return ended && ended->code == ErrorCode::peer_lost && ended->rank < 0;
}

int Surroundings::rank_of(int global_rank) const {
  for (const PeerInfo& peer : peers) {
    if (peer.global_rank == global_rank) return peer.rank;
  }
  return -1;
}

// By one word of each: all ranks look for all others, and of those on other hosts nothing is here. To read every record
// for each of 512 ranks took a processor longer than the barrier that was looked into.
const RankRecord* Surroundings::record_of(int global_rank) const {
  if (global_rank < 0) return nullptr;
  // Starts at the usual place.
  for (int i = 0, count = control ? control->local_ranks() : 0; i < count; ++i) {
    const RankRecord& of = control->record((global_rank + i) % count);
    if (of.rank() == global_rank) return &of;
  }
  return nullptr;
}

std::optional<RankActivity> Surroundings::activity_of(int member) const {
  if (member < 0 || member >= static_cast<int>(peers.size())) return std::nullopt;
  const RankRecord* const of = record_of(peers[static_cast<std::size_t>(member)].global_rank);
  return of != nullptr ? std::optional(of->read()) : std::nullopt;
}

// A record tells of the call that its rank waits for, which may have started later ones; the flight recorder has those.
std::uint64_t Surroundings::last_call(const RankActivity& of) const {
  std::uint64_t last = of.sequence;
  if (const RankRecord* const its = record_of(of.rank)) {
    for (const RecordedGroup& one : its->groups_ever())
      if (one.token == token) last = std::max(last, one.last);
  }
  return last;
}

Diagnosis::Diagnosis(Surroundings& surroundings, Describe describe)
    : surroundings_(surroundings), describe_(std::move(describe)) {}

Diagnosis::Diagnosis(Surroundings& surroundings, std::vector<Operation> operations)
    : surroundings_(surroundings), operations_(std::move(operations)), seen_(operations_.size()) {}

// Keeps only what has not ended: of several messages, or calls that were begun together, some end while others wait.
void Diagnosis::describe() {
  if (!describe_) return;
  std::vector<Operation> left = describe_();
  const auto is_same = [](const Operation& one, const Operation& other) {
    return one.sequence == other.sequence && one.text == other.text && one.board == other.board;
  };
  if (std::equal(left.begin(), left.end(), operations_.begin(), operations_.end(), is_same)) return;
  operations_ = std::move(left);
  seen_.assign(operations_.size(), {});
}

// A store that is gone (the job is being ended) or mute tells nothing, and is not asked again for a while: the wait
// goes on to its deadline, or to the abort flag.
void Diagnosis::look_at_store(const std::function<void(Store&)>& look) {
  if (surroundings_.store_is_mute()) return;
  try {
    look(*surroundings_.scope);
  } catch (const std::exception&) {
    surroundings_.store->has_not_answered();
  }
}

std::optional<std::string> Diagnosis::ask(const std::string& key) {
  std::optional<std::string> value;
  look_at_store([&](Store& scope) { value = scope.get(key); });
  return value;
}

bool Diagnosis::on_slow(Duration waited) {
  const bool again = look();
  if (waited >= kHoldupTime) say_who_holds_up(false);
  return again;
}

// A rank's process has ended: it may be one that this call waits for. The store is asked only if it is.
void Diagnosis::on_news(std::uint32_t news) {
  if (surroundings_.news_heard == news) return;
  const store::CallLimit limit(kStoreTime);
  describe();
  look_for_lost_peer();
  // One that is gone has done its part in this call, but not in the next one, which looks, too.
  if (!lost_peer(false)) surroundings_.news_heard = news;
}

bool Diagnosis::look() {
  const store::CallLimit limit(kStoreTime);
  post();
  describe();
  look_for_failure();
  look_for_lost_peer();
  look_for_mismatch(false);
  return voting_ends_.has_value();
}

void Diagnosis::say_whom_it_awaits(Duration waited) {
  if (waited < kHoldupTime) return;
  describe();
  say_who_holds_up(false);
}

// For ranks that wait for this rank in other groups.
void Diagnosis::say_who_holds_up(bool thorough) {
  const auto holdup = find_holdup(surroundings_, operations_, thorough);
  int rank = holdup ? holdup->activity.rank : -1;
  if (tells_) {  // there may be ranks that do not see this one's record
    const store::CallLimit limit(kStoreTime);
    const int awaited = surroundings_.records_show_all() ? rank : world_rank_of(accuse(thorough));
    tell(awaited >= 0 ? awaited : kSomebody);
    // A rank that gives up is not seen to wait any more.
    if (thorough && rank < 0) rank = std::max(told_, -1);
  }
  if (surroundings_.record != nullptr) surroundings_.record->held_up_by(rank);
}

void Diagnosis::tell(int world_rank) {
  if (std::exchange(told_, world_rank) == world_rank && has_told_all_) return;
  const bool to_all = !surroundings_.records_show_all();
  if (to_all) surroundings_.holdup = told_;  // also where the store does not answer now
  look_at_store([&](Store&) {
    if (to_all) post_calls(surroundings_, told_);
    if (surroundings_.post_others) has_told_all_ = surroundings_.post_others(told_, to_all);
  });
}

void Diagnosis::withdraw() noexcept {
  const store::CallLimit limit(kStoreTime);
  tell(kNobody);
}

void Diagnosis::post() {
  look_at_store([&](Store&) {
    post_calls(surroundings_, std::nullopt);
    if (surroundings_.post_others) surroundings_.post_others(std::nullopt, true);
  });
  if (posted_) return;
  posted_ = true;
  describe();
  look_at_store([this](Store& scope) {
    // Texts stay beyond the end of their operation: others may still ask who had come.
    auto& keys = surroundings_.own_board_keys;
    while (keys.size() >= kKeptTexts) {
      scope.erase(keys.front());
      keys.erase(keys.begin());
    }
    for (const Operation& operation : operations_) {
      if (operation.collective) continue;
      std::string key = board_key(operation, surroundings_.rank);
      scope.set(key, operation.encode());
      keys.push_back(std::move(key));
    }
  });
}

// ---- Failures and deaths

void Diagnosis::look_for_failure(bool last_chance) {
  std::optional<Error> failure;
  look_at_store([&](Store& scope) { failure = failure_in(scope); });
  if (!failure) return;
  // Others have lost this rank: it may be about to find out why, as where a link is cut.
  if (core::is_own_loss(*failure, surroundings_.rank)) {
    if (!finds_out_) finds_out_ = Deadline::after(kFindsOutTime);
    if (!last_chance && !finds_out_->expired()) return;
  }
  throw core::as_read_by(surroundings_.rank, *failure);
}

void Diagnosis::look_for_lost_peer() {
  if (const auto cause = abort_cause()) throw *cause;
  const auto lost = lost_peer(true);
  if (!lost) return;
  // The rank may have ended because of another failure, or have left this group in good order before it ended.
  look_for_failure();
  look_for_mismatch(true);
  throw *lost;
}

std::optional<Error> Diagnosis::abort_cause() const {
  const auto& control = surroundings_.control;
  const auto cause = control ? control->abort_cause() : std::nullopt;
  if (!cause) return std::nullopt;
  // The process that ended the job has named a rank of the job.
  const int rank = surroundings_.rank_of(cause->rank);
  std::string message = cause->message;
  if (rank >= 0 && rank != cause->rank) message += fmt::format(" (rank {} of this group)", rank);
  return Error(cause->code, message, surroundings_.group, rank, cause->rank);
}

// The mismatch where `rank` has left after this call, and others are in a later call already, which it never made. They
// have ended the group for all, also for this rank, which is still in the call before.
std::optional<Error> Diagnosis::missed_by_leaver(int rank) const {
  if (!has_made(operations_.front(), rank) || !heard_.at(rank)->has_left) return std::nullopt;
  const std::uint64_t missed = heard_.at(rank)->end();
  std::map<int, std::string> called;
  for (const auto& [other, calls] : heard_) {
    if (auto text = calls->at(missed)) called.emplace(other, *std::move(text));
  }
  const auto caller =
      std::find_if(called.begin(), called.end(), [](const auto& one) { return one.second != kHasLeft; });
  if (caller == called.end()) return std::nullopt;
  const int by = caller->first;
  const Operation operation{.text = caller->second.substr(0, caller->second.find('\n')),
                            .sequence = missed,
                            .counterparts = all_but(by, surroundings_.size())};
  called.erase(caller);
  return judge(operation, by, called, surroundings_.group, true);
}

std::optional<Error> Diagnosis::left_in_good_order(int rank) const {
  const auto activity = rank >= 0 ? surroundings_.activity_of(rank) : std::nullopt;
  if (!activity || activity->state != State::finished || has_made(operations_.front(), rank)) return std::nullopt;
  return Error(
      ErrorCode::peer_lost,
      fmt::format("rank {} has left the group in good order while others still call {} (operation {}); every rank "
                  "must make the same calls{}",
                  rank, operations_.front().text, operations_.front().sequence, waiting_messages()),
      surroundings_.group, rank);
}

Error Diagnosis::with_group(const Error& error) const {
  // From a wait, which does not know the group: it names the job's rank.
  const bool of_job = error.group().empty() && error.world_rank() >= 0;
  const int rank = of_job ? surroundings_.rank_of(error.world_rank()) : error.rank();
  return Error(error.code(), error.message(), surroundings_.group, rank, error.world_rank(), error.is_loss());
}

void Diagnosis::post_loss(const Error& symptom) {
  if (symptom.code() != ErrorCode::peer_lost || symptom.rank() < 0) return;
  const store::CallLimit limit(kStoreTime);  // the rest of explain() has its own
  look_at_store([&](Store& scope) {
    std::string key = loss_key(surroundings_.rank);
    scope.set(key, encode_error(symptom));
    surroundings_.own_board_keys.push_back(std::move(key));
  });
}

// The loss that the others follow from; `symptom` itself when that cannot be told, as where ranks have lost each other.
Error Diagnosis::first_loss(const Error& symptom) {
  Error loss = symptom;
  for (std::size_t step = 0; step < surroundings_.peers.size(); ++step) {
    const auto text = loss.rank() >= 0 ? ask(loss_key(loss.rank())) : std::nullopt;
    const auto earlier = text ? decode_error(*text) : std::nullopt;
    if (!earlier) return loss;
    if (earlier->rank() == surroundings_.rank) break;
    loss = *earlier;
  }
  return symptom;
}

Error Diagnosis::explain(const Error& symptom) {
  if (explained_) return *explained_;
  describe();
  const store::CallLimit limit(kExplainTime + kStoreTime);
  const bool may_be_knock_on =
      symptom.code() == ErrorCode::peer_lost || symptom.code() == ErrorCode::aborted || symptom.code() == ErrorCode::io;
  if (!may_be_knock_on) return with_group(symptom);
  surroundings_.store->ask_again();  // others may have said why meanwhile
  post_loss(symptom);
  const Deadline until = Deadline::after(kExplainTime);
  for (bool first = true;; first = false) {
    if (const auto cause = abort_cause()) return *cause;
    // A rank that is gone may have left this group before, too early: how it ended then does not matter.
    if (const auto lost = lost_peer(false)) return different_calls(true).value_or(*lost);
    std::optional<Error> failure;
    look_at_store([&](Store& scope) { failure = failure_in(scope); });
    if (failure && !core::is_own_loss(*failure, surroundings_.rank)) return *failure;
    // A rank that has made fewer calls than others closes its connections when it leaves, and has said so before. Not
    // looked at each time: it takes a read for each rank.
    const bool last = until.expired();
    if (const auto difference = first || last ? different_calls(last) : std::nullopt) return *difference;
    if (last) break;
    core::sleep_for(std::min<Duration>(kExplainPause, until.remaining()));
  }
  const Error first = first_loss(symptom);
  // Before the calls that it has missed: it left because of an error.
  if (const auto why = why_left(first.rank())) return *why;
  if (const auto missed = missed_by_leaver(first.rank())) return *missed;
  return core::as_read_by(surroundings_.rank, left_in_good_order(first.rank()).value_or(with_group(first)));
}

// ---- Mismatches

void Diagnosis::look_for_mismatch(bool last_chance) {
  look_for_different_calls(last_chance);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    if (operation.collective) continue;
    for (const int rank : operation.counterparts) {
      if (seen_[i].count(rank) != 0) continue;
      if (auto value = ask(board_key(operation, rank))) seen_[i].emplace(rank, std::move(*value));
    }
    const bool differs = std::any_of(seen_[i].begin(), seen_[i].end(), [&](const auto& entry) {
      return !matches(operation, surroundings_.rank, entry.second, entry.first);
    });
    if (differs) throw_judged(operation, seen_[i], last_chance);
    // A channel awaits what may come from any rank as long as one of them is there.
    if (!operation.received_tag || operation.counterparts.size() < 2) continue;
    for (const int rank : operation.counterparts) {
      if (const auto why = why_left(rank)) throw_explained(*why);
    }
  }
}

// ---- Absence

// By what that rank has said: look_for_different_calls() has heard it.
bool Diagnosis::has_made(const Operation& operation, int rank) const {
  const auto heard = heard_.find(rank);
  return operation.collective && heard != heard_.end() && heard->second->end() > operation.sequence;
}

Diagnosis::Presence Diagnosis::presence(const Operation& operation, int rank) {
  if (operation.collective ? has_made(operation, rank) : ask(board_key(operation, rank)).has_value())
    return Presence::arrived;
  const auto activity = surroundings_.activity_of(rank);
  if (!activity) return Presence::unknown;
  if (activity->state == State::finished || activity->group.empty()) return Presence::absent;
  // A record shows the last call alone: in another group, it does not say what came before.
  if (!operation.collective || !is_same_group(activity->group, surroundings_.group)) return Presence::unknown;
  return surroundings_.last_call(*activity) >= operation.sequence ? Presence::arrived : Presence::absent;
}

// The number after that of the last call of this group that a rank is known to have come to; 0 if nothing is known.
std::uint64_t Diagnosis::progress_of(int rank) const {
  const auto activity = surroundings_.activity_of(rank);
  if (activity && is_same_group(activity->group, surroundings_.group)) return surroundings_.last_call(*activity) + 1;
  const auto heard = heard_.find(rank);
  return heard == heard_.end() ? 0 : heard->second->end();
}

// Of those who are missing, the one that is furthest behind: the others may be waiting for it. If there are several,
// the first of them, or -1 for `only_one`.
int Diagnosis::furthest_behind(const std::vector<int>& ranks, bool only_one) const {
  std::vector<std::pair<std::uint64_t, int>> by_progress;
  for (const int rank : ranks) by_progress.emplace_back(progress_of(rank), rank);
  std::sort(by_progress.begin(), by_progress.end());
  const bool tie = by_progress.size() > 1 && by_progress[0].first == by_progress[1].first;
  return only_one && tie ? -1 : by_progress.front().second;
}

// Whether a rank that has not come to `operation` waits in an earlier call of this group.
bool Diagnosis::waits_before(const Operation& operation, int rank) const {
  const auto activity = surroundings_.activity_of(rank);
  return activity && activity->state == State::waiting && is_same_group(activity->group, surroundings_.group) &&
         activity->sequence < operation.sequence;
}

void Diagnosis::on_timeout(Duration budget) {
  const store::CallLimit limit(kStoreTime);
  surroundings_.store->ask_again();
  heard_.clear();
  post();
  describe();
  look_for_failure(true);
  look_for_lost_peer();
  look_for_mismatch(true);
  say_who_holds_up(true);
  throw timeout(fmt::format("timed out after {}", core::format_duration(budget)), "or raise COL_TIMEOUT", true);
}

Error Diagnosis::overdue(std::string_view late) {
  const store::CallLimit limit(kStoreTime);
  describe();
  if (posted_) look();
  return timeout(late, "or wait for longer; it goes on", posted_);
}

Error Diagnosis::timeout(std::string_view late, std::string_view advice, bool thorough) {
  const Accused culprit = accuse(thorough);
  const Operation& first = operations_.front();
  return Error(ErrorCode::timeout,
               fmt::format("{}{}{} (operation {}) {}: {}{}; look at what the missing do, {}", first.called,
                           first.called.empty() ? "" : ": ", first.text, first.sequence, late, culprit.who,
                           waiting_messages(), advice),
               surroundings_.group, culprit.rank, culprit.world_rank);
}

// Messages that have arrived here from the ranks that a receive waits for, but with other tags.
std::string Diagnosis::waiting_messages() const {
  std::string text;
  for (const Operation& operation : operations_) {
    for (const int rank : operation.counterparts) {
      const auto heard = heard_.find(rank);
      if (!operation.received_tag || heard == heard_.end()) continue;
      std::vector<int> tags;
      for (const auto& [to, count] : heard->second->sent) {
        const auto taken = surroundings_.received.find({rank, to.second});
        const std::uint64_t received = taken == surroundings_.received.end() ? 0 : taken->second;
        if (to.first == surroundings_.rank && to.second != *operation.received_tag && count > received)
          tags.push_back(to.second);
      }
      if (tags.empty()) continue;
      text += fmt::format("; from rank {} messages of {} {} lie here, which nobody receives", rank,
                          tags.size() == 1 ? "tag" : "tags", core::joined(tags, ", "));
    }
  }
  return text;
}

// Finds the responsible rank.
Diagnosis::Accused Diagnosis::accuse(bool thorough) {
  std::set<int> absent, unknown;
  for (const Operation& operation : operations_) {
    for (const int rank : operation.counterparts) {
      const Presence there = presence(operation, rank);
      if (there == Presence::absent) absent.insert(rank);
      if (there == Presence::unknown) unknown.insert(rank);
    }
  }
  return follow(accuse({absent.begin(), absent.end()}, {unknown.begin(), unknown.end()}, thorough));
}

Diagnosis::Accused Diagnosis::accuse(const std::vector<int>& absent, const std::vector<int>& unknown, bool thorough) {
  auto holdup = find_holdup(surroundings_, operations_, thorough);
  const int outsider = holdup && holdup->member < 0 ? holdup->activity.rank : -1;
  if (holdup && holdup->activity.stopped) return {holdup->member, holdup->text(), outsider, true};
  const Operation& operation = operations_.front();
  // Absent ranks that all wait themselves are not to blame, but somebody on another node is.
  const bool sure = !absent.empty() && (unknown.empty() || !operation.collective ||
                                        !std::all_of(absent.begin(), absent.end(),
                                                     [&](int rank) { return waits_before(operation, rank); }));
  std::vector<int> missing = absent;
  if (!sure) missing.insert(missing.end(), unknown.begin(), unknown.end());
  std::sort(missing.begin(), missing.end());
  // One that has come and does other things meanwhile is not to blame where others have not come.
  if (sure && holdup && holdup->via < 0 && std::ranges::count(missing, holdup->member) == 0) holdup.reset();
  if (missing.size() == 1 && (!holdup || holdup->member == missing.front())) {
    const auto activity = surroundings_.activity_of(missing.front());
    return {missing.front(),
            fmt::format("{} {} it{}", ranks_text(missing), sure ? "did not enter" : "may not have entered",
                        activity ? last_seen(*activity) : ""),
            -1, holdup.has_value()};
  }
  const std::string who =
      missing.empty() ? "all ranks have entered it, but the data did not arrive in time"
                      : fmt::format("{} {} it", ranks_text(missing), sure ? "did not enter" : "may not have entered");
  if (holdup) return {holdup->member, fmt::format("{}; {}", who, holdup->text()), outsider, true};
  // A rank that waits has said what it has called: so of ranks on other nodes, one that has said less does not wait.
  // But not if the store has told of some only.
  const bool all_heard = operation.collective && !missing.empty() && !surroundings_.store_is_mute();
  const int behind = sure || all_heard ? furthest_behind(missing, !sure) : -1;
  if (behind < 0 && operation.collective && !missing.empty()) {
    // Those who wait in this call, too, may know more: follow() asks whom they wait for.
    missing.insert(missing.end(), operation.counterparts.begin(), operation.counterparts.end());
    for (const int rank : missing) {
      const int first = surroundings_.peers[static_cast<std::size_t>(rank)].global_rank;
      const int last = end_of_chain(first).value_or(first);
      if (last >= 0 && last != first) return {rank, who};
    }
  }
  if (behind < 0) return {-1, who};
  return {behind, fmt::format("{}; rank {} is furthest behind", who, behind)};
}

}  // namespace col::group
