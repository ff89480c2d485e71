#include "group/join/rendezvous.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "group/call/operation.hpp"
#include "group/join/join.hpp"
#include "store/base/call_limit.hpp"
#include "support/catch.hpp"
#include "support/counting_store.hpp"
#include "support/forwarding_store.hpp"
#include "support/ranks.hpp"
#include "support/silent_listener.hpp"
#include "unit/group/stuck_backend.hpp"

using namespace std::chrono_literals;
using col::ErrorCode;
using col::test::check_ended;
using col::test::Outcome;

namespace {

col::GroupSpec stuck(int rank, int size, std::string name = "default") {
  col::test::register_stuck_backend();
  return {.name = std::move(name), .rank = rank, .world_size = size, .backend_name = "stuck"};
}

// Where the group "default" of the contexts of run_threads meets.
std::shared_ptr<col::Store> name_scope(const col::Context& context) {
  return col::group::meeting_place(context.spec().store, col::group::job_name(context.spec()), "default");
}

// As a rank does whose backend has no card.
void decline(int rank, int size, std::string_view backend, const col::Context& context) {
  col::group::Member self;
  self.world_size = size;
  self.backend = col::group::with_reason(backend, "it has no card");
  self.nonce = self.process_nonce = 1000 + static_cast<std::uint64_t>(rank);
  self.peer.rank = rank;
  self.peer.pid = ::getpid();
  col::WaitContext wait(col::Deadline::after(20s));
  col::group::decline("default", self, *name_scope(context), wait);
}

// Says by the key "looked" that its rank has looked for the record of a group: it has waited for long.
class TellsLooks final : public col::test::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::optional<std::string> get(std::string_view key) override {
    std::optional<std::string> value = ForwardingStore::get(key);
    if (key.find("group record") != std::string_view::npos) set("looked", "");
    return value;
  }
};

// Rank 0 dies while the ranks connect; the others lose the connection to rank 2, which has left because of that.
class DyingBackend final : public col::BackendFactory {
 public:
  explicit DyingBackend(const col::RankRecord& of_rank_0) : of_rank_0_(of_rank_0) {}
  std::string_view name() const override { return "dying"; }
  std::optional<std::string> unavailable_reason() const override { return std::nullopt; }
  std::unique_ptr<col::Channel> connect(const col::ConnectRequest& request, col::WaitContext& /*wait*/) override {
    if (request.rank == 0) _exit(0);
    while (!of_rank_0_.lost()) std::this_thread::yield();
    throw col::Error(ErrorCode::peer_lost, "lost the connection to rank 2", {}, 2);
  }
  std::string describe(const col::ConnectRequest&) const override { return ""; }

 private:
  const col::RankRecord& of_rank_0_;
};

bool says(const Outcome& outcome, const std::string& words) {
  return outcome.text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("rendezvous: ranks that agree know one another", "[group]") {
  const auto outcomes = col::test::run_threads(8, [](int rank, col::Context& context) {
    const col::Group group = context.init_group(stuck(rank, 8));
    col::test::expect(group.rank() == rank && group.size() == 8);
  });
  col::test::check_all_good(outcomes);
}

TEST_CASE("rendezvous: a world size that disagrees is found at once, and every rank names the odd one", "[group]") {
  for (const int odd : {0, 1, 3}) {
    const auto outcomes = col::test::run_threads(
        4, [&](int rank, col::Context& context) { context.init_group(stuck(rank, rank == odd ? 5 : 4)); });
    INFO("odd one: " << odd);
    check_ended(outcomes,
                {ErrorCode::mismatch, odd, {"ranks disagree on the world size", fmt::format("rank {} (pid", odd)}});
  }
}

TEST_CASE("rendezvous: a rank that cannot use the backend is named on all others, and they do not wait for it",
          "[group]") {
  for (const int odd : {0, 2}) {
    const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
      if (rank != odd) {
        context.init_group(stuck(rank, 3));
        return;
      }
      decline(rank, 3, "stuck", context);
    });
    INFO("odd one: " << odd);
    check_ended(outcomes,
                {ErrorCode::unavailable, odd, {"it has no card; or name a backend", fmt::format("rank {} (pid", odd)}},
                odd == 0 ? std::vector{1, 2} : std::vector{0, 1});
  }
}

