// ContextSpec::meet(): who is where, and every way in which it fails.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <fmt/format.h>

#include <col/group.hpp>

#include "group/join/host.hpp"
#include "store/base/run.hpp"
#include "support/forwarding_store.hpp"
#include "support/outcomes.hpp"
#include "support/soon.hpp"
#include "support/temp_dir.hpp"

using namespace std::chrono_literals;
using col::ContextSpec;
using col::ErrorCode;
using col::Store;
using col::test::check_ending;
using col::test::check_good;
using col::test::expect;
using col::test::expect_error;
using col::test::Outcome;
using col::test::run_processes;
using col::test::run_threads;
using col::test::soon;

namespace {

// Another store, with something that happens before or after some of its calls.
class AlteredStore final : public col::test::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  std::function<std::string(std::string_view key, std::string_view value)> alter = [](auto, auto value) {
    return std::string(value);
  };
  std::function<void(std::string_view key)> after_write = [](auto) {};
  std::function<void(std::string_view key)> after_read = [](auto) {};

  void set(std::string_view key, std::string_view value) override {
    ForwardingStore::set(key, alter(key, value));
    after_write(key);
  }
  std::string wait(std::string_view key, col::WaitContext& wait) override {
    std::string value = ForwardingStore::wait(key, wait);
    after_read(key);
    return value;
  }
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    const auto before = ForwardingStore::compare_set(key, expected, alter(key, desired));
    after_write(key);
    return before;
  }
};

// Counts trips, and those that only look: a rank that waits for long makes one, and then waits again.
class TripsStore final : public col::test::ForwardingStore, public col::store::RunExtension {
 public:
  explicit TripsStore(const std::shared_ptr<Store>& store) : ForwardingStore(store), store_(store) {}

  int trips = 0, looks = 0;

  void set(std::string_view key, std::string_view value) override {
    ++trips;
    ForwardingStore::set(key, value);
  }
  std::string wait(std::string_view key, col::WaitContext& wait) override {
    ++trips;
    return ForwardingStore::wait(key, wait);
  }
  void run(std::span<col::store::Call> calls, col::WaitContext& wait, const col::store::Answered& answered) override {
    const auto is_get = [](const col::store::Call& call) { return call.kind == col::store::Call::Kind::get; };
    ++(std::ranges::all_of(calls, is_get) ? looks : trips);
    col::store::run(*store_, calls, wait, answered);
  }

 private:
  const std::shared_ptr<Store> store_;  // shared with the other ranks
};

std::function<void(std::string_view)> die_at(std::string_view part) {
  return [part](std::string_view key) {
    if (key.find(part) != key.npos) raise(SIGKILL);
  };
}

std::string replaced(std::string_view text, const std::string& what, const std::string& by) {
  std::string result(text);
  for (auto at = result.find(what); at != std::string::npos; at = result.find(what, at + by.size()))
    result.replace(at, what.size(), by);
  return result;
}

// Pages of hosts that this process has mapped, or has open.
int pages_mapped() {
  std::ifstream maps("/proc/self/maps");
  int pages = 0;
  for (std::string line; std::getline(maps, line);) pages += line.find("memfd:col-control") != std::string::npos;
  return pages;
}
int pages_open() {
  int pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed_meanwhile;
    const std::string target = std::filesystem::read_symlink(entry.path(), closed_meanwhile).string();
    pages += target.find("memfd:col-control") != std::string::npos;
  }
  return pages;
}

void check_mentions(const Outcome& outcome, const std::vector<std::string>& words) {
  INFO(outcome.text);
  for (const std::string& word : words) CHECK(outcome.text.find(word) != std::string::npos);
}

}  // namespace

TEST_CASE("meet: each rank learns its place on its host, and shares a page with the others there", "[group]") {
  const auto store = col::make_memory_store();
  const auto outcomes = run_threads(6, [&](int rank, col::Context&) {
    // To their launcher, ranks 2, 3 and 5 are on another machine.
    const bool elsewhere = rank == 2 || rank == 3 || rank == 5;
    const auto disguised = std::make_shared<AlteredStore>(store);
    if (elsewhere)
      disguised->alter = [](auto, auto value) { return replaced(value, col::group::this_host().boot_id, "another"); };
    const ContextSpec spec = ContextSpec::meet(disguised, rank, 6, "job", 20s);
    expect(spec.rank == rank && spec.world_size == 6 && spec.job_id == "job" && spec.store == disguised);
    expect(spec.timeout == 20s && spec.launcher.empty() && spec.restart_count == 0);
    const int local_ranks[] = {0, 1, 0, 1, 2, 2};
    expect(spec.local_rank == local_ranks[rank] && spec.local_world_size == 3, fmt::format("{}", spec.local_rank));
    expect(spec.control && spec.control->local_ranks() == 3);
    std::vector<int> neighbours;
    for (const auto& activity : spec.control->activities(false)) neighbours.push_back(activity.rank);
    // The first rank of a host returns when all others there have come.
    if (spec.local_rank == 0) expect(neighbours == (elsewhere ? std::vector{2, 3, 5} : std::vector{0, 1, 4}));
  });
  check_good(outcomes);
  CHECK(pages_open() == 0);
  CHECK(pages_mapped() == 0);
}

