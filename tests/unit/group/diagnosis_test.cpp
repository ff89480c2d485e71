#include "group/diagnosis/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <ctime>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <col/store.hpp>

#include "core/clock/clock.hpp"
#include "core/job/page.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/flight/pending.hpp"
#include "support/call_ring.hpp"
#include "support/catch.hpp"
#include "support/forwarding_store.hpp"
#include "support/jumping_time.hpp"
#include "support/ranks.hpp"
#include "support/silent_listener.hpp"
#include "support/temp_dir.hpp"
#include "unit/group/stuck_backend.hpp"

using namespace std::chrono_literals;
using col::Error;
using col::ErrorCode;
using col::group::Diagnosis;
using col::group::Surroundings;
using col::test::check_ended;
using col::test::Outcome;

namespace {

col::Group join(col::Context& context, int rank, int size) {
  col::test::register_stuck_backend();
  return context.init_group({.rank = rank, .world_size = size, .backend_name = "stuck"});
}

// What each rank does with the group, when ranks do different things.
using Call = std::function<void(col::Group&)>;

std::vector<Outcome> run_calls(const std::vector<Call>& calls) {
  const int n = static_cast<int>(calls.size());
  return col::test::run_threads(n, [&](int rank, col::Context& context) {
    col::Group group = join(context, rank, n);
    calls[static_cast<std::size_t>(rank)](group);
  });
}

Call allreduce(std::size_t count, col::Options options = {}) {
  return [=](col::Group& group) {
    std::vector<float> data(count);
    group.allreduce(data, options);
  };
}

Surroundings without_page(int rank, int size, std::shared_ptr<col::Store> scope) {
  Surroundings surroundings;
  surroundings.rank = rank;
  surroundings.peers.resize(static_cast<std::size_t>(size));
  for (int peer = 0; peer < size; ++peer) {
    auto& info = surroundings.peers[static_cast<std::size_t>(peer)];
    info.rank = info.global_rank = peer;
  }
  surroundings.scope = std::move(scope);
  return surroundings;
}

// The third call of a group.
col::group::Operation barrier_with(std::vector<int> counterparts) {
  col::group::Operation barrier;
  barrier.collective = true;
  barrier.sequence = 3;
  barrier.text = "barrier";
  barrier.counterparts = std::move(counterparts);
  return barrier;
}

// What it says when it has waited in a barrier of four ranks.
Error timeout_of_rank_1(Surroundings& surroundings) {
  try {
    Diagnosis(surroundings, {barrier_with({0, 2, 3})}).on_timeout(1s);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "no timeout", {}, -2);
}

// A store that does not answer while it is mute, without the time that this takes.
class AtTimesMuteStore final : public col::test::ForwardingStore {
 public:
  AtTimesMuteStore() : ForwardingStore(col::make_memory_store()) {}
  void set(std::string_view key, std::string_view value) override {
    answer();
    ForwardingStore::set(key, value);
  }
  std::optional<std::string> get(std::string_view key) override {
    answer();
    return ForwardingStore::get(key);
  }

  bool is_mute = false;

 private:
  void answer() const {
    if (is_mute) throw Error(ErrorCode::timeout, "the store has not answered");
  }
};

// A store that is gone when it is asked for one key.
class LosingStore final : public col::test::ForwardingStore {
 public:
  explicit LosingStore(std::string lost) : ForwardingStore(col::make_memory_store()), lost_(std::move(lost)) {}
  std::optional<std::string> get(std::string_view key) override {
    if (key == lost_) throw Error(ErrorCode::io, "the store is gone");
    return ForwardingStore::get(key);
  }

 private:
  const std::string lost_;
};

}  // namespace

TEST_CASE("diagnosis: of ranks on other hosts no record is read", "[group]") {
  // All that could be read here would take 20 ms each: their writers have been killed in the middle.
  const col::test::TempDir folder;
  const std::string path = folder / "page";
  const auto page = col::ControlPage::create(path, 3, "job");
  const auto mapping = col::core::open_page_file(path, "job");
  for (int rank = 0; rank < 3; ++rank) {
    page->record(rank).join(rank);
    mapping->record(rank)->version.fetch_add(1);
  }
  Surroundings surroundings = without_page(0, 8, col::make_memory_store());
  surroundings.control = page;
  const col::test::JumpingTime time;
  const auto before = col::core::clock_ns();
  for (int rank = 3; rank < 8; ++rank) CHECK_FALSE(surroundings.activity_of(rank).has_value());
  CHECK(surroundings.record_of(2) == &page->record(2));
  CHECK(surroundings.record_of(-1) == nullptr);
  CHECK(col::core::clock_ns() == before);
}

TEST_CASE("diagnosis: a different count is a mismatch that names the odd rank on every rank", "[group]") {
  const auto outcomes = run_calls({allreduce(8), allreduce(8), allreduce(9), allreduce(8)});
  check_ended(outcomes, {ErrorCode::mismatch, 2, {"rank 2 called allreduce of 9 float32"}});
}

TEST_CASE("diagnosis: a different operation, dtype, root and operator are found", "[group]") {
  const Call ints = [](col::Group& group) {
    std::vector<int> data(8);
    group.allreduce(data);
  };
  const auto broadcast = [](int root) {
    return [root](col::Group& group) {
      std::vector<float> data(8);
      group.broadcast(data, {.root = root});
    };
  };
  check_ended(run_calls({allreduce(8), ints, allreduce(8)}), {ErrorCode::mismatch, 1, {"allreduce of 8 int32"}});
  check_ended(run_calls({broadcast(0), allreduce(8), allreduce(8)}),
              {ErrorCode::mismatch, 0, {"broadcast of 8 float32"}});
  check_ended(run_calls({broadcast(0), broadcast(0), broadcast(1)}), {ErrorCode::mismatch, 2, {"root 1"}});
  check_ended(run_calls({allreduce(8), allreduce(8), allreduce(8, {.op = col::ReduceOp::max})}),
              {ErrorCode::mismatch, 2, {"float32, max"}});
}

