#include "group/join/renewal.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/clock/clock.hpp"
#include "core/log.hpp"
#include "group/call/operation.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/host.hpp"
#include "group/join/member.hpp"

namespace col::group {
namespace {

// How long a rank that cannot connect waits for the cause: a death of which its host knows a moment later, or what
// others have written. And the pause between two looks.
constexpr Duration kCauseTime = std::chrono::milliseconds(250), kCausePause = std::chrono::milliseconds(5);

// True if it will never renew anything any more, as one that has left the job in good order won't, either. Requires: it
// is on this host.
bool has_ended(const PeerInfo& process, const ControlPage* page) {
  if (is_gone(process.pid, this_host().boot_id, this_host().pid_namespace)) return true;
  for (int i = 0, count = page != nullptr ? page->local_ranks() : 0; i < count; ++i) {
    const RankRecord& record = page->record(i);
    if (record.rank() != process.global_rank) continue;
    const RankActivity activity = record.read();
    if (activity.pid == process.pid) return activity.state == RankActivity::State::finished || record.lost();
  }
  return false;
}

}  // namespace

Roster roster_of(const EpochRecord& record) {
  Roster roster;
  roster.token = record.token;
  for (const Seat& seat : record.members) {
    roster.members.push_back(Member::decode(seat.address));
    roster.members.back().peer.rank = static_cast<int>(roster.members.size()) - 1;
  }
  return roster;
}

// Ends each wait when there is a reason to look.
class Renewer::Watch final : public WaitObserver {
 public:
  Watch(std::uint32_t& heard, bool& is_slow) : heard_(heard), is_slow_(is_slow) {}
  bool on_slow(Duration /*waited*/) override {
    is_slow_ = true;
    throw LooksAgain();
  }
  void on_news(std::uint32_t news) override {
    if (std::exchange(heard_, news) != news) throw LooksAgain();
  }
  void on_timeout(Duration /*budget*/) override { throw LooksAgain(); }