TEST_CASE("rendezvous: a rank that could not use another backend may come with this one", "[group]") {
  const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
    if (rank == 1) {
      try {
        context.init_group({.name = "default", .rank = rank, .world_size = 3, .backend_name = "nowhere"});
        col::test::expect(false, "no error");
      } catch (const col::Error& error) {
        col::test::expect(error.code() == ErrorCode::unavailable, error.what());
      }
      col::test::expect(name_scope(context)->get("m/1").has_value(), "it has said so");
      context.spec().store->set("it has given up", "");
      context.spec().store->wait_for("the leader is there", 20s);
    } else {
      context.spec().store->wait_for("it has given up", 20s);
      if (rank == 2) context.spec().store->set("the leader is there", "");
    }
    context.init_group(stuck(rank, 3));
  });
  col::test::check_all_good(outcomes);
}

// It may come with theirs for two seconds.
TEST_CASE("rendezvous: a rank that could not use another backend, and does not come with this one, is named",
          "[group][rest]") {
  for (const int odd : {0, 2}) {
    const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
      if (rank == odd)
        decline(rank, 3, "elsewhere", context);
      else
        context.init_group(stuck(rank, 3));
    });
    INFO("odd one: " << odd);
    check_ended(outcomes,
                {ErrorCode::unavailable, odd, {"it has no card; or name a backend", fmt::format("rank {} (pid", odd)}},
                odd == 0 ? std::vector{1, 2} : std::vector{0, 1});
  }
}

TEST_CASE("rendezvous: a rank beyond the world that others believe in is found", "[group]") {
  // Rank 2 was told of a world of three, ranks 0 and 1 of two: they could meet without it.
  const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
    if (rank != 2) {
      name_scope(context)->wait_for("m/2", 20s);
      // It is taken back when the first of the two comes.
      context.spec().store->set(fmt::format("{} has seen it", rank), "");
      context.spec().store->wait_for(fmt::format("{} has seen it", 1 - rank), 20s);
    }
    context.init_group(stuck(rank, rank == 2 ? 3 : 2));
  });
  check_ended(outcomes, {ErrorCode::mismatch, {}, {"world size"}});
}

TEST_CASE("rendezvous: a rank that comes late with another world size is told of the group that stands", "[group]") {
  const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
    if (rank == 2) context.spec().store->wait_for("the others stand", 20s);
    col::GroupSpec spec = stuck(rank, rank == 2 ? 3 : 2);
    spec.timeout = 3s;
    context.init_group(spec);
    if (rank == 0) context.spec().store->set("the others stand", "");
  });
  check_ended(outcomes, {ErrorCode::mismatch, {}, {"world size"}}, {2});
}

TEST_CASE("rendezvous: one name can be used again by other members", "[group]") {
  const auto outcomes = col::test::run_threads(3, [&](int rank, col::Context& context) {
    if (rank <= 1) {
      context.init_group(stuck(rank, 2, "pair"));
      context.destroy_group("pair");
      if (rank == 1) context.spec().store->set("the first pair is over", "");
    }
    // Two groups of one name must not be made at the same time.
    if (rank == 2) context.spec().store->wait_for("the first pair is over", 20s);
    if (rank >= 1) context.init_group(stuck(rank - 1, 2, "pair"));
  });
  col::test::check_all_good(outcomes);
}

TEST_CASE("rendezvous: a rank that dies while others wait for it to join is named", "[group]") {
  const auto outcomes = col::test::run_processes(3, [&](int rank, col::Context& context) {
    if (rank == 1) kill(getpid(), SIGKILL);
    context.init_group(stuck(rank, 3));
  });
  check_ended(outcomes, {ErrorCode::peer_lost, {}, {"rank 1 (pid", "group 'default'"}}, {0, 2});
}

TEST_CASE("rendezvous: a connection lost while the ranks connect names the rank that died", "[group]") {
  const auto outcomes = col::test::run_processes(3, [](int rank, col::Context& context) {
    col::register_backend(std::make_unique<DyingBackend>(context.spec().control->record(0)));
    context.init_group({.rank = rank, .world_size = 3, .backend_name = "dying"});
  });
  check_ended(outcomes, {ErrorCode::peer_lost, 0, {"rank 0", "died before the group was made"}}, {1, 2});
}

