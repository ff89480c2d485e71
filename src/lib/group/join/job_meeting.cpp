#include "group/join/job_meeting.hpp"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/clock/this_process.hpp"
#include "core/duration.hpp"
#include "group/call/operation.hpp"
#include "group/join/host.hpp"
#include "group/join/join.hpp"
#include "group/join/rendezvous.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {
namespace {

// So much time the store gets to say why it has not answered.
constexpr Duration kLastTry = std::chrono::milliseconds(20);

Member describe_process(const ContextSpec& spec) {
  const Host& host = this_host();
  Member self;
  self.world_size = spec.world_size;
  self.backend = to_string(Backend::automatic);  // nobody asks for one
  self.nonce = random_nonce();
  self.process_nonce = core::ProcessId::self().word();  // unlike a pid, also tells whether the process still runs
  self.peer = {spec.rank,         spec.rank, core::own_pid(), host.hostname, host.boot_id, host.network_namespace,
               host.pid_namespace};
  return self;
}

class JobMeeting final : public MeetingRules, public WaitObserver {
 public:
  JobMeeting(const ContextSpec& spec, Store& scope, const Deadline& deadline)
      : spec_(spec),
        scope_(scope),
        self_(describe_process(spec)),
        wait_(deadline, nullptr, nullptr, this, &spec.interrupt),
        meeting_({}, self_, *this, deadline, Deadline::Clock::now()) {}

  Roster run() {
    hold(meeting_, scope_, wait_);
    return meeting_.take_roster();
  }

  bool is_of_job() const override { return true; }
  std::string title() const override { return fmt::format("job '{}'", spec_.job_id); }
  std::string name(const std::vector<int>& missing) const override { return ranks_text(missing); }
  bool may_replace(const Member& other) override { return lost(other).has_value(); }
  std::optional<Error> lost(const Member& member) override;
  Error taken(const Member& other) override;
  Error refusal(const Error& why) override {
    return Error(why.code(), fmt::format("job '{}' cannot meet: {}", spec_.job_id, why.message()), {}, why.rank(),
                 why.rank());
  }

  bool on_slow(Duration /*waited*/) override { return false; }
  void on_timeout(Duration budget) override;

 private:
  void blame_store(Duration budget);
  std::optional<Error> lost_neighbour();

  const ContextSpec& spec_;
  Store& scope_;
  const Member self_;
  WaitContext wait_;
  Meeting meeting_;
};

// Nothing is known of one elsewhere.
std::optional<Error> JobMeeting::lost(const Member& member) {
  const Host& host = this_host();
  const bool here = !host.boot_id.empty() && !host.pid_namespace.empty() && member.peer.boot_id == host.boot_id &&
                    member.peer.pid_namespace == host.pid_namespace;
  const auto process = core::ProcessId::from_word(member.process_nonce);
  if (!here || process.alive()) return std::nullopt;
  return lost_in_meeting(spec_, member.peer.rank, process);
}

Error JobMeeting::taken(const Member& other) {
  return Error(
      ErrorCode::mismatch,
      fmt::format("two processes say that they are rank {} of job '{}': pid {} on {}, and pid {} on {}; give "
                  "each rank its own number, and each start of a job its own job_id",
                  spec_.rank, spec_.job_id, other.peer.pid, other.peer.hostname, self_.peer.pid, self_.peer.hostname),
      {}, spec_.rank, spec_.rank);
}

// Throws what the store says of itself, about the whole time.
void JobMeeting::blame_store(Duration budget) {
  const store::CallLimit limit(Deadline::after(budget, budget - kLastTry));
  try {
    scope_.get(member_key(spec_.rank));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    throw Error(ErrorCode::timeout,
                fmt::format("{}; rank {} could not announce itself there", error.message(), spec_.rank));
  }
}

// Where the job has met with this process, the rank of this host that should have told it has ended.
std::optional<Error> JobMeeting::lost_neighbour() {
  try {
    const store::CallLimit limit(kLastTry);
    const auto roster = scope_.get(kLastRoster);
    const auto first = roster ? first_of_host(*roster, self_) : std::nullopt;
    return first ? lost(*first) : std::nullopt;
  } catch (const Error&) {  // the store does not answer any more
    return std::nullopt;
  }
}

void JobMeeting::on_timeout(Duration budget) {
  if (!meeting_.is_announced()) return blame_store(budget);
  const std::string time = core::format_duration(budget);
  if (const auto met = meeting_.met_without(); met && !meeting_.has_heard()) {
    if (*met != spec_.world_size)
      throw Error(ErrorCode::mismatch,
                  fmt::format("ranks disagree on the world size: rank {} says {}, but job '{}' has met with {} ranks; "
                              "start all ranks with the same value, and each start of a job with its own job_id",
                              spec_.rank, spec_.world_size, spec_.job_id, *met),
                  {}, spec_.rank, spec_.rank);
    if (const auto lost = lost_neighbour()) throw Error(*lost);
    throw Error(ErrorCode::timeout,
                fmt::format("rank {} waited {} for rank 0, but job '{}' has met already, without this process (pid "
                            "{}); it was started twice, or alone: give each start of a job its own job_id",
                            spec_.rank, time, spec_.job_id, self_.peer.pid),
                {}, 0, 0);
  }
  const std::vector<int> absent = meeting_.missing();
  if (absent.empty()) return;
  const int culprit = absent.size() == 1 ? absent.front() : -1;
  throw Error(ErrorCode::timeout,
              fmt::format("{} did not come to the meeting of job '{}' ({} ranks) in {}{}; start all ranks with one "
                          "store and one job_id, look at what those print, or allow more time",
                          ranks_text(absent), spec_.job_id, spec_.world_size, time,
                          meeting_.has_heard() ? "" : ", so others may be missing too"),
              {}, culprit, culprit);
}

}  // namespace

std::shared_ptr<Store> meeting_scope(const ContextSpec& spec) {
  return make_prefix_store(spec.store, "meeting of " + spec.job_id);
}

Roster meet_job(const ContextSpec& spec, Store& scope, const Deadline& deadline) {
  return JobMeeting(spec, scope, deadline).run();
}

Error lost_in_meeting(const ContextSpec& spec, int rank, const core::ProcessId& process) {
  return Error(ErrorCode::peer_lost,
               fmt::format("rank {} of job '{}' (pid {}) ended during the meeting; its own output says why", rank,
                           spec.job_id, process.pid()),
               {}, rank, rank);
}

}  // namespace col::group