TEST_CASE("diagnosis: between two ranks nobody is odd, both calls are shown", "[group]") {
  const auto outcomes = run_calls({allreduce(8), allreduce(9)});
  check_ended(
      outcomes,
      {ErrorCode::mismatch, -1, {"rank 0 called allreduce of 8 float32, sum, by bde; rank 1 called allreduce of 9"}});
}

TEST_CASE("diagnosis: a send and a recv of unequal counts are a mismatch on both", "[group]") {
  const auto outcomes = run_calls({[](col::Group& group) { group.send(std::array<int, 4>{}, 1); },
                                   [](col::Group& group) {
                                     std::array<int, 3> data;
                                     group.recv(data, 0);
                                   }});
  INFO(col::test::show(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.code == ErrorCode::mismatch);
    CHECK(outcome.error_rank >= 0);  // the peer of who saw it first
    CHECK(outcome.text.find("message of 4 int32 from rank 0 to rank 1") != std::string::npos);
    CHECK(outcome.text.find("the odd one") == std::string::npos);
  }
}

TEST_CASE("diagnosis: a rank that never arrives is named by the timeout, on time", "[group]") {
  std::latch others_done(2);
  const Call absent = [&](col::Group&) { others_done.wait(); };
  const Call present = [&](col::Group& group) {
    std::vector<float> data(8);
    try {
      group.allreduce(data, {.timeout = 3s});
    } catch (...) {
      others_done.count_down();
      throw;
    }
  };
  const auto outcomes = run_calls({present, absent, present});
  CHECK(outcomes[1].good);
  check_ended(outcomes, {ErrorCode::timeout, 1, {"rank 1 did not enter it"}}, {0, 2});
}

TEST_CASE("diagnosis: a wait that is given up names who did not arrive, at once and later, and breaks nothing",
          "[group]") {
  std::latch started(2), others_done(2);
  const Call absent = [&](col::Group&) { others_done.wait(); };
  const Call present = [&](col::Group& group) {
    std::vector<float> data(8);
    col::Work work = group.iallreduce(data, data, {.timeout = 3s});
    started.arrive_and_wait();
    try {
      for (const col::Duration limit : {1ms, 250ms}) {
        col::test::expect(!work.wait_for(limit));
        const Error late = work.overdue(limit);
        col::test::expect(late.code() == ErrorCode::timeout && late.rank() == 1 && late.group() == group.name(),
                          late.what());
        const std::string words =
            fmt::format("(operation 1) has not ended after {}ms: rank 1 did not enter it", limit / 1ms);
        col::test::expect(late.message().find(words) != std::string::npos, late.what());
        col::test::expect(late.message().ends_with("look at what the missing do, or wait for longer; it goes on"));
        col::test::expect(!work.has_ended());
      }
      work.wait();
    } catch (...) {
      others_done.count_down();
      throw;
    }
  };
  const auto outcomes = run_calls({present, absent, present});
  CHECK(outcomes[1].good);
  check_ended(outcomes, {ErrorCode::timeout, 1, {"rank 1 did not enter it"}}, {0, 2});
}

TEST_CASE("diagnosis: three different calls are a mismatch even when the deadline comes first", "[group]") {
  // Sooner than the votes are in: so soon that on a busy machine a rank may come too late, and is missed.
  const auto call = [](std::size_t count) { return allreduce(count, {.timeout = 300ms}); };
  std::vector<Outcome> outcomes;
  const auto somebody_was_late = [&] {
    return std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.code == ErrorCode::timeout; });
  };
  for (int attempt = 0; attempt == 0 || (attempt < 5 && somebody_was_late()); ++attempt)
    outcomes = run_calls({call(1), call(2), call(3), call(4), [](col::Group&) {}});
  check_ended(outcomes, {.code = ErrorCode::mismatch}, {0, 1, 2, 3});
}

TEST_CASE("diagnosis: of a chain of lost connections the first loss is named, whoever asks first", "[group]") {
  // Rank 3 has gone; rank 2 has left for it, ranks 1 and 0 each for the one after it.
  const std::shared_ptr<col::Store> scope = col::make_memory_store();
  const auto explain = [&](int rank, int lost) {
    Surroundings surroundings = without_page(rank, 4, scope);
    Diagnosis diagnosis(surroundings, {col::group::Operation{}});
    return diagnosis.explain(Error(ErrorCode::peer_lost, fmt::format("lost rank {}", lost), {}, lost));
  };
  std::array<std::string, 3> messages;
  {
    std::vector<std::jthread> ranks;
    for (const int rank : {0, 1, 2}) {
      ranks.emplace_back([&, rank] { messages[static_cast<std::size_t>(rank)] = explain(rank, rank + 1).message(); });
    }
  }
  for (const std::string& message : messages) CHECK(message == "lost rank 3");
  // Of two that have lost each other, each says what it has seen.
  const std::shared_ptr<col::Store> other = col::make_memory_store();
  other->set("lost/1", col::group::encode_error(Error(ErrorCode::peer_lost, "lost rank 0", {}, 0)));
  Surroundings surroundings = without_page(0, 2, other);
  CHECK(Diagnosis(surroundings, {col::group::Operation{}})
            .explain(Error(ErrorCode::peer_lost, "lost rank 1", {}, 1))
            .rank() == 1);
}

TEST_CASE("diagnosis: a store that has stopped does not hold up the deadline", "[group][rest]") {
  const col::test::SilentListener listener;
  Surroundings surroundings = without_page(0, 2, col::make_tcp_store("127.0.0.1", listener.port(), "token", 60s));
  col::group::Operation operation;
  operation.text = "allreduce";
  operation.counterparts = {1};
  Diagnosis diagnosis(surroundings, {operation});
  col::WaitContext wait(col::Deadline::after(300ms), nullptr, nullptr, &diagnosis);
  const auto start = std::chrono::steady_clock::now();
  std::optional<Error> thrown;
  while (!thrown) {
    try {
      wait.check();
    } catch (const Error& error) {
      thrown = error;
    }
  }
  CHECK(thrown->code() == ErrorCode::timeout);
  CHECK(thrown->message().find("rank 1 may not have entered it") != std::string::npos);
  CHECK(diagnosis.explain(Error(ErrorCode::peer_lost, "lost rank 1", {}, 1)).rank() == 1);
  CHECK(col::group::publish_failure(*surroundings.scope, *thrown, 0).code() == ErrorCode::timeout);
  CHECK(std::chrono::steady_clock::now() - start < col::test::kPrompt);
}

