// The change of an epoch, one process of it, event by event: mostly how it ends badly. All orders of many are in
// model_test.cpp.
#include "group/join/epoch_change.hpp"

#include <chrono>
#include <memory>
#include <string_view>

#include "support/catch.hpp"

using namespace col::group;
using namespace std::chrono_literals;
using col::Error;
using col::ErrorCode;
using Phase = EpochRecord::Phase;

namespace {

bool contains(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

RecordPtr shared(EpochRecord record) {
  return std::make_shared<const EpochRecord>(std::move(record));
}

// Ranks 0 to size - 1 are incarnations 1 to size.
RecordPtr first(int size) {
  std::vector<Seat> seats;
  for (int i = 0; i < size; ++i) seats.push_back({.incarnation = static_cast<Incarnation>(i) + 1});
  return shared(first_epoch(std::move(seats), 9));
}

Presence word(Incarnation who, std::uint64_t round, bool is_connected = false) {
  return {.incarnation = who, .round = round, .is_connected = is_connected};
}

// A process with the register: each write succeeds at once.
class Alone {
 public:
  explicit Alone(ChangeSpec spec, std::set<Incarnation> dead = {})
      : registered_(spec.last), change(std::move(spec), std::move(dead)) {
    act();
  }

  void look(std::vector<Presence> words = {}) {
    change.on_look(registered_, words);
    act();
  }
  void act() {
    for (auto& action : change.take_actions()) {
      if (const auto* write = std::get_if<WriteRegister>(&action)) {
        REQUIRE(*write->expected == *registered_);
        registered_ = write->desired;
        change.on_register(registered_);
        act();
      }
      if (const auto* end = std::get_if<Finish>(&action)) finished = *end;
      if (const auto* patience = std::get_if<Patience>(&action)) patience_time = patience->time;
      if (const auto* one = std::get_if<Evict>(&action)) evicted = one->members;
    }
  }
  const EpochRecord& record() const { return *registered_; }
  std::string error() const { return finished && finished->error ? finished->error->what() : "none"; }

 private:
  RecordPtr registered_;

 public:
  EpochChange change;
  std::optional<Finish> finished;
  col::Duration patience_time{};
  std::vector<Incarnation> evicted;
};

ChangeSpec rank_0_of(int size) {
  return {.group = "g", .incarnation = 1, .last = first(size)};
}

}  // namespace

TEST_CASE("epoch change: a rank that is left alone goes on alone", "[epochs]") {
  Alone one(rank_0_of(2), {2});
  one.change.on_connected(1);
  one.act();
  REQUIRE(one.finished);
  REQUIRE(one.finished->record);
  CHECK(one.finished->record->epoch == 1);
  CHECK(one.finished->record->members.size() == 1);
  CHECK(one.finished->record->lost == std::vector<LostSeat>{{.incarnation = 2, .number = 1}});
}

TEST_CASE("epoch change: fewer than min is an error for all, and says what to do", "[epochs]") {
  ChangeSpec spec = rank_0_of(3);
  spec.min = 3;
  Alone one(std::move(spec), {3});
  one.look({word(2, 1)});
  CHECK(one.record().phase == Phase::failed);
  // The other rank asks for another min: that is found first.
  CHECK(contains(one.error(), "rank 0 says size 0, min 3, excluded []; rank 1 says size 0, min 1"));

  spec = rank_0_of(3);
  spec.min = 3;
  Alone other(std::move(spec), {3});
  Presence same = word(2, 1);
  same.min = 3;
  other.look({same});
  CHECK(other.error() ==
        "peer_lost: group 'g': renew: 2 ranks are left and 0 more wait to join, which is fewer than min = 3; start "
        "spares (colrun --spares, col::join), allow a longer wait or a smaller min, or go back to a checkpoint");
  CHECK(other.finished->settled == 1);
}

TEST_CASE("epoch change: the odd one of unequal wishes is named", "[epochs]") {
  Alone one(rank_0_of(3));
  Presence odd = word(3, 1);
  odd.excluded = {2};
  one.look({word(2, 1), odd});
  CHECK(one.error() ==
        "mismatch: group 'g': renew: rank 2 is the odd one; rank 0 says size 0, min 1, excluded []; rank 1 says size "
        "0, min 1, excluded []; rank 2 says size 0, min 1, excluded [1]; all ranks must call it with the same size, "
        "min and excluded");
  CHECK(one.finished->error->rank() == 2);
}

TEST_CASE("epoch change: a size for which there is no room is refused", "[epochs]") {
  ChangeSpec spec = rank_0_of(1);
  spec.size = 9;
  spec.most = 8;
  CHECK(Alone(std::move(spec)).error() ==
        "invalid_argument: group 'g': renew: size = 9 is more than the 8 ranks for which this job has room; ask for 8 "
        "at most, or start the job with room for more (colrun --elastic MIN:MAX)");
}

TEST_CASE("epoch change: somebody has to stay", "[epochs]") {
  ChangeSpec spec = rank_0_of(2);
  spec.excluded = {0, 1};
  CHECK(contains(Alone(std::move(spec)).error(), "lists all ranks that live; leave one of them out"));
}

TEST_CASE("epoch change: without the register there is no epoch", "[epochs]") {
  Alone one(rank_0_of(2));
  one.change.on_register_gone(Error(ErrorCode::io, "connection refused"));
  one.act();
  CHECK(contains(one.error(),
                 "io: group 'g': renew: the register that decides on the next epoch cannot "
                 "be reached (connection refused)"));
  Alone other(rank_0_of(2));
  other.change.on_register(nullptr);
  other.act();
  CHECK(other.finished->error->code() == ErrorCode::io);
}

TEST_CASE("epoch change: a rank that is left out hears in which epoch, why, and how to come back", "[epochs]") {
  ChangeSpec spec = rank_0_of(2);
  EpochChange change(spec);
  EpochRecord record = *first(2);
  record.epoch = 4;
  record.members.erase(record.members.begin());
  record.lost = {{.incarnation = 1, .number = 0, .is_excluded = true}};
  (void)change.take_actions();
  change.on_register(shared(record));
  const auto actions = change.take_actions();
  const auto& end = std::get<Finish>(actions.back());
  CHECK(std::string(end.error->what()) ==
        "aborted: group 'g': left out in epoch 4 because the other ranks have called renew() without it; this process "
        "may join again by col::join(\"g\"), or should end");
}

TEST_CASE("epoch change: who leaves as all have agreed leaves without an error", "[epochs]") {
  ChangeSpec spec{.group = "g", .incarnation = 2, .last = first(2), .excluded = {1}};
  Alone leaver(std::move(spec));
  EpochRecord record = *first(2);
  record.epoch = 1;
  record.phase = Phase::decided;
  record.members.pop_back();
  record.lost = {{.incarnation = 2, .number = 1, .is_excluded = true}};
  leaver.change.on_register(shared(record));
  leaver.act();
  REQUIRE(leaver.finished);
  CHECK(leaver.finished->has_left);
  CHECK_FALSE(leaver.finished->error);
}

TEST_CASE("epoch change: one that is excluded and silent is to be ended, one that has come is not", "[epochs]") {
  ChangeSpec spec = rank_0_of(3);
  spec.excluded = {1, 2};
  Alone one(std::move(spec));
  CHECK(one.record().phase == Phase::decided);
  CHECK(one.evicted == std::vector<Incarnation>{2, 3});
}

TEST_CASE("epoch change: the deadline names who has not come, or has not connected", "[epochs]") {
  Alone one(rank_0_of(3));
  one.look({word(2, 1)});
  one.change.on_deadline();
  one.act();
  CHECK(one.error() ==
        "timeout: group 'g': renew: rank 2 lives and did not call it in time; see what it does (coljob why), allow "
        "more time, or leave it out by `excluded`");
  CHECK(one.finished->error->rank() == 2);

  Alone other(rank_0_of(2));
  other.look({word(2, 1)});
  other.change.on_connected(1);
  other.act();
  other.change.on_deadline();
  other.act();
  CHECK(contains(other.error(), "rank 1 did not connect for epoch 1 in time"));
  CHECK(other.record().phase == Phase::failed);
}

TEST_CASE("epoch change: who has not connected is named by the number that the caller knows", "[epochs]") {
  Alone one(rank_0_of(3));
  one.change.on_lost(2);  // rank 1
  one.look({word(3, 1)});
  one.change.on_connected(1);
  one.act();
  REQUIRE(one.record().number_of(3) == 1);
  one.change.on_deadline();
  one.act();
  CHECK(contains(one.error(), "rank 2 did not connect for epoch 1 in time"));
  CHECK(one.finished->error->rank() == 2);
}

TEST_CASE("epoch change: a register that does not answer is named at the second deadline", "[epochs]") {
  EpochChange change(rank_0_of(2));
  (void)change.take_actions();
  change.on_deadline();
  CHECK(change.take_actions().empty());
  change.on_deadline();
  const auto actions = change.take_actions();
  CHECK(contains(std::get<Finish>(actions.back()).error->what(), "did not answer in time"));
}

TEST_CASE("epoch change: what fails to connect, or interrupts a rank, ends the change for all", "[epochs]") {
  Alone one(rank_0_of(2), {2});
  one.change.on_connect_failed(1, Error(ErrorCode::resource, "no room in /dev/shm; free some", "g"));
  one.act();
  CHECK(one.error() == "resource: group 'g': no room in /dev/shm; free some");
  CHECK(one.record().phase == Phase::failed);
  Alone other(rank_0_of(2));
  other.change.on_interrupted(Error(ErrorCode::aborted, "interrupted by SIGINT"));
  other.act();
  CHECK(contains(other.record().error, "interrupted by SIGINT"));
}

TEST_CASE("epoch change: the next renewal after one that failed begins beyond it", "[epochs]") {
  Alone one(rank_0_of(2));
  one.change.on_deadline();
  one.act();
  REQUIRE(one.record().phase == Phase::failed);
  ChangeSpec again = rank_0_of(2);
  again.settled = one.finished->settled;
  EpochChange change(again);
  (void)change.take_actions();
  change.on_register(shared(one.record()));
  CHECK_FALSE(change.is_over());
  CHECK(change.state().said.round == 2);
  // A rank whose first renewal it is hears how the others' first one ended.
  EpochChange late({.group = "g", .incarnation = 2, .last = first(2)});
  late.on_register(shared(one.record()));
  CHECK(late.is_over());
}

TEST_CASE("epoch change: a joiner is waited for no longer than its time", "[epochs]") {
  ChangeSpec spec = rank_0_of(1);
  spec.size = 2;
  spec.wait = 3s;
  Alone one(spec);
  Presence joiner{.incarnation = 7, .ticket = 1};
  one.look({joiner});
  CHECK(one.record().newcomers() == std::vector<int>{1});
  CHECK(one.patience_time == 3s);
  one.change.on_patience_over(1);
  one.act();
  CHECK(one.record().epoch == 1);
  CHECK(one.record().phase == Phase::void_);
  CHECK_FALSE(one.finished);
  one.change.on_wait_over();
  one.act();
  CHECK(one.record().epoch == 2);
  CHECK(one.record().members.size() == 1);
  CHECK(one.record().passed_over == std::vector<Incarnation>{7});
}

TEST_CASE("epoch change: a joiner that has not connected at the deadline has no number to be named by", "[epochs]") {
  ChangeSpec spec = rank_0_of(1);
  spec.size = 2;
  spec.wait = 3s;
  Alone one(spec);
  one.look({Presence{.incarnation = 7, .ticket = 1}});
  one.change.on_connected(1);
  one.act();
  one.change.on_deadline();
  one.act();
  CHECK(contains(one.error(), "a process that joins in epoch 1 did not connect in time"));
  CHECK(one.finished->error->rank() == -1);
}

TEST_CASE("epoch change: a joiner that nobody takes hears why", "[epochs]") {
  const auto give_up = [](EpochChange& change) {
    (void)change.take_actions();
    change.on_deadline();
    return std::string(std::get<Finish>(change.take_actions().back()).error->what());
  };
  const ChangeSpec spec{.group = "g", .incarnation = 7, .ticket = 1, .most = 2};
  EpochChange nobody(spec);
  CHECK(give_up(nobody) ==
        "timeout: group 'g': join: nobody has made a group 'g' in this job; check the name, or start the ranks that "
        "make it first");
  EpochChange full(spec);
  full.on_register(first(2));
  CHECK(contains(give_up(full), "has all of the 2 ranks for which this job has room; wait for longer"));
  EpochChange idle(spec);
  idle.on_register(first(1));
  CHECK(contains(give_up(idle), "has 1 ranks, which did not call renew() with room"));
  EpochChange orphan(spec);
  orphan.on_register(first(2));
  orphan.on_lost(1);
  CHECK_FALSE(orphan.is_over());
  orphan.on_lost(2);
  CHECK(orphan.is_over());
  const auto actions = orphan.take_actions();
  CHECK(contains(std::get<Finish>(actions.back()).error->what(), "no rank of epoch 0 lives any more"));
}
