#include "group/join/rendezvous.hpp"

#include <chrono>
#include <exception>

#include <fmt/format.h>

#include <col/error.hpp>

#include "group/diagnosis/failure.hpp"
#include "group/join/host.hpp"
#include "group/join/shared_text.hpp"

namespace col::group {
namespace {

// When a meeting takes long.
constexpr Duration kSlow = std::chrono::milliseconds(500);

class GroupRules final : public MeetingRules {
 public:
  GroupRules(std::string_view group, const Member& self, const MeetingHelp& help)
      : group_(group), self_(self), help_(help) {}

  bool is_of_job() const override { return false; }
  std::string title() const override { return fmt::format("group '{}'", group_); }
  std::string name(const std::vector<int>& missing) const override { return help_.name(missing); }
  // One that declined may live, and has nothing to do with this group.
  bool may_replace(const Member& other) override {
    return other.process_nonce == self_.process_nonce || gave_up_another(other, {}) ||
           is_gone(other.peer.pid, other.peer.boot_id, other.peer.pid_namespace);
  }
  Error taken(const Member& other) override { return has_already_joined(group_, other.peer); }

 private:
  const std::string_view group_;
  const Member& self_;
  const MeetingHelp& help_;
};

// Returns when the calls have their answers, or, and true, when they have lasted long enough for `meeting`.
bool run_trip(Meeting& meeting, Store& scope, WaitContext& wait) {
  struct TimeToLook {};
  WaitContext until_look(wait.deadline(), wait.page(), wait.record());
  until_look.meanwhile([&] {
    if (meeting.has_lasted(Deadline::Clock::now())) throw TimeToLook();
    wait.check();
  });
  try {
    // A store that does not answer says so in the words of `wait`.
    store::run(scope, meeting.calls(), meeting.waits() ? until_look : wait,
               [&](std::size_t call) { return meeting.on_answer(call, Deadline::Clock::now()); });
    return false;
  } catch (const TimeToLook&) {
    return true;
  }
}

void withdraw(const Meeting& meeting, Store& scope) noexcept {
  try {
    Meeting::Calls calls = meeting.withdrawal();
    WaitContext brief(Deadline::after(kStoreTime));
    store::run(scope, calls, brief);
  } catch (const std::exception&) {  // the store is gone with its job: nothing is left to withdraw from
  }
}

}  // namespace

core::UniqueFd MeetingRules::share(const std::string& text) {
  return share_text(text);
}

std::optional<std::string> MeetingRules::shared(std::int64_t pid, int descriptor) {
  return shared_text(pid, descriptor);
}

void hold(Meeting& meeting, Store& scope, WaitContext& wait, const std::function<void()>& when_slow) {
  const auto started = Deadline::Clock::now();
  try {
    while (!meeting.is_over()) {
      wait.describe(meeting.awaited());
      if (meeting.waits()) wait.check();
      if (run_trip(meeting, scope, wait) && Deadline::Clock::now() - started > kSlow) when_slow();
      meeting.on_end(Deadline::Clock::now());
    }
  } catch (...) {
    withdraw(meeting, scope);
    throw;
  }
}

Roster meet(std::string_view group, const Member& self, Store& scope, WaitContext& wait, const MeetingHelp& help) {
  GroupRules rules(group, self, help);
  Meeting meeting(group, self, rules, wait.deadline(), Deadline::Clock::now());
  try {
    hold(meeting, scope, wait, help.when_slow);
    return meeting.take_roster();
  } catch (const Error& error) {
    const std::vector<int> absent = meeting.missing();
    // If only one rank has not come, the error is about that rank.
    if (error.code() != ErrorCode::timeout || error.rank() >= 0 || absent.size() != 1) throw;
    throw Error(error.code(), error.message(), group, absent.front());
  }
}

void decline(std::string_view group, const Member& self, Store& scope, WaitContext& wait) {
  const MeetingHelp help;
  GroupRules rules(group, self, help);
  Meeting meeting(group, self, rules, wait.deadline(), Deadline::Clock::now(), true);
  hold(meeting, scope, wait);
}

void forget(const Roster& roster, Store& scope, WaitContext& wait) noexcept {
  try {
    Meeting::Calls calls{store::Call::erase(roster_key(roster.token))};
    for (const std::uint64_t nonce : roster.answered) calls.push_back(store::Call::erase(answer_key(nonce)));
    store::run(scope, calls, wait);
  } catch (const std::exception&) {  // the store went with its job
  }
}

}  // namespace col::group