TEST_CASE("diagnosis: a rank of another host that waits in an earlier call, and one here that does, are not to blame",
          "[group]") {
  const auto seen = [](std::shared_ptr<col::ControlPage> control, const std::vector<int>& heard,
                       const std::string& lost = "") {
    Surroundings surroundings = without_page(1, 4, std::make_shared<LosingStore>(lost));
    surroundings.group = "row";
    surroundings.control = std::move(control);
    for (const int rank : heard) {
      col::group::Calls calls;
      calls.runs.push_back({1, 2, "what all ranks call"});
      surroundings.scope->set(fmt::format("calls/{}", rank), calls.encode());
    }
    const Error error = timeout_of_rank_1(surroundings);
    return std::pair(error.rank(), error.message());
  };
  const auto here = [](std::uint64_t call_of_rank_0, bool waits) {
    auto control = col::ControlPage::in_memory(2);
    for (const int rank : {0, 1}) control->record(rank).join(rank);
    control->record(0).begin("row", call_of_rank_0, "allreduce", 1);
    if (waits) control->record(0).waiting(0, 3);
    return control;
  };
  // Rank 2 has said nothing, so it does not wait. Rank 3 waits for it in call 2, and rank 0 for rank 3.
  CHECK(seen(here(3, true), {3}).first == 2);
  CHECK(seen(here(2, true), {3}).first == 2);
  CHECK(seen(nullptr, {0, 3}) == std::pair(2, std::string("barrier (operation 3) timed out after 1s: ranks 0, 2, 3 may "
                                                          "not have entered it; rank 2 is furthest behind; look at "
                                                          "what the missing do, or raise COL_TIMEOUT")));
  // Where several have said nothing, nobody can tell; but a rank here that does not wait is known to be missing.
  CHECK(seen(here(2, true), {}).first == -1);
  CHECK(seen(here(2, false), {3}).first == 0);
  // The store is lost before it has told of rank 3, which may have said as much as rank 2.
  CHECK(seen(nullptr, {0, 2, 3}, "calls/3").first == -1);
}

TEST_CASE("diagnosis: who waits on another host in another group says for whom, and is not to blame", "[group]") {
  // The ranks of the group are 10 to 13 of the job. This one, 11, waits for 10, which is on another host.
  const auto accused = [](const std::map<int, int>& held_up_by) {
    Surroundings surroundings = without_page(1, 4, col::make_memory_store());
    surroundings.group = "row";
    for (auto& peer : surroundings.peers) peer.global_rank = 10 + peer.rank;
    for (const auto& [rank, held] : held_up_by) {
      col::group::Calls calls;
      if (rank != 0) calls.runs.push_back({1, 3, "what all ranks call"});
      calls.held_up_by = held;
      surroundings.scope->set(fmt::format("calls/{}", rank), calls.encode());
    }
    const Error error = timeout_of_rank_1(surroundings);
    return std::tuple(error.rank(), error.world_rank(), error.message());
  };
  const auto [member, of_job, text] = accused({{0, 13}, {2, -1}, {3, -1}});
  CHECK(member == 3);
  CHECK(text.find("rank 0 may not have entered it; rank 0 waits for others, and in the end for rank 13 of the job") !=
        std::string::npos);
  // Somebody outside of this group; a chain; a circle; this rank itself.
  CHECK(std::get<1>(accused({{0, 7}, {2, -1}, {3, -1}})) == 7);
  CHECK(std::get<0>(accused({{0, 12}, {2, 13}, {3, -1}})) == 3);
  CHECK(std::get<0>(accused({{0, 12}, {2, 10}, {3, -1}})) == 0);
  CHECK(std::get<0>(accused({{0, 11}, {2, -1}, {3, -1}})) == 0);
  // Nobody is known to be behind; but one that waits in the same call knows more.
  CHECK(std::get<1>(accused({{2, 7}})) == 7);
  // One that waits and does not know for whom is not to blame, nor is another one.
  using col::group::kSomebody;
  const auto [nobody, of_world, words] = accused({{0, kSomebody}, {2, -1}, {3, -1}});
  CHECK(std::pair(nobody, of_world) == std::pair(-1, -1));
  CHECK(words.find("rank 0 may not have entered it; rank 0 waits for others itself; look at") != std::string::npos);
  CHECK(std::get<0>(accused({{0, 12}, {2, kSomebody}, {3, -1}})) == -1);
  CHECK(std::get<1>(accused({{2, kSomebody}})) == -1);
}

TEST_CASE("diagnosis: who has left because of an error has waited for its culprit, and is not to blame", "[group]") {
  // The first rank of the group has left it; this one's deadline comes before it hears of that by a connection.
  const auto accused = [](int culprit) {
    Surroundings surroundings = without_page(1, 4, col::make_memory_store());
    for (const int rank : {0, 2, 3}) {
      col::group::Calls calls;
      if (rank != 0) calls.runs.push_back({1, 3, "what all ranks call"});
      calls.has_left = rank == 0;
      if (rank == 0)
        calls.why =
            col::group::encode_error(Error(ErrorCode::timeout, "late", "column", culprit < 0 ? -1 : 1, culprit));
      surroundings.scope->set(fmt::format("calls/{}", rank), calls.encode());
    }
    col::group::Operation message{.text = "message", .sequence = 3, .collective = false, .counterparts = {0}};
    try {
      Diagnosis(surroundings, {message}).on_timeout(1s);
    } catch (const Error& error) {
      return std::pair(error.rank(), error.world_rank());
    }
    return std::pair(-2, -2);
  };
  CHECK(accused(3) == std::pair(3, -1));
  CHECK(accused(7) == std::pair(-1, 7));
  CHECK(accused(-1) == std::pair(-1, -1));
}

