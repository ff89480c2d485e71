#include "group/join/job_meeting.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/clock/this_process.hpp"
#include "core/duration.hpp"
#include "group/call/operation.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/join/decoded.hpp"
#include "group/join/host.hpp"
#include "group/join/join.hpp"
#include "group/join/rendezvous.hpp"
#include "json/json_fields.hpp"
#include "store/base/call_limit.hpp"

namespace col::group {

template <class Visit>
void fields(JobRoster& roster, Visit& visit) {
  auto& [nonces, processes, hosts] = roster;
  visit("nonces", nonces);
  visit("processes", processes);
  visit("hosts", hosts);
}

namespace {

using namespace std::chrono_literals;

// How long rank 0 waits for those who could tell which of two opinions is the odd one, and for how many of them.
constexpr Duration kVotes = 300ms;
constexpr int kMostVoters = 4096;
// A refusal of an earlier meeting stays until rank 0 comes again. It gets this long to come.
constexpr Duration kOldRefusal = 300ms;
// How long a try to reach the store takes, which may come late; then what may end the wait is asked. Each takes twice
// as long as the one before, because a busy host may need that.
constexpr Duration kFirstTry = 400ms, kLongestTry = 3200ms;

constexpr std::string_view kRosterKey = "roster";
constexpr std::string_view kWordKey = "word";
constexpr std::string_view kTwiceKey = "twice";

std::string announcement_key(int rank) {
  return fmt::format("member/{}", rank);
}

// What rank 0 says while it waits.
struct LeaderWord {
  RankRuns missing = {};     // short, because all ranks read it again and again
  std::string refusal = {};  // an error; empty: none yet
};

template <class Visit>
void fields(LeaderWord& word, Visit& visit) {
  auto& [missing, refusal] = word;
  visit("missing", missing);
  visit("refusal", refusal);
}

// What a process says that was told the rank of another one.
struct Twice {
  int rank = 0;
  std::uint64_t nonce = 0;  // of the other one
  std::string error = {};
};

template <class Visit>
void fields(Twice& twice, Visit& visit) {
  auto& [rank, nonce, error] = twice;
  visit("rank", rank);
  visit("nonce", nonce);
  visit("error", error);
}

// Whether the process of that announcement has certainly ended: false for one elsewhere.
bool has_ended(const Member& member) {
  const Host& host = this_host();
  const bool here = !host.boot_id.empty() && !host.pid_namespace.empty() && member.peer.boot_id == host.boot_id &&
                    member.peer.pid_namespace == host.pid_namespace;
  return here && !core::ProcessId::from_word(member.process_nonce).alive();
}

// The rank that has come. Nothing if its process had ended before anybody looked: then an earlier attempt has left it,
// and the rank may still come.
std::optional<Member> come(std::string_view announcement) {
  Member member = Member::decode(announcement);
  if (has_ended(member)) return std::nullopt;
  return member;
}

class JobMeeting final : public WaitObserver {
 public:
  JobMeeting(const ContextSpec& spec, Store& scope, const Deadline& deadline)
      : spec_(spec), scope_(scope), wait_(deadline, nullptr, nullptr, this, &spec.interrupt) {
    const Host& host = this_host();
    self_.world_size = spec.world_size;
    self_.backend = to_string(Backend::automatic);  // nobody asks for one
    self_.nonce = random_nonce();
    self_.process_nonce = core::ProcessId::self().word();  // unlike a pid, also tells whether the process still runs
    self_.peer = {spec.rank,         spec.rank, core::own_pid(), host.hostname, host.boot_id, host.network_namespace,
                  host.pid_namespace};
  }

  JobRoster run();

  bool on_slow(Duration waited) override;
  void on_timeout(Duration budget) override;

 private:
  bool leads() const { return spec_.rank == 0; }
  void announce();
  std::optional<std::string> put(const std::string& key, const std::optional<std::string>& expected,
                                 const std::string& text);
  void withdraw() noexcept;

  JobRoster lead();
  void collect(int first, int end);
  void look();
  void look_for_twice();
  bool still_there(const Member& member);
  bool all_still_there();
  [[noreturn]] void refuse();
  [[noreturn]] void refuse(const Error& why);
  void say(const LeaderWord& word);
  std::vector<int> missing() const;

  JobRoster follow();
  bool listen(Duration waited);