TEST_CASE("rendezvous: backends that disagree are found", "[group]") {
  const auto outcomes = col::test::run_threads(2, [](int rank, col::Context& context) {
    const auto scope = col::make_prefix_store(context.spec().store, "scope");
    col::group::Member self;
    self.world_size = 2;
    self.backend = rank == 0 ? "gloo" : "shm";
    self.nonce = self.process_nonce = static_cast<std::uint64_t>(rank) + 1;
    self.peer.rank = rank;
    col::WaitContext wait(col::Deadline::after(5s));
    col::group::meet("g", self, *scope, wait);
  });
  check_ended(outcomes, {ErrorCode::mismatch, {}, {"backend", "'shm'"}});
}

TEST_CASE("rendezvous: missing ranks are named by the timeout", "[group]") {
  const auto outcomes = col::test::run_threads(2, [](int rank, col::Context& context) {
    col::GroupSpec spec = stuck(rank, 4);
    spec.timeout = 3s;
    context.init_group(spec);
  });
  check_ended(outcomes, {ErrorCode::timeout, {}, {"ranks 2, 3 to join group 'default'", "group 'default': timed out"}});
}

TEST_CASE("rendezvous: a store that says nothing is asked no longer, once the deadline has passed", "[group][rest]") {
  const col::test::SilentListener listener;
  const auto silent = [&](col::ContextSpec& spec) {
    spec.store = col::make_tcp_store("127.0.0.1", listener.port(), "token", spec.timeout);
  };
  const auto outcomes = col::test::run_threads(1, [](int, col::Context& context) { context.init_group(stuck(0, 2)); },
                                               {.timeout = 4s, .control_page = false, .adapt = silent});
  check_ended(outcomes, {.code = ErrorCode::timeout, .words = {"it accepts connections, but says nothing"}});
}

TEST_CASE("rendezvous: a rank started twice is refused", "[group]") {
  col::test::RankOptions options;
  options.control_page = false;
  std::atomic<int> started{0};
  const auto outcomes = col::test::run_threads(
      3,
      [&](int, col::Context& context) {
        col::GroupSpec spec = stuck(started.fetch_add(1) == 0 ? 0 : 1, 3);
        spec.timeout = 3s;
        context.init_group(spec);
      },
      options);
  INFO(col::test::show(outcomes));
  int refused = 0;
  for (const Outcome& outcome : outcomes) {
    if (outcome.code == ErrorCode::already_initialized) {
      ++refused;
      CHECK(says(outcome, "started twice"));
      CHECK(outcome.error_rank == 1);
    }
  }
  CHECK(refused == 1);
}

// When it has come to the meeting, a second one finds its announcement; when the group stands, only the group's record.
TEST_CASE("rendezvous: a rank that is started twice when its group stands is told so, long before its deadline",
          "[group][rest]") {
  const auto outcomes = col::test::run_processes(3, [](int process, col::Context& given) {
    col::ContextSpec spec = given.spec();
    spec.rank = std::min(process, 1);
    spec.world_size = 2;
    spec.control = nullptr;  // as over a store that is not a directory
    const auto store = col::make_prefix_store(spec.store, "test");
    col::Context context(spec);
    if (process == 2) store->wait_for("stands", 20s);
    auto group = stuck(spec.rank, 2);
    group.timeout = 60s;
    if (process == 2) {
      try {
        context.init_group(group);
      } catch (...) {
        store->set("refused", "");
        throw;
      }
    }
    const col::Group made = context.init_group(group);
    if (process == 0) {  // whose last act is the record
      const auto scope = col::group::job_scope(spec);
      scope->wait_for(col::group::record_key("default"), 20s);
      store->set("stands", "");
    }
    store->wait_for("refused", 40s);
  });
  INFO(col::test::show(outcomes));
  for (const std::size_t member : {0, 1}) CHECK(!outcomes[member].code);
  CHECK(outcomes[2].code == ErrorCode::already_initialized);
  CHECK(outcomes[2].error_rank == 1);
  CHECK(says(outcomes[2], "has already joined: this rank was started twice"));
  CHECK(outcomes[2].seconds < 30);
}