 private:
  std::uint32_t& heard_;
  bool& is_slow_;
};

Renewer::Renewer(Renewed group, ChangeSpec spec, const Deadline& deadline)
    : group_(std::move(group)),
      self_(spec.incarnation),
      keys_(group_.epoch.place, group_.epoch.first),
      change_(spec),
      deadline_(deadline),
      processes_(group_.processes),
      first_round_(joins() ? 1 : std::min(group_.epoch.record->base, group_.epoch.record->epoch) + 1),
      last_round_(joins() ? 0 : first_round_) {
  is_to_look_ = joins();
  if (spec.wait > Duration::zero()) wait_over_ = Deadline::after(spec.wait);
  take_actions();
}

void Renewer::take_actions() {
  for (ChangeAction& action : change_.take_actions()) to_do_.push_back(std::move(action));
}

Finish Renewer::run() {
  // Nobody waits for those who have ended by now.
  look_for_ends();
  while (!end_) go([this] { go_on(); });
  if (interruption_) std::rethrow_exception(interruption_);
  return *std::move(end_);
}

// An error on the way is an event for the machine. The job's own end is not: nobody renews anything then.
template <class Go>
void Renewer::go(const Go& step) {
  try {
    step();
  } catch (const LooksAgain&) {
    is_to_look_ = true;
    look_for_ends();
    if (std::exchange(is_slow_, false)) {
      end_group(true);
      end_derived(true);
    }
  } catch (const Error& error) {
    take_interruption();
    if (group_.page != nullptr && group_.page->aborted()) throw;
    if (!interruption_ && !deadline_.expired()) change_.on_register_gone(error);
  } catch (...) {
    take_interruption();
    if (!interruption_) throw;
  }
  heed_time();
  take_actions();
}

// Others hear why this rank gives up, as far as the store answers.
void Renewer::take_interruption() {
  auto thrown = WaitContext::take_interruption();
  if (!thrown || interruption_) return;
  interruption_ = std::move(thrown);
  deadline_ = Deadline::after(kStoreTime);
  const std::string what = joins()
                               ? "join: this process was interrupted"
                               : fmt::format("renew: rank {} was interrupted", group_.epoch.record->number_of(self_));
  change_.on_interrupted(Error(ErrorCode::aborted, what, group_.epoch.group));
}

void Renewer::heed_time() {
  if (wait_over_ && wait_over_->expired()) {
    wait_over_.reset();
    change_.on_wait_over();
  }
  heed_patience();
  if (!deadline_.expired() || change_.is_over()) return;
  deadline_ = Deadline::after(kStoreTime);
  const bool is_last_time = !change_.state().giving_up.empty();
  // Also one that does not lead names those who are late.
  if (!is_last_time) {
    try {
      WaitContext wait(Deadline::after(kStoreTime));
      hear(keys_.look(change_.roll(), true, wait));
    } catch (const Error&) {  // the store does not answer, and the machine says so
    }
    if (change_.is_over()) return;
  }
  change_.on_deadline();
}

void Renewer::heed_patience() {
  if (!patience_over_ || !patience_over_->expired()) return;
  patience_over_.reset();
  change_.on_patience_over(patience_for_);
}

void Renewer::go_on() {
  if (!to_do_.empty()) {
    const ChangeAction action = std::move(to_do_.front());
    to_do_.pop_front();
    return act(action);
  }
  sleep();
}

void Renewer::act(const ChangeAction& action) {
  if (std::holds_alternative<EndGroup>(action)) return end_group(false);
  if (std::holds_alternative<EndDerived>(action)) return end_derived(false);
  if (const auto* one = std::get_if<WriteRegister>(&action)) return write(*one);
  if (std::holds_alternative<Ring>(action)) {
    if (!written_) return;
    const WriteRegister done = *std::exchange(written_, std::nullopt);
    WaitContext wait(deadline_, group_.page, group_.record, nullptr, group_.interrupt);
    return keys_.ring(*done.expected, *done.desired, wait);
  }
  if (const auto* one = std::get_if<Say>(&action)) return say(one->word);
  if (const auto* one = std::get_if<Connect>(&action)) return connect(one->record);
  if (std::holds_alternative<Disconnect>(action)) return group_.disconnect();
  if (const auto* one = std::get_if<Patience>(&action)) {
    patience_over_ = Deadline::after(one->time);
    patience_for_ = one->epoch;
    return;
  }
  if (const auto* one = std::get_if<Evict>(&action)) {
    std::vector<int> numbers;
    for (const Incarnation member : one->members)
      numbers.push_back(change_.state().known->generation().number_of(member));
    return core::log::info("group '{}': renew() leaves out {}, which did not call it; end what does not end by itself",
                           group_.epoch.group, ranks_text(numbers));
  }
  if (const auto* one = std::get_if<Erase>(&action)) return erase(one->words);
  stages_.open = Deadline::Clock::now() - began_;
  end_ = std::get<Finish>(action);
}

void Renewer::end_group(bool is_urgent) {
  if (joins()) return;
  const std::uint64_t epoch = group_.epoch.record->epoch;
  group_.end_group(
      Error(ErrorCode::aborted,
            fmt::format("epoch {} is over, as rank {} has called renew(), which makes epoch {} or a later one; call "
                        "renew(), and use the group that it returns",
                        epoch, group_.epoch.record->number_of(self_), epoch + 1),
            group_.epoch.group, -1, -1, true),
      is_urgent);
}

void Renewer::end_derived(bool is_urgent) {
  if (joins()) return;
  const std::uint64_t epoch = group_.epoch.record->epoch;
  group_.end_derived(
      Error(ErrorCode::aborted,
            fmt::format("epoch {} of group '{}', from which this group was made, is over, as ranks of it have called "
                        "renew(), which makes epoch {} or a later one; make it again from the group that renew() "
                        "returns",
                        epoch, group_.epoch.group, epoch + 1),
            {}, -1, -1, true),
      is_urgent);
}

void Renewer::write(const WriteRegister& action) {
  WaitContext wait(deadline_, group_.page, group_.record, nullptr, group_.interrupt);
  const RecordPtr value = keys_.swap(*action.expected, action.desired, wait);
  if (*value == *action.desired) written_ = action;
  hear({.value = value});
}

void Renewer::say(const Presence& word) {
  if (joins() && word.round > 0 && first_round_ > last_round_) first_round_ = word.round;
  last_round_ = std::max(last_round_, word.round);
  WaitContext wait(deadline_, group_.page, group_.record, nullptr, group_.interrupt);
  keys_.say(word, wait);
}

// The words of this process, and those of the dead. Nobody waits for that.
void Renewer::erase(const std::vector<Incarnation>& words) {
  try {
    WaitContext wait(Deadline::after(kStoreTime));
    keys_.erase(words, first_round_, last_round_, wait);
  } catch (const Error& error) {
    core::log::debug("group '{}': words of its renewal stay in the store: {}", group_.epoch.group, error.what());
  }
}

// The wait ends when the register has another value, when one of the members has ended, and when the patience with
// those that join is over: that begins with it, as does all that is to be done here.
void Renewer::connect(const RecordPtr& record) {
  for (; !to_do_.empty(); to_do_.pop_front()) act(to_do_.front());
  const auto look_aside = [&] {
    look_for_ends();
    heed_patience();
    WaitContext wait(Deadline::after(kStoreTime));
    hear(keys_.look({}, false, wait));
    if (!to_do_.empty()) throw LooksAgain();
  };
  const auto lap = [this] {
    const auto now = Deadline::Clock::now();
    return now - std::exchange(began_, now);
  };
  stages_.roll_call += stages_.connect + std::exchange(stages_.open, {}) + lap();  // of records that became void, too
  stages_.connect = {};
  end_group(true);  // all have come, so nobody is on the way out of a call
  end_derived(true);
  try {
    group_.connect(*record, record->number_of(self_), deadline_, look_aside);
    stages_.connect = lap();
    change_.on_connected(record->epoch);
  } catch (const Error& error) {
    take_interruption();
    if (interruption_ || (group_.page != nullptr && group_.page->aborted())) throw;
    if (!deadline_.expired()) await_cause(record, error);
  }
  take_actions();
}

// Mostly another one has ended, or has heard of a death and has let go.
void Renewer::await_cause(const RecordPtr& record, const Error& error) {
  for (const Deadline until = Deadline::after(std::min<Duration>(kCauseTime, deadline_.remaining()));;) {
    look_for_ends();
    WaitContext wait(Deadline::after(kStoreTime));
    hear(keys_.look({}, false, wait));
    if (!to_do_.empty()) return;
    if (until.expired()) break;
    core::sleep_for(std::min<Duration>(kCausePause, until.remaining()));
  }
  change_.on_connect_failed(record->epoch, error);
}

// Words count only with a value of the register that is as new.
void Renewer::hear(const EpochKeys::Seen& seen) {
  if (seen.value) {
    if (!joins()) last_round_ = std::max(last_round_, seen.value->epoch);
    for (const Seat& seat : seen.value->members) {
      if (processes_.contains(seat.incarnation) || seat.address.empty()) continue;
      processes_.emplace(seat.incarnation, Member::decode(seat.address).peer);
    }
  }
  for (const Presence& word : seen.words) {
    if (word.ticket >= 0 && word.incarnation != self_)
      processes_.emplace(word.incarnation, Member::decode(word.address).peer);
  }
  if (!seen.words.empty()) look_for_ends();  // whose word is there may be dead
  for (const Incarnation one : seen.gone) change_.on_lost(one);
  if (seen.is_whole)
    change_.on_look(seen.value, seen.words);
  else
    change_.on_register(seen.value);
  take_actions();
}

// The soonest of all that is due.
Deadline Renewer::next_look() const {
  Deadline next = deadline_;
  for (const auto& other : {wait_over_, patience_over_}) {
    if (other && other->at() < next.at()) next = *other;
  }
  return next;
}

// The leader looks at all before it sleeps: words may have come before it was the one.
void Renewer::sleep() {
  const auto roll = [this] { return change_.leads() ? change_.roll() : EpochChange::Roll(); };
  if (change_.leads() || std::exchange(is_to_look_, false)) {
    WaitContext wait(deadline_, group_.page, group_.record, nullptr, group_.interrupt);
    hear(keys_.look(roll(), change_.leads(), wait));
    if (!to_do_.empty()) return;
  }
  const std::uint64_t version = change_.state().known ? change_.state().known->version() : 0;
  Watch watch(news_heard_, is_slow_);
  WaitContext wait(next_look(), group_.page, group_.record, sleeps() ? nullptr : &watch, group_.interrupt);
  if (sleeps()) wait.sleep_until_told();
  const EpochKeys::Seen seen = keys_.sleep(version, roll(), change_.leads(), wait);
  for (const Incarnation one : seen.gone) change_.on_lost(one);
  if (seen.value) hear({.value = seen.value});
}

// A death meanwhile is nothing to one that nobody has taken. Its launcher ends it with the job.
bool Renewer::sleeps() const {
  const RecordPtr& known = change_.state().known;
  return group_.sleeps && (!known || known->number_of(self_) < 0 || known->phase == EpochRecord::Phase::void_);
}

void Renewer::tell_end(Incarnation ended) {
  try {
    WaitContext wait(Deadline::after(kStoreTime));
    keys_.tell_end(ended, wait);
  } catch (const Error& error) {  // who leads asks the store next
    core::log::debug("group '{}': cannot say that a process has ended: {}", group_.epoch.group, error.what());
  }
}

// A process that was read from a roster says only which others are on its host. One that has said itself where it is
// says it as this host does.
bool Renewer::is_here(const PeerInfo& process) const {
  const PeerInfo& own = processes_.at(self_);
  const auto is_at = [&](const std::string& boot_id, const std::string& pid_namespace) {
    return !boot_id.empty() && !pid_namespace.empty() && process.boot_id == boot_id &&
           process.pid_namespace == pid_namespace;
  };
  return is_at(own.boot_id, own.pid_namespace) || is_at(this_host().boot_id, this_host().pid_namespace);
}

void Renewer::look_for_ends() {
  const bool are_all_here =
      std::ranges::all_of(processes_, [this](const auto& entry) { return is_here(entry.second); });
  for (const auto& [incarnation, process] : processes_) {
    if (incarnation == self_ || change_.state().dead.contains(incarnation)) continue;
    if (!is_here(process) || !has_ended(process, group_.page)) continue;
    change_.on_lost(incarnation);
    if (!are_all_here) tell_end(incarnation);
  }
  take_actions();
}

}  // namespace col::group