TEST_CASE("diagnosis: a wait passes on what others find out while it lasts, or that it knows nobody", "[group]") {
  struct Call {
    Diagnosis diagnose(Surroundings& surroundings) const { return Diagnosis(surroundings, {barrier_with({0, 2})}); }
  };
  Surroundings surroundings = without_page(1, 3, col::make_memory_store());
  for (auto& peer : surroundings.peers) peer.global_rank = 10 + peer.rank;
  const auto posted = [&] {
    return col::group::Calls::decode(surroundings.scope->get("calls/1").value_or("here -1 \n\n")).held_up_by;
  };
  const auto says = [&](int rank, int held_up_by, std::uint64_t calls_made) {
    col::group::Calls calls;
    calls.runs.push_back({1, calls_made, "what all ranks call"});
    calls.held_up_by = held_up_by;
    surroundings.scope->set(fmt::format("calls/{}", rank), calls.encode());
  };
  const Call call;
  {
    col::group::LateDiagnosis wait(surroundings, call);
    wait.on_slow(300ms);
    CHECK(posted() == col::group::kSomebody);  // nobody else has said a word
    says(2, col::group::kNobody, 3);
    says(0, col::group::kNobody, 2);
    wait.on_slow(600ms);
    CHECK(posted() == 10);
    says(0, 7, 2);
    wait.on_slow(900ms);
    CHECK(posted() == 7);
  }
  CHECK(posted() == col::group::kNobody);
}

TEST_CASE("diagnosis: where ranks wait in a circle, this one does not compare its calls with what it has said",
          "[group]") {
  struct Call {
    Diagnosis diagnose(Surroundings& surroundings) const { return Diagnosis(surroundings, {barrier_with({0})}); }
  };
  Surroundings surroundings = without_page(1, 2, col::make_memory_store());
  col::group::CollectiveCall made;
  made.call = 1;
  made.words = "what all ranks call";
  surroundings.history.add(made, 1);
  col::group::Calls said = surroundings.history.calls(0, 2);
  said.held_up_by = 1;
  surroundings.scope->set("calls/0", said.encode());
  const Call call;
  col::group::LateDiagnosis wait(surroundings, call);
  wait.on_slow(300ms);
  // As where blocks differ from rank to rank, by right.
  said.runs.front().text = "what only this rank calls";
  surroundings.scope->set("calls/1", said.encode());
  wait.on_slow(600ms);
  CHECK_NOTHROW(wait.on_slow(900ms));
}