TEST_CASE("meet: a rank that is alone on its host, or in the world, needs nobody", "[group]") {
  const auto store = col::make_memory_store();
  check_good(run_threads(2, [&](int rank, col::Context&) {
    const auto disguised = std::make_shared<AlteredStore>(store);
    disguised->alter = [&](auto, auto value) {
      return replaced(value, col::group::this_host().boot_id, fmt::format("host {}", rank));
    };
    const ContextSpec spec = ContextSpec::meet(disguised, rank, 2);
    expect(spec.local_rank == 0 && spec.local_world_size == 1 && spec.control->local_ranks() == 1);
  }));
  const ContextSpec alone = ContextSpec::meet(nullptr, 0, 1);
  CHECK(alone.world_size == 1);
  CHECK(alone.local_world_size == 1);
  CHECK_FALSE(alone.control);
}

TEST_CASE("meet: many ranks, each with three trips to the store, and few keys that stay", "[group]") {
  constexpr int kManyRanks = 200;
  const auto store = col::make_memory_store();
  const auto outcomes = run_threads(kManyRanks,
                                    [&](int rank, col::Context&) {
                                      const auto counting = std::make_shared<TripsStore>(store);
                                      const ContextSpec spec =
                                          ContextSpec::meet(counting, rank, kManyRanks, "job", 60s);
                                      expect(spec.local_rank == rank && spec.local_world_size == kManyRanks);
                                      // Rank 0 may say who is missing, too.
                                      const int most = rank == 0 ? 4 + 2 * counting->looks : 3 + counting->looks;
                                      expect(counting->trips <= most, fmt::format("{} trips", counting->trips));
                                    },
                                    {.control_page = false});
  check_good(outcomes);
  CHECK(store->num_keys() == 1);  // the roster
}

TEST_CASE("meet: processes share the page, which is gone with them", "[group]") {
  const auto outcomes = run_processes(4, [](int rank, col::Context& given) {
    {
      const ContextSpec spec = ContextSpec::meet(given.spec().store, rank, 4, "another");
      expect(pages_open() == 1 && pages_mapped() == 1);  // open, for coljob
      if (rank == 3) spec.control->abort({.rank = 3, .message = "rank 3 says so"});
      expect(soon([&] { return spec.control->aborted(); }));
      expect(spec.control->abort_cause().value_or(col::AbortCause{}).message == "rank 3 says so");
    }
    expect(pages_open() == 0 && pages_mapped() == 0);
  });
  check_good(outcomes);
}

TEST_CASE("meet: one job after another under one id, and two jobs at once, do not mix", "[group]") {
  const auto store = col::make_memory_store();
  const auto outcomes = run_threads(6, [&](int thread, col::Context&) {
    const std::string job = thread < 3 ? "a" : "b";
    for (int meeting = 0; meeting < 20; ++meeting) {
      const ContextSpec spec = ContextSpec::meet(store, thread % 3, 3, job, 20s);
      expect(spec.local_rank == thread % 3 && spec.control->local_ranks() == 3);
      // The first cause of a page never changes: so this page is new, and of this job.
      const std::string cause = fmt::format("meeting {} of {}", meeting, job);
      spec.control->abort({.message = cause});
      expect(spec.control->abort_cause()->message == cause, spec.control->abort_cause()->message);
    }
  });
  check_good(outcomes);
  CHECK(store->num_keys() == 2);
}

TEST_CASE("meet: a world may change from one meeting to the next", "[group]") {
  const auto store = col::make_memory_store();
  for (const int ranks : {2, 4, 3}) {
    check_good(run_threads(ranks, [&](int rank, col::Context&) {
      expect(ContextSpec::meet(store, rank, ranks, "job", 20s).local_world_size == ranks);
    }));
  }
}

// ---- Errors