TEST_CASE("rendezvous: a group may be made anew, in another order or by others, while some are still on their way",
          "[group]") {
  // In the first round, processes 0 and 1 are ranks 0 and 1; the second is theirs in another order, or of 1 and 2.
  const bool is_job = GENERATE(false, true);
  const auto outcomes = col::test::run_processes(is_job ? 3 : 2, [&](int process, col::Context& given) {
    const auto store = col::make_prefix_store(given.spec().store, "test");
    const bool is_early = process == (is_job ? 2 : 1);
    const auto in_round = [&](int rank, int of_job, const std::shared_ptr<col::Store>& over) {
      col::ContextSpec spec = given.spec();
      spec.store = over;
      spec.rank = of_job;
      spec.world_size = 2;
      spec.control = nullptr;
      auto context = std::make_unique<col::Context>(spec);
      auto group = stuck(rank, 2);
      group.timeout = 20s;
      context->init_group(group);
      return context;
    };
    std::unique_ptr<col::Context> first;
    if (process < 2) first = in_round(process, process, store);
    if (process < 2) store->set(fmt::format("made {}", process), "");
    for (const auto* const made : {"made 0", "made 1"}) store->wait_for(made, 20s);
    if (is_job) {
      if (first) first->finalize();
      if (first) store->set(fmt::format("left {}", process), "");
      for (const auto* const left : {"left 0", "left 1"}) store->wait_for(left, 20s);
    } else if (is_early) {
      first->destroy_group("default");
    }
    if (is_early) {
      const auto telling = std::make_shared<TellsLooks>(given.spec().store);
      const auto made = in_round(0, is_job ? 0 : 1, col::make_prefix_store(telling, "test"));
      store->set("over", "");
      return;
    }
    given.spec().store->wait_for("looked", 20s);
    if (!is_job) first->destroy_group("default");
    if (process == (is_job ? 1 : 0)) {
      const auto made = in_round(1, is_job ? 1 : 0, store);
      store->wait_for("over", 20s);
    } else {
      store->wait_for("over", 20s);  // its process lives on
    }
  });
  INFO(col::test::show(outcomes));
  col::test::check_all_good(outcomes);
}

TEST_CASE("rendezvous: a record whose processes nobody here sees is no word about this job", "[group]") {
  const int size = GENERATE(2, 3);
  const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& given) {
    const auto store = given.spec().store;
    col::ContextSpec spec = given.spec();
    if (rank == 1) spec.store = std::make_shared<TellsLooks>(store);
    spec.control = nullptr;
    col::Context context(spec);
    col::group::GroupRecord record{"of an earlier boot", size, "stuck", {0, 1, 2}};
    record.global_ranks.resize(static_cast<std::size_t>(size));
    std::vector<col::PeerInfo> processes;
    for (int r = 0; r < size; ++r)
      processes.push_back({.rank = r,
                           .pid = getpid(),
                           .hostname = "elsewhere",
                           .boot_id = "another",
                           .network_namespace = {},
                           .pid_namespace = "1"});
    record.set_processes(processes);
    record.job_size = size;
    const auto scope = col::group::job_scope(given.spec());
    if (rank == 0) scope->set(col::group::record_key("default"), record.encode());
    scope->wait_for(col::group::record_key("default"), 20s);
    if (rank == 0) store->wait_for("looked", 20s);
    auto group = stuck(rank, 2);
    group.timeout = 20s;
    context.init_group(group);
    // At the end of a wait in vain, it does not stand for the rank that has not come.
    scope->set(col::group::record_key("late"), record.encode());
    if (rank == 1 || size != 2) return;
    auto late = stuck(rank, 2, "late");
    late.timeout = 100ms;
    try {
      context.init_group(late);
      col::test::expect(false, "no error");
    } catch (const col::Error& error) {
      col::test::expect(error.code() == ErrorCode::timeout && error.rank() == 1, error.what());
    }
  });
  col::test::check_all_good(outcomes);
}