TEST_CASE("diagnosis: what a look has found is not explained once more", "[group]") {
  Surroundings surroundings = without_page(1, 3, col::make_memory_store());
  surroundings.group = "row";
  col::group::Calls left;
  left.has_left = true;
  left.why = col::group::encode_error(Error(ErrorCode::peer_lost, "rank 0 has ended", "column", 0, 7));
  surroundings.scope->set("calls/2", left.encode());
  Diagnosis diagnosis(
      surroundings,
      {{.text = "message of any", .sequence = 1, .collective = false, .received_tag = 0, .counterparts = {0, 2}}});
  const auto found = [&]() -> std::optional<Error> {
    try {
      diagnosis.look();
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  }();
  REQUIRE(found);
  CHECK(found->world_rank() == 7);
  // Another rank has been told of it as this rank's own error.
  col::group::publish_failure(*surroundings.scope, Error(ErrorCode::aborted, "rank 1 ended the group", "row", 1), 0);
  CHECK(diagnosis.explain(*found).message() == found->message());
}

TEST_CASE("diagnosis: a wait says whom it is for as long as it lasts, and other looks leave that", "[group]") {
  struct Call {
    Diagnosis diagnose(Surroundings& surroundings) const { return Diagnosis(surroundings, {barrier_with({0, 2})}); }
  };
  Surroundings surroundings = without_page(1, 3, col::make_memory_store());  // nobody knows where they are: three hosts
  for (auto& peer : surroundings.peers) peer.global_rank = 10 + peer.rank;
  const auto posted = [&] {
    return col::group::Calls::decode(surroundings.scope->get("calls/1").value_or("here -1 \n\n")).held_up_by;
  };
  col::group::Calls other;
  other.runs.push_back({1, 3, "what all ranks call"});
  surroundings.scope->set("calls/2", other.encode());
  const Call call;
  {
    col::group::LateDiagnosis wait(surroundings, call);
    wait.on_slow(100ms);
    CHECK(posted() == -1);
    wait.on_slow(300ms);
    CHECK(posted() == 10);
    call.diagnose(surroundings).look();  // of an operation that is tested meanwhile
    CHECK(posted() == 10);
  }
  CHECK(posted() == -1);
  // After an error, others that wait for this rank may still have to be told.
  CHECK_THROWS_AS(([&] {
                    col::group::LateDiagnosis wait(surroundings, call);
                    wait.on_timeout(1s);
                  }()),
                  Error);
  CHECK(posted() == 10);
}

TEST_CASE("diagnosis: whom a wait is for is made up for when the store answers again", "[group]") {
  struct Call {
    Diagnosis diagnose(Surroundings& surroundings) const { return Diagnosis(surroundings, {barrier_with({0, 2})}); }
  };
  const auto store = std::make_shared<AtTimesMuteStore>();
  Surroundings surroundings = without_page(1, 3, store);
  for (auto& peer : surroundings.peers) peer.global_rank = 10 + peer.rank;
  const auto posted = [&] {
    return col::group::Calls::decode(surroundings.scope->get("calls/1").value_or("here -1 \n\n")).held_up_by;
  };
  col::group::Calls other;
  other.runs.push_back({1, 3, "what all ranks call"});
  surroundings.scope->set("calls/2", other.encode());
  const Call call;
  col::group::LateDiagnosis wait(surroundings, call);
  wait.on_slow(100ms);
  store->is_mute = true;
  wait.on_slow(300ms);
  CHECK(surroundings.store_is_mute());
  store->is_mute = false;
  CHECK(posted() == -1);
  surroundings.store = std::make_shared<col::group::StoreHealth>();  // as after a pause of seconds
  wait.on_slow(600ms);
  CHECK(posted() == 10);
}

TEST_CASE("diagnosis: no rank is told that it is lost itself, by why another one has left either", "[group]") {
  // Rank 0 has left because another group has lost this rank, 1.
  Surroundings surroundings = without_page(1, 2, col::make_memory_store());
  surroundings.group = "row";
  col::group::Calls left;
  left.has_left = true;
  left.why = col::group::encode_error(Error(ErrorCode::peer_lost, "lost the connection to rank 0", "column", 0, 1));
  surroundings.scope->set("calls/0", left.encode());
  const auto explain = [&](Surroundings& by) {
    return Diagnosis(by, {barrier_with({0})}).explain(Error(ErrorCode::peer_lost, "lost rank 0", {}, 0));
  };
  const Error own = explain(surroundings);
  CHECK(own.code() == ErrorCode::aborted);
  CHECK(own.rank() == -1);
  CHECK(own.message().find("others have taken this rank, 1, for lost") == 0);
  // Another rank is told which one it is.
  Surroundings others = without_page(2, 3, surroundings.scope);
  const Error told = explain(others);
  CHECK(told.code() == ErrorCode::peer_lost);
  CHECK(told.rank() == 1);
  CHECK(told.message().find("rank 0 has left the group after an error of group 'column'") == 0);
}

TEST_CASE("diagnosis: the time that one call of a kept operation has spent is not that of the next", "[group]") {
  col::group::Pending kept;
  kept.end();
  kept.spent = 3s;
  kept.begin_again();
  CHECK(kept.spent == col::Duration::zero());
  CHECK_FALSE(kept.has_ended());
}

TEST_CASE("diagnosis: a rank that is behind names the one that left too early, by what the others call", "[group]") {
  // Rank 2 has left after call 1, in which this rank still is. Rank 0 waits for it in call 2, and has ended the group.
  Surroundings surroundings = without_page(1, 3, col::make_memory_store());
  col::group::Calls left, goes_on;
  left.has_left = true;
  left.runs.push_back({1, 1, "allreduce"});
  goes_on.runs = left.runs;
  goes_on.runs.push_back({2, 1, "barrier"});
  surroundings.scope->set("calls/2", left.encode());
  surroundings.scope->set("calls/0", goes_on.encode());
  col::group::Operation own;
  own.text = "allreduce";
  own.sequence = 1;
  own.counterparts = {0, 2};
  const Error error = Diagnosis(surroundings, {own}).explain(Error(ErrorCode::peer_lost, "rank 2 left", {}, 2));
  CHECK(error.code() == ErrorCode::mismatch);
  CHECK(error.rank() == 2);
  CHECK(error.message() ==
        "rank 2 is the odd one; rank 0 called barrier; rank 2 called nothing more, and left the group (operation 2); "
        "every rank must make the same calls in the same order");
}

TEST_CASE("diagnosis: a different algorithm is a mismatch", "[group]") {
  col::test::register_stuck_backend();
  const auto outcomes = run_calls({allreduce(8), allreduce(8, {.algorithm = "stuck"}), allreduce(8)});
  check_ended(outcomes, {ErrorCode::mismatch, 1, {"rank 1 called allreduce of 8 float32, sum, by stuck"}});
}

TEST_CASE("diagnosis: blocks of an alltoallv that two ranks disagree on are a mismatch", "[group]") {
  const auto call = [](std::array<std::size_t, 2> in, std::array<std::size_t, 2> out) {
    return [=](col::Group& group) {
      std::vector<int> send(in[0] + in[1]), recv(out[0] + out[1]);
      group.alltoallv(send, in, recv, out);
    };
  };
  const auto outcomes = run_calls({call({1, 5}, {1, 2}), call({2, 1}, {3, 1})});
  check_ended(outcomes, {ErrorCode::mismatch, -1, {"rank 0 sends 5 elements to rank 1, which expects 3"}});
}

TEST_CASE("diagnosis: a rank that ended after it had done its part does not end the others' call", "[group]") {
  // Rank 1 has done the operation that rank 0 is still in, left another group, and is gone: not why rank 0 waits.
  const auto outcomes = col::test::run_processes(2, [](int rank, col::Context& context) {
    col::Group group = join(context, rank, 2);
    if (rank == 1) {
      context.spec().control->record(1).begin("default", 1, "allreduce", 1);
      context.spec().control->record(1).end();
      _exit(0);
    }
    std::vector<float> data(8);
    group.allreduce(data, {.timeout = 1s});
  });
  check_ended(outcomes, {ErrorCode::timeout}, {0});
}

TEST_CASE("diagnosis: a rank that is gone is missed in each group whose call it has not ended", "[group]") {
  constexpr std::uint64_t kRow = 7, kColumn = 8;
  const auto note = [](col::RankRecord& record, int group, std::uint64_t sequence, const char* name, bool ended) {
    col::test::note(record, group, sequence, col::collective_from_string(name), {}, ended);
  };
  // Rank 1 does something in the row, has its last call in the column, and is gone. Returns what this rank, in the
  // third call of the row, finds out.
  const auto found = [&](const std::function<void(col::RankRecord&, int row)>& in_row, const std::string& prefix = "") {
    const col::test::TempDir directory;
    Surroundings surroundings = without_page(0, 2, col::make_memory_store());
    surroundings.group = prefix + "row";
    surroundings.token = kRow;
    surroundings.control = col::ControlPage::create(directory / "page", 2, "job");
    const pid_t rank_1 = fork();
    if (rank_1 == 0) {
      col::RankRecord& record = surroundings.control->record(1);
      record.join(1);
      const std::string last = prefix + "column";
      const int row = record.enter_group(prefix + "row", kRow), column = record.enter_group(last, kColumn);
      in_row(record, row);
      record.begin(last, 9, "barrier", 1);
      note(record, column, 9, "barrier", true);
      record.end(last);
      _exit(0);
    }
    waitpid(rank_1, nullptr, 0);
    try {
      Diagnosis(surroundings, {barrier_with({1})}).look();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::peer_lost);
      return error.rank();
    }
    return -1;
  };
  using Record = col::RankRecord;
  CHECK(found([](Record&, int) {}) == 1);
  CHECK(found([&](Record& record, int row) { note(record, row, 2, "barrier", true); }) == 1);
  CHECK(found([&](Record& record, int row) { note(record, row, 3, "barrier", true); }) == -1);
  // It was started, and a later call has ended; a message has the number of the collective before it.
  CHECK(found([&](Record& record, int row) {
          note(record, row, 3, "barrier", false);
          note(record, row, 4, "barrier", true);
        }) == 1);
  CHECK(found([&](Record& record, int row) { note(record, row, 3, "send", true); }) == 1);
  // A name that the record cuts says nothing.
  CHECK(found([](Record&, int) {}, std::string(47, 'a')) == 1);
  // Another group had the row's number in the recorder before.
  CHECK(found([&](Record& record, int row) {
          record.leave_group(row);
          for (std::uint64_t token = 100; token < 170; ++token) {
            const int before = record.enter_group("before", token);
            note(record, before, 3, "barrier", true);
            record.leave_group(before);
          }
          record.enter_group("row", kRow);
        }) == 1);
  // It has let go of its last handle of the row, and said nothing.
  CHECK(found([](Record& record, int row) { record.leave_group(row); }) == 1);
}