TEST_CASE("meet: wrong arguments are refused at once", "[group]") {
  const auto store = col::make_memory_store();
  const auto refused = [&](int rank, int world_size, std::shared_ptr<Store> in, col::Duration timeout = {}) {
    return expect_error(ErrorCode::invalid_argument, "", [&] { ContextSpec::meet(in, rank, world_size, "", timeout); })
        .message();
  };
  using col::test::has;
  CHECK(has(refused(0, 2, nullptr), "need a store"));
  CHECK(has(refused(-1, 2, store), "rank -1 does not fit a world size of 2"));
  CHECK(has(refused(2, 2, store), "ranks count from 0 to 1"));
  CHECK(has(refused(0, 0, store), "a world size of 0"));
  CHECK(has(refused(0, 1 << 25, store), "a world size of"));
  CHECK(has(refused(0, 2, store, -1s), "negative"));
  CHECK(store->num_keys() == 0);
}

TEST_CASE("meet: two processes that say one rank are named to all who wait; then they can meet", "[group]") {
  const auto store = col::make_memory_store();
  for (const std::vector<int>& said : {std::vector{0, 1, 1}, std::vector{0, 0, 2}, std::vector{0, 2, 2}}) {
    const auto outcomes =
        run_threads(3, [&](int thread, col::Context&) { ContextSpec::meet(store, said[thread], 3, "job", 20s); });
    INFO(col::test::show(outcomes));
    const int twice = said[1] == 0 ? 0 : said[1];
    const std::string text = fmt::format("two processes say that they are rank {} of job 'job'", twice);
    for (const auto& outcome : outcomes) {
      check_ending(outcome, {ErrorCode::mismatch, twice, text});
      check_mentions(outcome, {fmt::format("pid {}", getpid()), "job_id"});
    }
    check_good(run_threads(3, [&](int rank, col::Context&) { ContextSpec::meet(store, rank, 3, "job", 20s); }));
  }
}

TEST_CASE("meet: a process that comes as a rank that all others have met with leaves them alone", "[group]") {
  const auto store = col::make_memory_store();
  const auto outcomes = run_threads(3, [&](int thread, col::Context&) {
    ContextSpec::meet(store, std::min(thread, 1), 2, "job", 1s);  // 0, 1, 1
  });
  INFO(col::test::show(outcomes));
  // Rank 0 may have seen only one of the two, or both.
  const auto failed = std::count_if(outcomes.begin(), outcomes.end(), [](const auto& o) { return o.code.has_value(); });
  CHECK((failed == 1 || failed == 3));
}

TEST_CASE("meet: a world size that disagrees is told to all, with the odd one's name; then they can meet", "[group]") {
  const auto store = col::make_memory_store();
  for (const int odd : {0, 1, 3}) {
    INFO("odd one: " << odd);
    const auto outcomes = run_threads(
        4, [&](int rank, col::Context&) { ContextSpec::meet(store, rank, rank == odd ? 5 : 4, "job", 20s); });
    col::test::check_all(outcomes, {ErrorCode::mismatch, odd, "ranks disagree on the world size", true});
    check_good(run_threads(4, [&](int rank, col::Context&) { ContextSpec::meet(store, rank, 4, "job", 20s); }));
  }
}

TEST_CASE("meet: a rank beyond the world in which the others have met is told so", "[group]") {
  const auto store = col::make_memory_store();
  check_good(run_threads(2, [&](int rank, col::Context&) { ContextSpec::meet(store, rank, 2, "job", 20s); }));
  const col::Error error = expect_error(ErrorCode::mismatch, "job 'job' has met with 2 ranks",
                                        [&] { ContextSpec::meet(store, 2, 3, "job", 300ms); });
  CHECK(error.rank() == 2);
}

TEST_CASE("meet: a timeout names the ranks that did not come; then they can meet", "[group]") {
  const auto store = col::make_memory_store();
  const auto run = [&](const std::vector<int>& ranks, int world_size, col::Duration timeout) {
    return run_threads(static_cast<int>(ranks.size()), [&](int i, col::Context&) {
      ContextSpec::meet(store, ranks[static_cast<std::size_t>(i)], world_size, "job", timeout);
    });
  };
  for (const Outcome& outcome : run({0, 2}, 4, 3s))
    check_ending(outcome, {ErrorCode::timeout, -1, "ranks 1, 3 did not come to the meeting of job 'job'"});
  for (const Outcome& outcome : run({0, 1, 3}, 4, 3s))
    check_ending(outcome, {ErrorCode::timeout, 2, "rank 2 did not come"});
  // Only rank 0 knows about all.
  for (const Outcome& outcome : run({1, 2}, 4, 1s))
    check_ending(outcome, {ErrorCode::timeout, 0, "rank 0 did not come"});
  check_ending(run({0}, 100, 300ms).front(), {ErrorCode::timeout, -1, "ranks 1-99 did not come"});
  check_good(run({0, 1, 2, 3}, 4, 20s));
}