namespace {

// Answers no more, when it is asked for the record of a group: until the limit of the caller.
class StuckOnRecord final : public col::test::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  std::optional<std::string> get(std::string_view key) override {
    if (key.find("group record") == std::string_view::npos) return ForwardingStore::get(key);
    const col::Deadline end = col::store::CallLimit::bound(col::Deadline::after(40s));
    std::this_thread::sleep_for(end.remaining());
    asked = true;
    throw col::Error(ErrorCode::timeout, "the store does not answer");
  }
  std::atomic<bool> asked{false};
};

}  // namespace

TEST_CASE("rendezvous: a store that answers no more does not delay the end of the wait", "[group][rest]") {
  const auto store = std::make_shared<StuckOnRecord>(col::make_memory_store());
  col::ContextSpec spec;
  spec.rank = 1;
  spec.world_size = 2;
  spec.store = store;
  col::Context context(spec);
  auto group = stuck(1, 2);
  group.timeout = 3s;
  const auto began = std::chrono::steady_clock::now();
  try {
    context.init_group(group);
    FAIL("no error");
  } catch (const col::Error& error) {
    CHECK(error.code() == ErrorCode::timeout);
    CHECK(error.message().find("rank 0") != std::string::npos);
  }
  CHECK(store->asked);
  CHECK(std::chrono::steady_clock::now() - began < 25s);
}

TEST_CASE("rendezvous: ranks of different jobs never meet, and are told so", "[group]") {
  const auto store = col::make_memory_store();
  const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context&) {
    col::ContextSpec spec;
    spec.rank = rank;
    spec.world_size = 2;
    spec.store = store;
    spec.job_id = rank == 0 ? "monday" : "tuesday";
    col::Context context(spec);
    col::GroupSpec group = stuck(rank, 2);
    group.timeout = 3s;
    context.init_group(group);
  });
  // Both wait for the other one; the first to give up has read the other's notice for certain.
  check_ended(outcomes, {ErrorCode::mismatch, {}, {"tuesday"}}, {0});
  check_ended(outcomes, {ErrorCode::mismatch, {}, {"monday"}}, {1});
}

TEST_CASE("rendezvous: an older generation's keys are never seen", "[group]") {
  const auto store = col::make_memory_store();
  const auto run = [&](int restart_count) {
    return col::test::run_threads(2, [&, restart_count](int rank, col::Context&) {
      col::ContextSpec spec;
      spec.rank = rank;
      spec.world_size = 2;
      spec.store = store;
      spec.restart_count = restart_count;
      col::Context context(spec);
      if (restart_count == 0 && rank == 1) return;  // the first attempt dies half way: rank 0's keys stay
      col::GroupSpec group = stuck(rank, 2);
      group.timeout = restart_count == 0 ? std::chrono::milliseconds(200) : std::chrono::milliseconds(10000);
      context.init_group(group);
    });
  };
  CHECK(run(0)[0].code == ErrorCode::timeout);
  const auto outcomes = run(1);
  col::test::check_all_good(outcomes);
}

TEST_CASE("rendezvous: any name works, and names cannot be confused", "[group]") {
  const std::vector<std::string> names{"a/b", "a", "b", "/", "..", "%", "a%2Fb", std::string("nul\0x", 5), "\xff", " "};
  const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
    for (const std::string& name : names) context.init_group(stuck(rank, 2, name));
    for (const std::string& name : names) col::test::expect(context.group(name).name() == name);
  });
  col::test::check_all_good(outcomes);
}

TEST_CASE("rendezvous: a group can be destroyed and made again many times, leaving no keys", "[group]") {
  const auto store = col::make_memory_store();
  const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context&) {
    col::ContextSpec spec;
    spec.rank = rank;
    spec.world_size = 2;
    spec.store = store;
    col::Context context(spec);
    for (int i = 0; i < 50; ++i) {
      context.init_group(stuck(rank, 2));
      context.destroy_group("default");
    }
  });
  col::test::check_all_good(outcomes);
  // The group's record stays, for those who adopt it, and what this backend leaves behind: two keys a round.
  CHECK(store->num_keys() == 1 + 50 * 2);
}