  const ContextSpec& spec_;
  Store& scope_;
  WaitContext wait_;
  Member self_;
  bool announced_ = false;              // until then, the store may not be there
  std::map<int, Member> members_ = {};  // rank 0: those that have been seen
  std::string said_ = {};               // rank 0: its word
  bool refused_ = false;                // rank 0
  std::optional<LeaderWord> heard_ = {};
  std::optional<int> met_without_ = {};  // the world size of a roster without this rank
};

JobRoster JobMeeting::run() {
  announce();
  announced_ = true;
  try {
    return leads() ? lead() : follow();
  } catch (...) {
    withdraw();
    throw;
  }
}

// An announcement may be replaced if its process has ended.
void JobMeeting::announce() {
  const std::string key = announcement_key(spec_.rank), own = self_.encode();
  for (std::optional<std::string> expected;;) {
    const auto before = put(key, expected, own);
    if (before == expected || before == own) return;  // its own: of a try whose answer was late
    if (before) {
      const Member other = Member::decode(*before);
      if (!has_ended(other)) {
        const Error error(ErrorCode::mismatch,
                          fmt::format("two processes say that they are rank {} of job '{}': pid {} on {}, and pid {} "
                                      "on {}; give each rank its own number, and each start of a job its own job_id",
                                      spec_.rank, spec_.job_id, other.peer.pid, other.peer.hostname, self_.peer.pid,
                                      self_.peer.hostname),
                          {}, spec_.rank, spec_.rank);
        // The others may wait for the rank that this process should be.
        scope_.set(kTwiceKey, core::json_line(Twice{spec_.rank, other.nonce, encode_error(error)}));
        throw error;
      }
    }
    expected = before;
    wait_.check();
  }
}

std::optional<std::string> JobMeeting::put(const std::string& key, const std::optional<std::string>& expected,
                                           const std::string& text) {
  for (Duration budget = kFirstTry;; budget = std::min(2 * budget, kLongestTry)) {
    const bool is_last = wait_.deadline().remaining() <= budget;
    try {
      const store::CallLimit limit(is_last ? wait_.deadline() : Deadline::after(budget));
      return scope_.compare_set(key, expected, text);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout) throw;
      if (is_last)
        throw Error(ErrorCode::timeout,
                    fmt::format("{}; rank {} could not announce itself there", error.message(), spec_.rank));
    }
    wait_.check();
  }
}

// So that the rank can try again. A refusal stays for those who have not read it yet.
void JobMeeting::withdraw() noexcept {
  try {
    scope_.erase(announcement_key(spec_.rank));
    if (leads() && !refused_) scope_.erase(kWordKey);
  } catch (const std::exception&) {  // the store is gone: nothing is left to withdraw from
  }
}

// ---- Rank 0

JobRoster JobMeeting::lead() {
  scope_.erase(kWordKey);
  members_.emplace(0, self_);
  do {
    for (int rank = 1; rank < spec_.world_size; ++rank) {
      if (members_.count(rank) != 0) continue;
      members_.emplace(rank, read_own(scope_, announcement_key(rank), wait_, come));
      if (!agree(self_, members_.at(rank))) refuse();
    }
  } while (!all_still_there());

  JobRoster roster;
  std::map<std::string, int> first_of_host;
  for (const auto& [rank, member] : members_) {
    const bool known = !member.peer.boot_id.empty() && !member.peer.pid_namespace.empty();
    const std::string host =
        known ? fmt::format("{} {}", member.peer.boot_id, member.peer.pid_namespace) : announcement_key(rank);
    roster.hosts.push_back(first_of_host.emplace(host, rank).first->second);
    roster.nonces.push_back(member.nonce);
    roster.processes.push_back(member.process_nonce);
    scope_.erase(announcement_key(rank));
  }
  if (!said_.empty()) scope_.erase(kWordKey);
  scope_.set(kRosterKey, core::json_line(roster));
  return roster;
}

void JobMeeting::collect(int first, int end) {
  for (int rank = first; rank < end; ++rank) {
    if (members_.count(rank) != 0) continue;
    const auto text = scope_.get(announcement_key(rank));
    if (const auto member = text ? come(*text) : std::nullopt) members_.emplace(rank, *member);
  }
}

std::vector<int> JobMeeting::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < spec_.world_size; ++rank) {
    if (members_.count(rank) == 0) ranks.push_back(rank);
  }
  return ranks;
}

void JobMeeting::look() {
  look_for_twice();
  collect(1, spec_.world_size + 1);  // one more: a rank that was told of a larger world
  for (const auto& [rank, member] : members_) {
    if (!agree(self_, member)) refuse();
    if (has_ended(member) && still_there(member))
      throw lost_in_meeting(spec_, rank, core::ProcessId::from_word(member.process_nonce));
  }
  say({.missing = runs_of(missing())});
}

// The word of an earlier attempt, whose processes have withdrawn, does not count.
void JobMeeting::look_for_twice() {
  const auto text = scope_.get(kTwiceKey);
  if (!text) return;
  const auto twice = decoded<Twice>(*text, "word of a rank that another process has");
  const auto announced = scope_.get(announcement_key(twice.rank));
  if (!announced || Member::decode(*announced).nonce != twice.nonce) return;
  if (const auto error = decode_error(twice.error)) refuse(*error);
}

// Whether the rank has not given up. One that gives up removes its announcement; one that is killed does not.
bool JobMeeting::still_there(const Member& member) {
  const auto text = scope_.get(announcement_key(member.peer.rank));
  return text && Member::decode(*text).nonce == member.nonce;
}