TEST_CASE("diagnosis: of several calls that a wait is for, only those are told that have not ended", "[group]") {
  Surroundings surroundings = without_page(0, 3, col::make_memory_store());
  std::vector<col::group::Operation> left{barrier_with({1}), barrier_with({2})};
  left[1].sequence = 4;
  const auto named = [&](Diagnosis& diagnosis) {
    try {
      diagnosis.on_timeout(1s);
    } catch (const Error& error) {
      return error.message().substr(0, error.message().find(" timed out"));
    }
    return std::string();
  };
  Diagnosis diagnosis(surroundings, [&] { return left; });
  CHECK(named(diagnosis) == "barrier (operation 3)");
  left.erase(left.begin());
  CHECK(named(diagnosis) == "barrier (operation 4)");
  left[0].sequence = 5;  // as many as before, and not the same
  CHECK(named(diagnosis) == "barrier (operation 5)");
}

TEST_CASE("diagnosis: a rank that left too early is a mismatch, also when its process is gone", "[group]") {
  const col::test::TempDir directory;
  Surroundings surroundings = without_page(0, 2, col::make_memory_store());
  surroundings.group = "row";
  surroundings.control = col::ControlPage::create(directory / "page", 2, "job");
  const pid_t rank_1 = fork();
  if (rank_1 == 0) {
    surroundings.control->record(1).join(1);
    _exit(0);
  }
  waitpid(rank_1, nullptr, 0);
  col::group::CollectiveCall barrier;
  barrier.request.collective = col::Collective::barrier;
  col::group::History of_rank_1;
  of_rank_1.add(barrier, 1);
  for (const std::uint64_t sequence : {1, 2, 3}) surroundings.history.add(barrier, sequence);
  const auto explained = [&] {
    const Error symptom(ErrorCode::peer_lost, "rank 1 has closed the connection", {}, 1);
    return Diagnosis(surroundings, {surroundings.history.operation(3, 0, 2)}).explain(symptom);
  };
  CHECK(explained().code() == ErrorCode::peer_lost);
  col::group::Calls left = of_rank_1.calls(1, 2);
  left.has_left = true;
  surroundings.scope->set("calls/1", left.encode());
  const Error error = explained();
  CHECK(error.code() == ErrorCode::mismatch);
  CHECK(error.rank() == 1);
}

TEST_CASE("diagnosis: a rank that leaves without a word leaves nothing on the board", "[group]") {
  Surroundings surroundings = without_page(1, 2, col::make_memory_store());
  surroundings.sent[{0, 0}] = 1;
  col::group::post_calls(surroundings, std::nullopt);
  CHECK(surroundings.scope->num_keys() == 1);
  col::group::unpost_calls(surroundings);
  CHECK(surroundings.scope->num_keys() == 0);
}

TEST_CASE("diagnosis: of ranks that ended for lack of one another, the first is named", "[group]") {
  const col::test::TempDir directory;
  Surroundings surroundings = without_page(0, 3, col::make_memory_store());
  surroundings.group = "row";
  surroundings.control = col::ControlPage::create(directory / "page", 8, "job");
  for (auto& peer : surroundings.peers) peer.global_rank = 2 * peer.rank;  // 0, 2, 4
  // A process that was this rank of the job, had an error for lack of another one, and is gone.
  const auto end = [&](int rank, int lost) {
    const pid_t process = fork();
    if (process == 0) {
      surroundings.control->record(rank).join(rank);
      surroundings.control->record(rank).fail(lost);
      _exit(0);
    }
    waitpid(process, nullptr, 0);
  };
  const auto found = [&] {
    try {
      Diagnosis(surroundings, {barrier_with({1, 2})}).look();
    } catch (const Error& error) {
      return std::tuple(error.rank(), error.world_rank(), error.message());
    }
    return std::tuple(-2, -2, std::string("nothing"));
  };
  end(2, 5);  // which lives, as far as anybody knows
  CHECK(std::get<0>(found()) == 1);
  end(5, -1);
  const auto [member, of_job, text] = found();
  CHECK(member == 1);  // whom a smaller group would leave out
  CHECK(of_job == 2);
  CHECK(text.find(", as it had lost rank 5 of the job; its own output") != std::string::npos);
  end(5, 4);
  end(4, -1);
  CHECK(std::get<0>(found()) == 2);
  end(4, 2);  // a circle
  CHECK(std::get<0>(found()) == 1);
}