TEST_CASE("rendezvous: the roster is read once a host, a rank makes few rounds, and the bytes stay within bounds",
          "[group][rest]") {
  int quick = 0;
  for (const int hosts : {1, 2, 8, 64}) {
    double least = 0, most = 0;
    for (const int size : {8, 32, 64, 128, 512}) {
      if (size < hosts) continue;
      const auto store = col::make_memory_store();
      std::vector<std::size_t> bytes(static_cast<std::size_t>(size)), rounds(bytes.size());
      std::vector<std::chrono::steady_clock::time_point> met(bytes.size());
      const auto begin = std::chrono::steady_clock::now();
      const auto outcomes = col::test::run_threads(size, [&](int rank, col::Context&) {
        const auto counted = std::make_shared<col::test::CountingStore>(store);
        const auto scope = col::group::meeting_place(counted, "20261126-211934-19-dd0983d1#0", "default");
        col::group::Member self;
        self.world_size = size;
        self.backend = "automatic";
        self.nonce = col::group::random_nonce();
        self.process_nonce = col::group::random_nonce();
        const std::string host = std::to_string(rank / (size / hosts));
        self.peer = {rank,         rank,        getpid(), "node" + host, "8c9d0bd3-7a3e-4f0e-9c53-5f1d2ab43f" + host,
                     "4026531840", "4026531836"};
        col::WaitContext wait(col::Deadline::after(60s));
        const col::group::Roster roster = col::group::meet("default", self, *scope, wait);
        const auto self_place = static_cast<std::size_t>(rank);
        met[self_place] = std::chrono::steady_clock::now();
        bytes[self_place] = counted->bytes();
        rounds[self_place] = counted->rounds();
        col::test::expect(roster.members.size() == bytes.size() && roster.token != 0, "the roster");
        for (int other = 0; other < size; ++other) {
          const col::PeerInfo& peer = roster.members[static_cast<std::size_t>(other)].peer;
          col::test::expect(peer.rank == other && peer.hostname == "node" + std::to_string(other / (size / hosts)) &&
                                peer.pid == getpid(),
                            "a member");
        }
        if (store->add("met", 1) == size) store->set("all met", "");
        store->wait_for("all met", 60s);  // the roster stays open until all have read it
        if (rank == 0) col::group::forget(roster, *scope, wait);
      });
      col::test::check_all_good(outcomes);
      CHECK(store->num_keys() == 2);  // "met" and "all met"
      std::size_t sum = 0, leaders = 0;
      for (const std::size_t one : bytes) sum += one;
      std::printf(
          "rendezvous: %d hosts, %3d ranks: %7zu bytes of the store, of %7d that may be; rounds: rank 0 %zu, the last "
          "%zu\n",
          hosts, size, sum, 1024 * size + 64 * size * hosts, rounds.front(), rounds.back());
      // Many threads may take so long that all look around, again and again. One look is short; 512 threads have a
      // ceiling ten times higher, too.
      constexpr std::size_t kBytesOfLook = 512;
      std::size_t looks = 0;
      for (const std::size_t one : rounds) {
        leaders += one > 1 ? 1 : 0;
        looks += std::max<std::size_t>(one, 1) - 1;
      }
      const int ceiling = (size > 128 ? 10 : 1) * (1024 * size + 64 * size * hosts);
      CHECK(sum <= static_cast<std::size_t>(ceiling) + looks * kBytesOfLook);
      // Where they take longer, on a busy machine or as they are many, they look around.
      if (*std::max_element(met.begin(), met.end()) - begin < 200ms) {
        ++quick;
        CHECK(rounds.back() <= (size == hosts ? 2U : 1U));
        CHECK(leaders <= static_cast<std::size_t>(hosts) + 1);
      }
      (least == 0 ? least : most) = static_cast<double>(sum);
    }
    std::printf("rendezvous: %d hosts: the bytes grow with the number of ranks to the power of %.2f\n", hosts,
                std::log(most / least) / std::log(512.0 / std::max(8, hosts)));
  }
  CHECK(quick > 0);
}

