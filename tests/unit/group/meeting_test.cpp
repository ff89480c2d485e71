// How ranks meet, without a store, a process or a clock: each trip is made by hand, in any order.
#include "group/join/meeting.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using col::Error;
using col::ErrorCode;
using col::group::Meeting;
using col::group::Member;
using Kind = col::store::Call::Kind;

namespace {

// The same for all: the keys, the time, and which processes have ended.
struct World {
  std::map<std::string, std::string> keys;
  Meeting::Time now{};
  std::set<std::uint64_t> ended;
};

class Rules final : public col::group::MeetingRules {
 public:
  Rules(World& world, bool is_of_job) : world_(world), is_of_job_(is_of_job) {}
  bool is_of_job() const override { return is_of_job_; }
  std::string title() const override { return "the group"; }
  std::string name(const std::vector<int>& missing) const override { return col::group::ranks_text(missing); }
  bool may_replace(const Member& other) override { return lost(other).has_value(); }
  std::optional<Error> lost(const Member& member) override {
    if (!world_.ended.contains(member.process_nonce)) return std::nullopt;
    return Error(ErrorCode::peer_lost, "lost", {}, member.peer.rank);
  }
  Error taken(const Member& other) override { return Error(ErrorCode::mismatch, "twice", {}, other.peer.rank); }
  Error refusal(const Error& why) override { return Error(why.code(), "no: " + why.message(), {}, why.rank()); }
  col::core::UniqueFd share(const std::string& /*text*/) override { return {}; }
  std::optional<std::string> shared(std::int64_t /*pid*/, int /*descriptor*/) override { return {}; }

 private:
  World& world_;
  const bool is_of_job_;
};

// A process that comes as a rank.
class Process {
 public:
  Process(World& world, int rank, int world_size, std::uint64_t nonce, bool is_of_job = false, bool declines = false)
      : world_(world), rules_(world, is_of_job), declines_(declines) {
    self_.world_size = world_size;
    self_.backend = declines ? col::group::with_reason("auto", "no card") : "auto";
    self_.nonce = self_.process_nonce = nonce;
    self_.peer = {.rank = rank,
                  .global_rank = rank,
                  .pid = 100 + rank,
                  .hostname = fmt::format("host{}", rank / 2),
                  .boot_id = fmt::format("boot{}", rank / 2),
                  .network_namespace = "1",
                  .pid_namespace = "1"};
  }

  bool is_done() const { return error || (meeting_ && meeting_->is_over()); }

  // Makes the calls of a trip that can be made now. Returns whether any had an answer.
  bool turn() {
    if (is_done()) return false;
    try {
      if (!meeting_) meeting_.emplace("the group", self_, rules_, col::Deadline::of(20s), world_.now, declines_);
      return trip();
    } catch (const Error& caught) {
      error = caught;
      give_up();
      return true;
    }
  }

  void give_up() {
    for (auto& call : meeting_->withdrawal()) make(call);
  }

  const Meeting& meeting() const { return *meeting_; }
  col::group::Roster roster() { return meeting_->take_roster(); }
  std::optional<Error> error;
  int trips = 0;

 private:
  bool trip() {
    Meeting::Calls& calls = meeting_->calls();
    if (made_ == 0) ++trips;
    for (std::size_t i = made_; i < calls.size(); ++i) {
      if (calls[i].kind != Kind::wait) make(calls[i]);
      made_ = i + 1;
      if (calls[i].kind != Kind::wait && !meeting_->on_answer(i, world_.now)) return end();
    }
    bool all = true, any = false;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].kind != Kind::wait || calls[i].answer) continue;
      make(calls[i]);
      all = all && calls[i].answer;
      any = any || calls[i].answer;
      if (calls[i].answer && !meeting_->on_answer(i, world_.now)) return end();
    }
    if (all || meeting_->has_lasted(world_.now)) return end();
    return any;
  }

  bool end() {
    made_ = 0;
    meeting_->on_end(world_.now);
    return true;
  }

  void make(col::store::Call& call) {
    const auto found = world_.keys.find(call.key);
    const bool is_there = found != world_.keys.end();
    if (call.kind != Kind::set) call.answer = is_there ? std::optional(found->second) : std::nullopt;
    if (call.kind == Kind::erase) world_.keys.erase(call.key);
    if (call.kind == Kind::set || (call.kind == Kind::compare_set && call.answer == call.expected))
      world_.keys[call.key] = call.value;
  }

  World& world_;
  Rules rules_;
  Member self_;
  const bool declines_;
  std::optional<Meeting> meeting_ = {};
  std::size_t made_ = 0;
};