// Forgets the ranks that have given up while others were missing; returns whether there is none.
bool JobMeeting::all_still_there() {
  if (said_.empty()) return true;  // all came at once
  return std::erase_if(members_, [&](const auto& entry) { return !still_there(entry.second); }) == 0;
}

void JobMeeting::say(const LeaderWord& word) {
  std::string text = core::json_line(word);
  if (text == said_) return;
  scope_.set(kWordKey, text);
  said_ = std::move(text);
}

void JobMeeting::refuse() {
  const Deadline voting = Deadline::after(std::min<Duration>(kVotes, wait_.deadline().remaining()));
  for (;;) {
    int world_size = 0;
    for (const auto& [rank, member] : members_)
      world_size = std::max(world_size, std::min(member.world_size, kMostVoters));
    collect(0, world_size);
    int absent = 0;
    while (members_.count(absent) != 0) ++absent;
    if (absent >= world_size || voting.expired()) break;
    doze(scope_, announcement_key(absent), wait_);
  }
  refuse(*disagreement({}, members_));
}

void JobMeeting::refuse(const Error& why) {
  const Error error(why.code(), fmt::format("job '{}' cannot meet: {}", spec_.job_id, why.message()), {}, why.rank(),
                    why.rank());
  say({.refusal = encode_error(error)});
  refused_ = true;
  throw error;
}

// ---- The other ranks

JobRoster JobMeeting::follow() {
  const auto rank = static_cast<std::size_t>(spec_.rank);
  return read_own(scope_, kRosterKey, wait_, [&](const std::string& text) -> std::optional<JobRoster> {
    auto roster = decoded<JobRoster>(text, "roster of a job");
    if (rank < roster.nonces.size() && roster.nonces[rank] == self_.nonce) return roster;
    met_without_ = static_cast<int>(roster.nonces.size());
    return std::nullopt;
  });
}

// Returns whether to listen again soon.
bool JobMeeting::listen(Duration waited) {
  const auto text = scope_.get(kWordKey);
  if (!text) return false;
  auto word = decoded<LeaderWord>(*text, "word of rank 0");
  if (word.refusal.empty()) {
    heard_ = std::move(word);
    return false;
  }
  if (waited < kOldRefusal) return true;
  const auto refusal = decode_error(word.refusal);
  throw refusal.value_or(Error(ErrorCode::internal, "a refusal in the store cannot be read"));
}

// ---- How a wait ends

bool JobMeeting::on_slow(Duration waited) {
  if (!announced_) return false;
  if (!leads()) return listen(waited);
  look();
  return false;
}

void JobMeeting::on_timeout(Duration budget) {
  if (!announced_) return;
  const std::string time = core::format_duration(budget);
  if (leads()) {
    look();
  } else if (!heard_) {
    listen(budget);
  }
  if (met_without_ && !heard_) {
    if (*met_without_ != spec_.world_size)
      throw Error(ErrorCode::mismatch,
                  fmt::format("ranks disagree on the world size: rank {} says {}, but job '{}' has met with {} ranks; "
                              "start all ranks with the same value, and each start of a job with its own job_id",
                              spec_.rank, spec_.world_size, spec_.job_id, *met_without_),
                  {}, spec_.rank, spec_.rank);
    throw Error(ErrorCode::timeout,
                fmt::format("rank {} waited {} for rank 0, but job '{}' has met already, without this process (pid "
                            "{}); it was started twice, or alone: give each start of a job its own job_id",
                            spec_.rank, time, spec_.job_id, self_.peer.pid),
                {}, 0, 0);
  }
  const std::vector<int> absent = leads()  ? missing()
                                  : heard_ ? ranks_of(heard_->missing, spec_.world_size)
                                           : std::vector<int>{0};
  if (absent.empty()) return;
  const int culprit = absent.size() == 1 ? absent.front() : -1;
  throw Error(ErrorCode::timeout,
              fmt::format("{} did not come to the meeting of job '{}' ({} ranks) in {}{}; start all ranks with one "
                          "store and one job_id, look at what those print, or allow more time",
                          ranks_text(absent), spec_.job_id, spec_.world_size, time,
                          leads() || heard_ ? "" : ", so others may be missing too"),
              {}, culprit, culprit);
}

}  // namespace

std::shared_ptr<Store> meeting_scope(const ContextSpec& spec) {
  return make_prefix_store(spec.store, "meeting of " + spec.job_id);
}

JobRoster meet_job(const ContextSpec& spec, Store& scope, const Deadline& deadline) {
  return JobMeeting(spec, scope, deadline).run();
}

Error lost_in_meeting(const ContextSpec& spec, int rank, const core::ProcessId& process) {
  return Error(ErrorCode::peer_lost,
               fmt::format("rank {} of job '{}' (pid {}) ended during the meeting; its own output says why", rank,
                           spec.job_id, process.pid()),
               {}, rank, rank);
}

}  // namespace col::group