TEST_CASE("rendezvous: where many wait for rank 0, one looks for those who are missing, and all name them",
          "[group][rest]") {
  constexpr int kSize = 100, kCame = 90;
  const auto store = col::make_memory_store();
  std::atomic<std::size_t> bytes{0};
  const auto join = [&](int rank, std::chrono::milliseconds patience) {
    const auto counted = std::make_shared<col::test::CountingStore>(store);
    col::group::Member self;
    self.world_size = kSize;
    self.backend = "automatic";
    self.nonce = self.process_nonce = static_cast<std::uint64_t>(rank) + 1;
    self.peer = {rank, rank, getpid(), "node", "boot", "pids", "mounts"};
    col::WaitContext wait(col::Deadline::after(patience));
    try {
      const col::group::Roster roster = col::group::meet("default", self, *counted, wait);
      if (store->add("met", 1) == kSize) store->set("all met", "");
      store->wait_for("all met", 60s);  // the roster stays open until all have read it
      if (rank == 0) col::group::forget(roster, *counted, wait);
    } catch (...) {
      bytes += counted->bytes();
      throw;
    }
  };
  const auto outcomes = col::test::run_threads(kCame, [&](int i, col::Context&) { join(i + 1, 4s); });
  check_ended(outcomes, {ErrorCode::timeout, {}, {"ranks 0, 91-99 to join group 'default'"}});
  INFO(bytes << " bytes of the store");
  CHECK(bytes < 300'000);         // each for itself would have read 1.3 million
  CHECK(store->num_keys() == 1);  // that announcements were taken back, until there is a meeting
  CHECK(store->get("taken back"));
  // Rank 0 comes after another one has the word.
  const auto late = col::test::run_threads(kSize, [&](int rank, col::Context&) {
    if (rank == 0) store->wait_for("missing", 60s);
    join(rank, 60s);
  });
  col::test::check_all_good(late);
  CHECK(store->num_keys() == 2);  // "met" and "all met"
}

TEST_CASE("rendezvous: many ranks that are missing are named together", "[group]") {
  CHECK(col::group::ranks_text({3}) == "rank 3");
  CHECK(col::group::ranks_text({3, 4}) == "ranks 3, 4");
  CHECK(col::group::ranks_text({1, 3, 4, 5, 9, 120, 121, 122, 123}) == "ranks 1, 3-5, 9, 120-123");
  const std::vector<int> some = {0, 3, 4, 5, 9};
  CHECK(col::group::runs_of(some) == col::group::RankRuns{{0, 0}, {3, 5}, {9, 9}});
  CHECK(col::group::ranks_of(col::group::runs_of(some), 10) == some);
  CHECK(col::group::ranks_of({{-5, 1}, {3, 1 << 30}}, 5) == std::vector<int>{0, 1, 3, 4});
  std::vector<int> odd;
  for (int rank = 1; rank < 100; rank += 2) odd.push_back(rank);
  const std::string text = col::group::ranks_text(odd);
  CHECK(text.starts_with("ranks 1, 3, 5"));
  CHECK(text.ends_with("39 and 30 more"));
  const auto outcomes = col::test::run_threads(4, [](int rank, col::Context& context) {
    col::GroupSpec spec = stuck(rank, 40);
    spec.timeout = 3s;  // in which these four come, though not at once
    context.init_group(spec);
  });
  check_ended(outcomes, {ErrorCode::timeout, {}, {"ranks 4-39 to join group 'default'"}});
}

TEST_CASE("rendezvous: wrong arguments are refused before anybody waits", "[group]") {
  col::ContextSpec spec;
  col::Context context(spec);
  const auto code = [&](const col::GroupSpec& group) {
    try {
      context.init_group(group);
    } catch (const col::Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  CHECK(code({.name = ""}) == ErrorCode::invalid_argument);
  CHECK(code({.world_size = 0}) == ErrorCode::invalid_argument);
  CHECK(code({.rank = 2, .world_size = 2}) == ErrorCode::invalid_argument);
  CHECK(code({.rank = -1, .world_size = 2}) == ErrorCode::invalid_argument);
  CHECK(code(stuck(0, 2)) == ErrorCode::invalid_argument);  // no store
  CHECK(code({.rank = 0, .world_size = 2, .backend_name = "nosuch"}) == ErrorCode::unavailable);
  CHECK_FALSE(context.is_initialized("default"));
}