// Each in turn, until none can go on; then time passes. Ends when all are done, or when so much time has passed.
void play(World& world, std::deque<Process>& processes, const std::vector<std::size_t>& order,
          col::Duration most = 60s) {
  const auto until = world.now + most;
  for (;;) {
    bool any = false;
    for (const std::size_t i : order) any = processes[i].turn() || any;
    if (std::ranges::all_of(order, [&](std::size_t i) { return processes[i].is_done(); })) return;
    if (any) continue;
    if (world.now >= until) return;
    world.now += 50ms;
  }
}

std::vector<std::size_t> first(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

TEST_CASE("meeting: ranks that come in any order know one another, and tidy up", "[group]") {
  const bool is_of_job = GENERATE(false, true);
  std::vector<std::size_t> order = first(5);
  do {
    World world;
    std::deque<Process> processes;
    for (int rank = 0; rank < 5; ++rank) processes.emplace_back(world, rank, 5, 10 + rank, is_of_job);
    play(world, processes, order);
    std::set<std::uint64_t> tokens;
    for (int rank = 0; rank < 5; ++rank) {
      Process& process = processes[static_cast<std::size_t>(rank)];
      REQUIRE_FALSE(process.error);
      const auto roster = process.roster();
      tokens.insert(roster.token);
      REQUIRE(roster.members.size() == 5);
      CHECK(roster.members[3].peer.pid == 103);
      if (is_of_job) CHECK(roster.members[3].process_nonce == 13);
      // A look at the roster, as no memory is shared here; a word to others of the host; in a job, the answer goes.
      if (rank > 0) CHECK(process.trips <= 3);
      if (rank == 0) CHECK(process.trips <= 4);
      for (const std::uint64_t nonce : roster.answered) world.keys.erase(col::group::answer_key(nonce));
      world.keys.erase(col::group::roster_key(roster.token));
    }
    CHECK(tokens.size() == 1);
    CHECK(world.keys.size() == (is_of_job ? 1 : 0));
    CHECK(world.keys.contains("roster") == is_of_job);
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("meeting: who is missing is heard by all, and a rank that gives up leaves nothing to meet", "[group]") {
  const bool is_of_job = GENERATE(false, true);
  World world;
  std::deque<Process> processes;
  for (const int rank : {0, 1, 3}) processes.emplace_back(world, rank, 5, 10 + rank, is_of_job);
  play(world, processes, first(3), 5s);
  for (Process& process : processes) {
    CHECK_FALSE(process.is_done());
    CHECK(process.meeting().missing() == std::vector{2, 4});
    CHECK(process.meeting().awaited() == "ranks 2, 4 to join the group");
    CHECK(process.meeting().has_heard());
    process.give_up();
  }
  REQUIRE(world.keys.size() == 1);
  CHECK(world.keys.contains("taken back"));
}

TEST_CASE("meeting: without rank 0, ranks of a group find out who is missing, those of a job name rank 0", "[group]") {
  const auto [size, is_of_job] = GENERATE(std::pair(4, false), std::pair(40, false), std::pair(4, true));
  World world;
  std::deque<Process> processes;
  for (const int rank : {1, 3}) processes.emplace_back(world, rank, size, 10 + rank, is_of_job);
  play(world, processes, {0, 1}, 10s);
  for (Process& process : processes) {
    const std::vector<int> missing = process.meeting().missing();
    if (is_of_job) CHECK(missing == std::vector{0});
    if (!is_of_job) CHECK(missing.size() == static_cast<std::size_t>(size) - 2);
    CHECK(process.meeting().awaited().starts_with(is_of_job ? "rank 0 to join" : "ranks 0, 2"));
    process.give_up();
  }
  CHECK(world.keys.size() == 1);
}

TEST_CASE("meeting: the odd one is named to all, in any order; and later ones hear it, too", "[group]") {
  std::vector<std::size_t> order = first(4);
  do {
    World world;
    std::deque<Process> processes;
    for (int rank = 0; rank < 4; ++rank) processes.emplace_back(world, rank, rank == 3 ? 5 : 4, 10 + rank);
    processes.emplace_back(world, 4, 5, 99);
    play(world, processes, order);
    play(world, processes, {4});
    for (Process& process : processes) {
      REQUIRE(process.error);
      CHECK(process.error->code() == ErrorCode::mismatch);
      CHECK(process.error->message().starts_with("no: ranks disagree on the world size"));
      CHECK(process.error->rank() == 3);
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST_CASE("meeting: an announcement that was taken back after rank 0 has read it does not count", "[group]") {
  World world;
  std::deque<Process> processes;
  for (const int rank : {0, 1, 2}) processes.emplace_back(world, rank, 3, 10 + rank);
  play(world, processes, {0, 1}, 1s);
  processes[1].give_up();
  const bool comes_again = GENERATE(false, true);
  processes.emplace_back(world, 1, 3, 99);
  if (comes_again) processes[3].turn();
  play(world, processes, {0, 2}, 1s);
  CHECK(processes[0].is_done() == comes_again);
  play(world, processes, {3, 0, 2});
  for (const std::size_t i : {0, 2, 3}) REQUIRE((processes[i].is_done() && !processes[i].error));
  CHECK(processes[0].roster().answered == std::vector<std::uint64_t>{99, 12});
}

TEST_CASE("meeting: the announcement of a process that has ended keeps nobody out", "[group]") {
  const int rank = GENERATE(0, 1);
  World world;
  std::deque<Process> processes;
  for (const int of : {rank, 0, 1}) processes.emplace_back(world, of, 2, processes.empty() ? 99 : 10 + of, true);
  processes[0].turn();
  world.ended.insert(99);
  play(world, processes, {1, 2});
  for (const std::size_t i : {1, 2}) {
    INFO(i);
    REQUIRE((processes[i].is_done() && !processes[i].error));
  }
}

TEST_CASE("meeting: a process of a job that ends while others are missing is lost, one that gave up is not",
          "[group]") {
  World world;
  std::deque<Process> processes;
  for (const int rank : {0, 1}) processes.emplace_back(world, rank, 3, 10 + rank, true);
  play(world, processes, {0, 1}, 1s);
  const bool gives_up = GENERATE(false, true);
  if (gives_up) processes[1].give_up();
  world.ended.insert(11);
  play(world, processes, {0}, 3s);
  if (gives_up) CHECK(processes[0].meeting().missing() == std::vector{2});
  REQUIRE(processes[0].error.has_value() != gives_up);
  if (!gives_up) CHECK((processes[0].error->code() == ErrorCode::peer_lost && processes[0].error->rank() == 1));
}

TEST_CASE("meeting: a second process of a rank is refused; in a job, all others are, too", "[group]") {
  const bool is_of_job = GENERATE(false, true);
  World world;
  std::deque<Process> processes;
  for (const int rank : {0, 1, 1}) processes.emplace_back(world, rank, 3, 10 + processes.size(), is_of_job);
  play(world, processes, first(3), 5s);
  REQUIRE(processes[2].error);
  CHECK(processes[2].error->message() == "twice");
  for (const std::size_t i : {0, 1}) {
    CHECK(processes[i].error.has_value() == is_of_job);
    if (is_of_job) CHECK((processes[i].error->message() == "no: twice" && processes[i].error->rank() == 1));
  }
  if (!is_of_job) return;
  // Its word is not about the next meeting.
  for (int rank = 0; rank < 3; ++rank) processes.emplace_back(world, rank, 3, 20 + rank, true);
  play(world, processes, {4, 5, 3});
  for (const std::size_t i : {3, 4, 5}) REQUIRE((processes[i].is_done() && !processes[i].error));
}

TEST_CASE("meeting: a rank that cannot come says why, and all others hear it", "[group]") {
  const int odd = GENERATE(0, 1);
  World world;
  std::deque<Process> processes;
  for (int rank = 0; rank < 3; ++rank) processes.emplace_back(world, rank, 3, 10 + rank, false, rank == odd);
  play(world, processes, first(3));
  for (int rank = 0; rank < 3; ++rank) {
    const auto& error = processes[static_cast<std::size_t>(rank)].error;
    REQUIRE(error.has_value() == (rank != odd));
    if (error) CHECK((error->code() == ErrorCode::unavailable && error->rank() == odd));
  }
}

TEST_CASE("meeting: a process of a job that has met already hears with how many", "[group]") {
  World world;
  std::deque<Process> processes;
  for (const int rank : {0, 1, 2}) processes.emplace_back(world, rank, 2, 10 + rank, true);
  play(world, processes, {0, 1});
  play(world, processes, {2}, 1s);
  CHECK(processes[2].meeting().met_without() == 2);
  CHECK_FALSE(processes[2].meeting().has_heard());
}