TEST_CASE("diagnosis: a name that begins like another, and an earlier group of the name, do not speak for a rank",
          "[group]") {
  std::latch done(1);
  const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
    const auto make = [&](const std::string& name) {
      return context.init_group({.name = name, .rank = rank, .world_size = 2, .backend_name = "stuck"});
    };
    col::test::register_stuck_backend();
    make("row1");
    context.destroy_group("row1");
    col::Group group = make("row1");
    if (rank == 1) {
      context.spec().control->record(1).begin("row", 9, "allreduce", 1);
      done.wait();
      return;
    }
    try {
      std::vector<float> data(8);
      group.allreduce(data, {.timeout = 3s});
    } catch (...) {
      done.count_down();
      throw;
    }
  });
  check_ended(outcomes,
              {ErrorCode::timeout, 1, {"rank 1 may not have entered it (last seen in allreduce of group 'row')"}}, {0});
}

TEST_CASE("diagnosis: a rank that has started a call has come to it, though it has waited for an earlier one",
          "[group]") {
  const auto control = col::ControlPage::in_memory(4);
  Surroundings surroundings = without_page(1, 4, col::make_memory_store());
  surroundings.group = "row";
  surroundings.token = 7;
  surroundings.control = control;
  for (int rank = 0; rank < 4; ++rank) {
    col::RankRecord& record = control->record(rank);
    record.join(rank);
    const int row = record.enter_group("row", 7);
    const std::uint64_t last = rank == 3 ? 2 : 3;  // rank 3 has not come to the barrier
    for (std::uint64_t call = 2; call <= last; ++call)
      col::test::note(record, row, call, col::Collective::barrier, {}, rank == 3);
    record.begin("row", rank == 0 ? 3 : 2, "barrier", 1);
  }
  control->record(0).waiting(-1, -1);
  control->record(3).end();
  const Error error = timeout_of_rank_1(surroundings);
  INFO(error.message());
  CHECK(error.rank() == 3);
  CHECK(error.message().find("rank 3 did not enter it") != std::string::npos);
}

TEST_CASE("diagnosis: a rank that hangs with calls in flight is named, also by who waits for one that waits for it",
          "[group]") {
  std::latch others_done(2);
  const auto outcomes = col::test::run_threads(
      3,
      [&](int rank, col::Context& context) {
        col::test::register_stuck_backend();
        const auto make = [&](const std::string& name, int member) {
          return context.init_group({.name = name, .rank = member, .world_size = 2, .backend_name = "stuck"});
        };
        std::vector<float> data(8);
        try {
          if (rank == 0) {
            make("a", 0).allreduce(data, {.timeout = 3s});
          } else if (rank == 1) {
            col::Group first = make("a", 1), second = make("b", 0);
            second.iallreduce(data, data, {.timeout = 5s}).wait();
          } else {
            col::Work work = make("b", 1).iallreduce(data, data);
            others_done.wait();
          }
        } catch (...) {
          others_done.count_down();
          throw;
        }
      },
      {.timeout = 8s});
  check_ended(outcomes, {ErrorCode::timeout, {}, {"rank 2 of the job"}}, {0});
  check_ended(outcomes, {ErrorCode::timeout, 1, {"is in none of col's waits"}}, {1});
}

TEST_CASE("diagnosis: a failure of an earlier run in the same store does not end a later one", "[group]") {
  const auto store = col::make_memory_store();
  const auto run = [&](std::size_t odd_count) {
    return col::test::run_threads(2, [&, odd_count](int rank, col::Context&) {
      col::ContextSpec spec;
      spec.rank = rank;
      spec.world_size = 2;
      spec.store = store;
      col::Context context(spec);
      col::Group group = join(context, rank, 2);
      std::vector<float> data(rank == 1 ? odd_count : 8u);
      group.allreduce(data, {.timeout = 3s});
    });
  };
  CHECK(run(9)[0].code == ErrorCode::mismatch);
  check_ended(run(8), {ErrorCode::timeout});  // nothing ever moves here
}