TEST_CASE("meet: a timeout names the whole time, also where the store was what did not answer", "[group]") {
  // Nobody serves there. The time that is left is a part of it, tried in pieces.
  const auto store = col::make_tcp_store("127.0.0.1", 9, "token", 60s);
  for (const auto& [timeout, spent] : {std::pair(900ms, 0ms), std::pair(60000ms, 59500ms)}) {
    const auto error =
        expect_error(ErrorCode::timeout, "has not answered within ",
                     [&, spend = spent, whole = timeout] { ContextSpec::meet(store, 1, 2, "job", whole, {}, spend); });
    INFO(error.what());
    CHECK(col::test::has(error.message(), timeout == 900ms ? "within 900ms" : "within 1m"));
    CHECK(col::test::has(error.message(), "rank 1 could not announce itself there"));
  }
  const auto late = [](const std::shared_ptr<col::Store>& in) { ContextSpec::meet(in, 0, 2, "job", 60s, {}, 59700ms); };
  expect_error(ErrorCode::timeout, "rank 1 did not come to the meeting of job 'job' (2 ranks) in 1m",
               [&] { late(col::make_memory_store()); });
}

TEST_CASE("meet: a lone rank that is started again under the same id is told so", "[group]") {
  const auto store = col::make_memory_store();
  check_good(run_threads(2, [&](int rank, col::Context&) { ContextSpec::meet(store, rank, 2, "job", 20s); }));
  expect_error(ErrorCode::timeout, "has met already, without this process",
               [&] { ContextSpec::meet(store, 1, 2, "job", 300ms); });
  expect_error(ErrorCode::timeout, "rank 1 did not come", [&] { ContextSpec::meet(store, 0, 2, "job", 300ms); });
}

TEST_CASE("meet: a rank that dies before it tells its host that all have met is named there", "[group]") {
  const auto outcomes = run_processes(2, [](int rank, col::Context& given) {
    const auto store = std::make_shared<AlteredStore>(given.spec().store);
    store->after_write = [&](std::string_view key) {
      if (rank == 0 && key.ends_with("roster")) raise(SIGKILL);
    };
    ContextSpec::meet(store, rank, 2, "untold", 2s);
  });
  INFO(col::test::show(outcomes));
  CHECK(outcomes[0].signal == SIGKILL);
  check_ending(outcomes[1], {ErrorCode::peer_lost, 0, "rank 0 of job 'untold'", true});
}

TEST_CASE("meet: a rank that dies while others are still missing ends the meeting for all", "[group]") {
  const auto outcomes = run_processes(3, [](int rank, col::Context& given) {
    const auto store = std::make_shared<AlteredStore>(given.spec().store);
    store->after_write = [&](std::string_view key) {
      if (!key.ends_with("m/1")) return;
      // Rank 0 has seen both, and says who is missing.
      const auto scope = col::make_prefix_store(given.spec().store, "meeting of another");
      expect(soon([&] { return scope->get("missing") == "[[3,3]]"; }));
      raise(SIGKILL);
    };
    ContextSpec::meet(store, rank, 4, "another", 30s);
  });
  INFO(col::test::show(outcomes));
  check_ending(outcomes[0], {ErrorCode::peer_lost, 1, "rank 1 of job 'another'", true});
  CHECK(outcomes[1].signal == SIGKILL);
  check_ending(outcomes[2], {ErrorCode::peer_lost, 1, "rank 1 of job 'another'", true});
}

TEST_CASE("meet: a rank that dies before it has opened its host's page is noticed by the one that made it", "[group]") {
  const auto outcomes = run_processes(3, [](int rank, col::Context& given) {
    const auto store = std::make_shared<AlteredStore>(given.spec().store);
    if (rank == 1) {
      store->after_read = [&](std::string_view key) {
        if (key.find("page/0/") == key.npos) return;
        given.spec().store->wait_for("rank 2 has met", 20s);  // which opens the page while its maker is there
        raise(SIGKILL);
      };
    }
    ContextSpec::meet(store, rank, 3, "another", 30s);
    if (rank == 2) given.spec().store->set("rank 2 has met", "");
  });
  INFO(col::test::show(outcomes));
  check_ending(outcomes[0], {ErrorCode::peer_lost, 1, "rank 1 of job 'another'", true});
  CHECK(outcomes[1].signal == SIGKILL);
  CHECK(outcomes[2].good);
}

TEST_CASE("meet: a rank that dies before it has made its host's page is noticed by the others there", "[group]") {
  const auto outcomes = run_processes(3, [](int rank, col::Context& given) {
    const auto store = std::make_shared<AlteredStore>(given.spec().store);
    if (rank == 0)
      store->alter = [](auto key, auto value) {
        die_at("page/0/")(key);
        return std::string(value);
      };
    ContextSpec::meet(store, rank, 3, "another", 30s);
  });
  col::test::check_all(outcomes, {ErrorCode::peer_lost, 0, "ended during the meeting", true}, 0);
}

TEST_CASE("meet: what a process that died has left does not keep its rank out", "[group]") {
  const col::test::TempDir directory;
  const auto store = [&] { return std::make_shared<AlteredStore>(col::make_file_store(directory / "store")); };
  const auto killed = run_processes(1, [&](int, col::Context&) {
    const auto deadly = store();
    deadly->after_write = die_at(".m/1");
    ContextSpec::meet(deadly, 1, 2, "job", 30s);
  });
  CHECK(killed.front().signal == SIGKILL);
  check_good(run_processes(2, [&](int rank, col::Context&) { ContextSpec::meet(store(), rank, 2, "job", 20s); }));
}

TEST_CASE("meet: a page that cannot be made is the same error on every rank of the host", "[group]") {
  const col::StoreServer server({.host = "127.0.0.1", .token = "a token"});
  const auto outcomes = run_processes(3, [&](int rank, col::Context&) {
    const rlimit nothing{0, 0};
    if (rank == 0) expect(setrlimit(RLIMIT_FSIZE, &nothing) == 0);
    ContextSpec::meet(col::make_tcp_store("127.0.0.1", server.port(), "a token", 20s), rank, 3, "job", 20s);
  });
  col::test::check_all(outcomes, {ErrorCode::resource, {}, "cannot allocate control page", true});
  for (const int rank : {1, 2}) check_mentions(outcomes[static_cast<std::size_t>(rank)], {"rank 0 (pid"});
}

TEST_CASE("meet: a page that a rank cannot open is an error there, and its maker names that rank", "[group]") {
  const auto store = col::make_memory_store();
  const auto outcomes = run_threads(2, [&](int rank, col::Context&) {
    const auto altered = std::make_shared<AlteredStore>(store);
    altered->alter = [](auto, auto value) { return replaced(value, "\"descriptor\":", "\"descriptor\":77777"); };
    ContextSpec::meet(altered, rank, 2, "job", 3s);
  });
  check_ending(outcomes[0], {ErrorCode::timeout, 1, "did not open the control page of this host"});
  check_ending(outcomes[1], {ErrorCode::io, 0, "rank 1 cannot share the control page of rank 0"});
}

TEST_CASE("meet: a rank that is late with its host's page is named by those that wait for it", "[group]") {
  const auto store = col::make_memory_store();
  const auto outcomes = run_threads(2, [&](int rank, col::Context&) {
    const auto altered = std::make_shared<AlteredStore>(store);
    if (rank == 0) {
      altered->alter = [&](std::string_view key, std::string_view value) {
        if (key.find("page/0/") != key.npos) store->wait_for("rank 1 has given up", 20s);
        return std::string(value);
      };
    }
    try {
      ContextSpec::meet(altered, rank, 2, "job", 3s);
    } catch (const col::Error&) {
      store->set("rank 1 has given up", "");
      throw;
    }
  });
  check_ending(outcomes[0], {ErrorCode::timeout, 1, "did not open the control page of this host in 3s"});
  check_ending(outcomes[1], {ErrorCode::timeout, 0, "did not make the control page of this host in 3s"});
}

TEST_CASE("meet: what another program has written into the store is refused", "[group]") {
  const auto store = col::make_memory_store();
  const auto scope = col::make_prefix_store(store, "meeting of job");
  const auto refuses = [&](int rank) {
    expect_error(ErrorCode::internal, "in the store cannot be read",
                 [&] { ContextSpec::meet(store, rank, 2, "job", 2s); });
  };
  for (const auto& [key, words] : {std::pair("roster", "no roster"), {"missing", "no word"}, {"refused", "no error"}}) {
    scope->set(key, words);
    refuses(1);
    scope->erase(key);
  }
  scope->set("m/0", "nobody");
  refuses(0);
}