TEST_CASE("diagnosis: a forked child is no member, and does not break the group of its parent", "[group]") {
  const auto outcomes = col::test::run_processes(2, [](int rank, col::Context& context) {
    col::Group group = join(context, rank, 2);
    const pid_t child = fork();
    if (child == 0) {
      std::vector<float> data(8);
      try {
        group.allreduce(data);
      } catch (const col::Error& error) {
        context.finalize();
        _exit(error.code() == ErrorCode::not_initialized ? 0 : 1);
      }
      _exit(2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    col::test::expect(status == 0, "the child's call did not end as it should");
    col::test::expect(context.spec().control->record(rank).read().state != col::RankActivity::State::finished);
    std::vector<float> data(8);
    group.allreduce(data, {.timeout = 500ms});
  });
  check_ended(outcomes, {ErrorCode::timeout});
}

TEST_CASE("diagnosis: the launcher's word ends every wait with its cause", "[group]") {
  constexpr int kRanks = 3;
  std::barrier<> entered(kRanks);
  const auto outcomes = col::test::run_threads(kRanks, [&](int rank, col::Context& context) {
    col::Group group = join(context, rank, kRanks);
    entered.arrive_and_wait();
    if (rank == 2) {
      context.spec().control->abort({ErrorCode::peer_lost, 2, "rank 2 exited with code 7"});
      return;
    }
    std::vector<float> data(8);
    group.allreduce(data);
  });
  check_ended(outcomes, {ErrorCode::peer_lost, 2, {"rank 2 exited with code 7"}}, {0, 1});
}

TEST_CASE("diagnosis: news of a rank's end are looked into at once, until no member is lost", "[group]") {
  const auto control = col::ControlPage::in_memory(3);
  for (int rank = 0; rank < 3; ++rank) {
    control->record(rank).started(rank, ::getpid());
    control->record(rank).join(rank);
  }
  Surroundings surroundings = without_page(0, 2, col::make_memory_store());  // rank 2 of the job is not a member
  surroundings.control = control;
  surroundings.record = &control->record(0);
  Diagnosis diagnosis(surroundings, {barrier_with({1})});
  control->record(2).ended(0);
  diagnosis.on_news(1);
  CHECK(surroundings.news_heard == 1);
  control->record(1).ended(SIGKILL);
  diagnosis.on_news(1);  // these were heard
  for (int call = 0; call < 2; ++call) {
    try {
      diagnosis.on_news(2);
      FAIL("rank 1 is gone");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::peer_lost);
      CHECK(error.rank() == 1);
    }
  }
  CHECK(surroundings.news_heard == 1);
}

TEST_CASE("diagnosis: without a launcher, the control page shows that a process has died", "[group]") {
  const auto outcomes = col::test::run_processes(3, [](int rank, col::Context& context) {
    col::Group group = join(context, rank, 3);
    if (rank == 1) kill(getpid(), SIGKILL);
    std::vector<float> data(8);
    group.allreduce(data);
  });
  CHECK(outcomes[1].signal == SIGKILL);
  check_ended(outcomes, {ErrorCode::peer_lost, 1, {}}, {0, 2});
}

TEST_CASE("diagnosis: a broken group says so at the next call, and can be created anew", "[group]") {
  const auto outcomes = col::test::run_threads(2, [](int rank, col::Context& context) {
    for (int round = 0; round < 2; ++round) {
      col::Group group = join(context, rank, 2);
      std::vector<float> data(rank == 0 ? 4u : 5u);
      const auto code_of = [&] {
        try {
          group.allreduce(data);
        } catch (const col::Error& error) {
          return std::string(to_string(error.code())) + " " + error.message();
        }
        return std::string("no error");
      };
      col::test::expect(code_of().starts_with("mismatch"));
      const std::string again = code_of();
      col::test::expect(again.starts_with("aborted") && again.find("broke before") != std::string::npos, again);
      col::test::expect(context.destroy_group("default"));
      const std::string gone = code_of();
      col::test::expect(gone.starts_with("not_initialized"), gone);
    }
  });
  col::test::check_all_good(outcomes);
}

TEST_CASE("diagnosis: a group used by two threads at once is refused, not raced", "[group]") {
  std::latch waited_for(1);
  const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
    col::Group group = join(context, rank, 2);
    if (rank == 1) return waited_for.wait();
    // Whichever thread comes second is refused at once; the first one waits for rank 1 until its deadline.
    const auto call = [&group] {
      std::vector<float> data(1);
      try {
        group.allreduce(data, {.timeout = 3s});
      } catch (const col::Error& error) {
        return error;
      }
      return col::Error(ErrorCode::internal, "a call that can never end has ended");
    };
    std::optional<col::Error> other;
    {
      std::latch both(2);
      std::jthread thread([&] {
        both.arrive_and_wait();
        other = call();
      });
      both.arrive_and_wait();
      const col::Error own = call();
      thread.join();
      waited_for.count_down();
      const col::Error& refused = own.code() == ErrorCode::invalid_argument ? own : *other;
      const col::Error& waited = own.code() == ErrorCode::invalid_argument ? *other : own;
      col::test::expect(refused.code() == ErrorCode::invalid_argument, refused.what());
      col::test::expect(refused.message().find("another thread") != std::string::npos, refused.what());
      col::test::expect(waited.code() == ErrorCode::timeout, waited.what());
    }
  });
  col::test::check_all_good(outcomes);
}

TEST_CASE("diagnosis: looking for what each of thousands does takes no square of their number", "[group]") {
  constexpr int kRanks = 3000;
  Surroundings surroundings = without_page(0, kRanks, nullptr);
  surroundings.control = col::ControlPage::in_memory(kRanks);
  const bool shifted = GENERATE(false, true);  // records need not lie as ranks are numbered
  for (int i = 0; i < kRanks; ++i) surroundings.control->record(i).join(shifted && i < 8 ? (i + 1) % 8 : i);
  // Processor time: what else the machine does does not count.
  std::clock_t began = std::clock();
  int running = 0;
  for (int rank = 0; rank < kRanks; ++rank)
    running += surroundings.control->record(rank).read().state == col::RankActivity::State::running ? 1 : 0;
  const std::clock_t all_once = std::clock() - began;
  began = std::clock();
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto activity = surroundings.activity_of(rank);
    REQUIRE(activity);
    REQUIRE(activity->rank == rank);
  }
  // About one such pass; 3,000 of them if all records were read for each rank.
  CHECK(std::clock() - began < 300 * std::max<std::clock_t>(all_once, CLOCKS_PER_SEC / 1000));
  CHECK(running == 0);
  CHECK_FALSE(surroundings.activity_of(kRanks));
}

TEST_CASE("diagnosis: a member whose place another process has taken is lost", "[group]") {
  const auto page = col::ControlPage::in_memory(2);
  Surroundings surroundings = without_page(0, 2, col::make_memory_store());
  surroundings.control = page;
  constexpr std::int64_t kBefore = 4'000'001;
  for (auto& peer : surroundings.peers) peer.pid = ::getpid();
  page->record(0).join(0);
  page->record(1).started(1, kBefore);
  page->record(1).join(1);
  const auto look = [&] { Diagnosis(surroundings, {barrier_with({1})}).on_slow(200ms); };
  look();
  // Another process of the same launch, as of a shell that runs one program after the other, says nothing of the first.
  surroundings.peers[1].pid = kBefore;
  look();
  page->record(1).ended(9);
  page->record(1).started(1, ::getpid());
  try {
    look();
    FAIL("nobody is lost");
  } catch (const Error& error) {
    CHECK((error.code() == ErrorCode::peer_lost && error.rank() == 1));
    CHECK(error.message().find("rank 1 (pid 4000001) has ended without col::finalize(), and process ") == 0);
  }
}
