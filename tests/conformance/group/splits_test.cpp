// Groups that the ranks of another make by what connects them already, its memory above all: the same as groups that
// meet in a store, without it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/fleet.hpp"
#include "conformance/group/worlds.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// Passes on, and counts.
class CountingStore final : public Store {
 public:
  explicit CountingStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  void set(std::string_view key, std::string_view value) override { counted().set(key, value); }
  std::optional<std::string> get(std::string_view key) override { return counted().get(key); }
  std::string wait(std::string_view key, WaitContext& wait) override { return counted().wait(key, wait); }
  std::int64_t add(std::string_view key, std::int64_t delta) override { return counted().add(key, delta); }
  std::optional<std::string> compare_set(std::string_view key, std::optional<std::string_view> expected,
                                         std::string_view desired) override {
    return counted().compare_set(key, expected, desired);
  }
  bool erase(std::string_view key) override { return counted().erase(key); }
  std::size_t num_keys(std::string_view prefix) override { return store_->num_keys(prefix); }

  int calls() const { return calls_; }

 private:
  Store& counted() {
    ++calls_;
    return *store_;
  }

  const std::shared_ptr<Store> store_;  // shared with the other ranks
  std::atomic<int> calls_{0};
};

// Those whose groups need no store to make others; over hosts, ranks dealt to two in turn.
std::vector<std::string> those_without_store() {
  std::vector<std::string> names;
  const std::vector<std::string> usable = usable_backends();
  for (const char* const name : {"shm", "gloo", "hosts_in_turn"}) {
    if (std::find(usable.begin(), usable.end(), name) != usable.end()) names.emplace_back(name);
  }
  REQUIRE(!names.empty());
  return names;
}

// Runs `body` on the ranks of a group, as threads; each has a store that counts.
using CountingBody = std::function<void(Group& group, CountingStore& store)>;
std::vector<Outcome> run_counting(int ranks, const std::string& backend, const CountingBody& body,
                                  Duration timeout = 20s) {
  RankOptions options{.timeout = timeout};
  options.adapt = [](ContextSpec& spec) { spec.store = std::make_shared<CountingStore>(spec.store); };
  return run_threads(
      ranks,
      [&](int rank, Context& context) {
        Group group = context.init_group({.rank = rank, .world_size = ranks, .backend_name = backend});
        body(group, dynamic_cast<CountingStore&>(*context.spec().store));
      },
      options);
}

// Threads, and then processes, over each of them.
template <class Given>
void on_each(int ranks, const Given& given) {
  for (const std::string& backend : those_without_store()) {
    INFO(backend);
    const Body body = rank_body(ranks, backend, given);
    check_good(run_threads(ranks, body));
    check_good(run_processes(ranks, [&](int rank, Context& context) {
      body(rank, context);
      context.finalize();
    }));
  }
}

bool leaves_alone(CountingStore& store, const std::function<void()>& call) {
  const int before = store.calls();
  call();
  return store.calls() == before;
}

TEST_CASE("splits: split and dup use no store, and subgroup writes one record", "[group]") {
  const auto body = [](Group& group, CountingStore& store) {
    const auto no_store = [&](const std::function<void()>& call) {
      // Slow machines: what waits for 100 ms may look there.
      for (int attempt = 0; attempt < 5; ++attempt) {
        std::vector<int> quick{leaves_alone(store, call) ? 1 : 0};
        group.allreduce(quick, {.op = ReduceOp::min});
        if (quick[0] == 1) return;
      }
      expect(false, "it uses the store");
    };
    Group half, twin, quarter, some;
    no_store([&] { half = group.split(group.rank() / 3); });
    no_store([&] { twin = group.dup(); });
    no_store([&] {
      quarter = half.split(half.rank() == 0 ? -1 : 0);
      std::vector<int> data(5000, 1);
      half.allreduce(data);
      twin.allreduce(data);
      expect(data[4999] == 18);
      if (quarter) quarter.allreduce(data);
    });
    for (int attempt = 0; attempt < 5; ++attempt) {
      const int before = store.calls();
      some = group.subgroup(std::array{1, 4}, fmt::format("some {}", attempt));
      // Only its first rank writes the record.
      std::vector<int> quick{group.rank() == 1 || store.calls() == before ? 1 : 0};
      group.allreduce(quick, {.op = ReduceOp::min});
      if (quick[0] == 1) return;
    }
    expect(false, "subgroup uses the store");
  };
  for (const std::string& backend : those_without_store()) {
    INFO(backend);
    check_good(run_counting(6, backend, body));
  }
}

// The ranks of the group that `color` and `key` make, as the documentation says: by key, then by rank.
std::vector<int> wanted_ranks(const std::vector<int>& colors, const std::vector<int>& keys, int color) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < colors.size(); ++r) {
    if (colors[r] == color) ranks.push_back(static_cast<int>(r));
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](int a, int b) { return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)]; });
  return ranks;
}

// What a group gives, for a comparison with another: results that depend on the order of its ranks.
std::vector<float> answers(Group& group) {
  std::vector<float> all;
  for (const std::size_t count : {1, 26, 27, 1000, 70000}) {
    std::vector<float> in(count), out(count);
    for (std::size_t i = 0; i < count; ++i)
      in[i] = 1.0F / static_cast<float>(1 + group.world_rank(group.rank()) + static_cast<int>(i % 101));
    group.allreduce(in, out);
    all.insert(all.end(), out.begin(), out.end());
    std::vector<float> gathered(count * static_cast<std::size_t>(group.size()));
    group.allgather(in, gathered);
    all.insert(all.end(), gathered.begin(), gathered.end());
    group.scan(in, out);
    all.insert(all.end(), out.begin(), out.end());
  }
  return all;
}

TEST_CASE("splits: any split is the group that its ranks make through the store", "[group]") {
  constexpr int kRanks = 7, kTrials = 6;
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  on_each(kRanks, [&](Group& group, Context& context) {
    std::mt19937 random(seed);
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<int> colors, keys;
      for (int r = 0; r < kRanks; ++r) {
        colors.push_back(static_cast<int>(random() % 4) - 1);
        keys.push_back(static_cast<int>(random() % 5) - 2);
      }
      const auto me = static_cast<std::size_t>(group.rank());
      Group part = group.split(colors[me], keys[me]);
      expect(bool(part) == (colors[me] >= 0));
      if (!part) continue;
      const std::vector<int> ranks = wanted_ranks(colors, keys, colors[me]);
      expect(part.ranks() == ranks, fmt::format("trial {}", trial));
      Group met = context.init_group({.name = fmt::format("met {}.{}", trial, colors[me]),
                                      .rank = part.rank(),
                                      .world_size = part.size(),
                                      .backend_name = std::string(part.backend())});
      expect(met.ranks() == ranks && met.backend() == part.backend());
      expect(answers(part) == answers(met), fmt::format("trial {}", trial));
      if (part.size() > 1) fly_each_kind(part, 300);
      // In the other order on other ranks: nobody waits for the others.
      if (me % 2 == 0) part.destroy();
      met.destroy();
    }
  });
}

TEST_CASE("splits: large messages and vectors, to all from all, in groups of groups", "[group]") {
  on_each(4, [](Group& group, Context& context) {
    Group twin = group.dup();
    Group pair = twin.split(twin.rank() / 2, -twin.rank());
    context.destroy_group("default");
    twin.destroy();  // what was made from it goes on
    Group last = pair.dup();
    pair.destroy();
    for (const std::size_t count : {1, 5000, 1 << 20}) {
      std::vector<int> in(count, last.rank() + 1), out(count), sum(count);
      Work sending = last.isend(in, 1 - last.rank());
      last.recv(out, 1 - last.rank());
      sending.wait();
      last.allreduce(in, sum);
      expect(out.back() == 2 - last.rank() && sum.front() == 3 && sum.back() == 3);
    }
  });
}

TEST_CASE("splits: more groups at once than there is room for are made all the same", "[group]") {
  constexpr int kGroups = 40;
  check_good(run_counting(2, "shm", [](Group& group, CountingStore& store) {
    std::vector<Group> groups;
    const int before = store.calls();
    for (int i = 0; i < kGroups; ++i) groups.push_back(group.dup());
    expect(store.calls() > before, "all of them found room: raise the number of groups in this test");
    for (int i = 0; i < kGroups; ++i) {
      std::vector<int> data(3000, i);
      groups[static_cast<std::size_t>(i)].allreduce(data);
      expect(data[2999] == 2 * i);
    }
    for (Group& one : groups) one.destroy();
  }));
}

// ---- Made and ended again and again

std::size_t status_kib(const std::string& field) {
  std::ifstream file("/proc/self/status");
  std::string word;
  while (file >> word) {
    std::size_t value = 0;
    if (word == field && file >> value) return value;
  }
  return 0;
}

TEST_CASE("splits: ten thousand groups, one after the other, take no more memory than a hundred", "[group]") {
  constexpr int kRounds = 10000, kFirst = 1000;
#if defined(__SANITIZE_ADDRESS__)
  constexpr bool kIsLate = true;  // what is freed does not go back at once
#else
  constexpr bool kIsLate = false;
#endif
  check_good(run_counting(
      3, "shm",
      [](Group& group, CountingStore& store) {
        std::size_t memory = 0, keys = 0;
        for (int round = 0; round < kRounds; ++round) {
          Group part = group.split(group.rank() == round % 3 ? -1 : 0, round);
          if (part) {
            // Some are large enough to need memory of their own.
            std::vector<int> data(round % 100 == 0 ? 100000 : 1, 1);
            part.allreduce(data);
            expect(data.back() == 2);
            if (round % 50 == 0) {
              std::vector<int> got(data.size());
              part.sendrecv(data, 1 - part.rank(), got, 1 - part.rank());
              expect(got == data);
            }
            if (round % 2 == 0) part.destroy();  // else it goes with its handle
          }
          if (round != kFirst && round != kRounds - 1) continue;
          group.barrier();
          if (round == kFirst) {
            memory = status_kib("VmRSS:");
            keys = store.num_keys({});
          } else if (group.rank() == 0) {
            expect(store.num_keys({}) <= keys + 20, fmt::format("{} keys, then {}", keys, store.num_keys({})));
            expect(kIsLate || status_kib("VmRSS:") < memory + 4096,
                   fmt::format("{} KiB, then {}", memory, status_kib("VmRSS:")));
          }
          group.barrier();
        }
      },
      60s));
}

TEST_CASE("splits: a name is free again once its group is gone, and taken before", "[group]") {
  on_each(3, [](Group& group) {
    for (int round = 0; round < 20; ++round) {
      Group some = group.subgroup(std::array{2, 0, 1}, "some");
      std::vector<int> data{1};
      some.allreduce(data);
      expect(data[0] == 3);
      // One rank has it still, the others have left it.
      if (group.rank() != round % 3) some.destroy();
      const Error error = error_of([&] { group.subgroup(std::array{0, 1, 2}, "some"); });
      expect(error.code() == ErrorCode::already_initialized && error.rank() == round % 3, error.what());
      if (group.rank() == round % 3) some.destroy();
      group.barrier();
    }
    // The name that the next split would give to rank 1's group.
    Group taken = group.subgroup(std::array{1}, "default/split1.5");
    const Error error = error_of([&] { group.split(5); });
    expect(error.code() == ErrorCode::already_initialized && error.rank() == 1, error.what());
    expect(group.split(5).size() == 3);
  });
}

// ---- Threads

TEST_CASE("splits: threads split different groups at once, beside what is in flight", "[group]") {
  constexpr int kThreads = 4;
  on_each(3, [](Group& group) {
    std::vector<Group> parents;
    for (int i = 0; i < kThreads; ++i) parents.push_back(group.dup());
    std::vector<int> in(200000, 1), out(in.size());
    Work flying = group.iallreduce(in, out);
    std::atomic<int> good{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
          Group& parent = parents[static_cast<std::size_t>(i)];
          for (int round = 0; round < 30; ++round) {
            Group part = parent.split((parent.rank() + round) % 2, parent.rank() * (round % 2 == 0 ? 1 : -1));
            std::vector<int> data(round % 7 == 0 ? 20000 : 3, 1 << parent.rank());
            Work work = part.iallreduce(data, data);
            std::vector<int> sum{i};
            parent.allreduce(sum);
            work.wait();
            int want = 0;
            for (const int rank : part.ranks()) want |= 1 << rank;
            if (data.back() != want || sum[0] != 3 * i) return;
            if (round % 3 != 0) part.destroy();
          }
          ++good;
        });
      }
    }
    flying.wait();
    expect(good == kThreads && out.back() == 3);
  });
}

// ---- What goes wrong

TEST_CASE("splits: a rank that dies in the middle of a split is named by all others", "[group]") {
  const auto die_at = [](const std::string& backend, const char* op) {
    INFO(backend << ", operation " << op);
    ::setenv("COL_FAULT", fmt::format("kill:rank=2,op={},step=0", op).c_str(), 1);
    const auto outcomes = run_processes(4, rank_body(4, backend, [](Group& group) { group.split(0).barrier(); }));
    ::unsetenv("COL_FAULT");
    INFO(show(outcomes));
    for (int rank = 0; rank < 4; ++rank) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      if (rank == 2)
        CHECK(outcome.signal == SIGKILL);
      else
        check_ending(outcome, {.code = ErrorCode::peer_lost, .rank = 2, .promptly = true});
    }
  };
  for (const std::string& backend : those_without_store()) {
    for (const char* const op : {"1", "2"}) die_at(backend, op);  // before it has told its color; after that
  }
}

TEST_CASE("splits: a rank that does not call it, or calls something else, is named", "[group]") {
  check_good(run_threads(3,
                         rank_body(3, "shm",
                                   [](Group& group, Context& context) {
                                     Store& store = *context.spec().store;
                                     if (group.rank() == 1) return void(store.wait_for("both gave up", 20s));
                                     const Error error = error_of([&] { group.split(0); });
                                     const bool ended =
                                         error.code() == ErrorCode::timeout || error.code() == ErrorCode::aborted;
                                     if (store.add("gave up", 1) == 2) store.set("both gave up", "");
                                     expect(ended && error.rank() == 1, error.what());
                                   }),
                         {.timeout = 2s}));
  using Call = std::function<void(Group&)>;
  const std::vector<std::pair<std::string, Call>> calls = {{"dup", [](Group& group) { group.dup(); }},
                                                           {"subgroup",
                                                            [](Group& group) {
                                                              group.subgroup(std::array{0, 1, 2}, "some");
                                                            }},
                                                           {"barrier", [](Group& group) { group.barrier(); }}};
  for (const auto& named : calls) {
    const auto& [name, made] = named;
    const auto& call = made;  // clang captures no part of a pair
    const auto outcomes = run_threads(3, rank_body(3, "shm", [&](Group& group) {
                                        if (group.rank() == 1)
                                          call(group);
                                        else
                                          group.split(0);
                                        group.barrier();
                                      }));
    check_all(outcomes, {.code = ErrorCode::mismatch, .rank = 1, .says = "called " + name, .promptly = true});
  }
}

TEST_CASE("splits: a forked child cannot split, and its end takes nothing from its parent's groups", "[group]") {
  check_good(run_processes(
      2, rank_body(2, "shm", [](Group& group) {
        Group part = group.dup();
        const pid_t child = ::fork();
        if (child == 0) {
          int code = 0;
          for (const auto& refused :
               std::vector<std::function<void()>>{[&] { part.dup(); }, [] { init(); }, [] { get_group("some"); },
                                                  [] { init_collective_group(2, 0, Backend::automatic, "some"); }}) {
            const Error error = error_of(refused);
            if (error.code() != ErrorCode::not_initialized || error.message().find("forked") == std::string::npos)
              code = 1;
          }
          if (is_group_initialized() || get_rank() != -1 || Context::current().destroy_group("default")) code = 2;
          part.destroy();
          part = Group();
          Context::current().finalize();
          ::_exit(code);
        }
        int status = -1;
        ::waitpid(child, &status, 0);
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, fmt::format("{:#x}", status));
        // Another group does not get the same memory.
        Group other = group.dup();
        for (int round = 0; round < 100; ++round) {
          std::vector<int> a{1}, b{2};
          part.allreduce(a);
          other.allreduce(b);
          expect(a[0] == 2 && b[0] == 4);
        }
      })));
}

TEST_CASE("splits: a group without a name of its own goes with its last handle, also while others wait", "[group]") {
  on_each(3, [](Group& group) {
    Group part = group.dup();
    const std::string name(part.name());
    {
      const Group same = part;
      Work begun = part.ibarrier();
      part = Group();
      expect(get_group(name).size() == 3);
      begun.wait();
    }
    expect(!is_group_initialized(name));
    group.subgroup(std::array{0, 1, 2}, "some");
    expect(get_group("some").size() == 3);  // whose name the program knows
    // The others are told.
    part = group.dup();
    if (group.rank() == 1) {
      part = Group();
    } else {
      const Error error = error_of([&] { part.barrier(); });
      expect(error.code() == ErrorCode::peer_lost && error.rank() == 1, error.what());
    }
    group.barrier();
  });
}

// Whatever the timing: others may still be connecting when two fail.
TEST_CASE("splits: a mismatch in the first call of a new group is told to the two, and bystanders get the group",
          "[group]") {
  const std::vector<std::function<Group(Group&, Context&, const std::string&)>> ways = {
      [](Group& group, Context&, const std::string&) { return group.dup(); },
      [](Group& group, Context&, const std::string&) { return group.split(0, -group.rank()); },
      [](Group& group, Context&, const std::string& name) {
        return group.subgroup(std::array{0, 1, 2, 3}, name);
      },
      [](Group& group, Context&, const std::string& name) { return group.shrink({}, name); },
      [](Group& group, Context& context, const std::string& name) { return join_another(context, name, group); }};
  threads_on_each_backend(4, [&](Group& group, Context& context) {
    for (int round = 0; round < 20; ++round) {
      const auto& make = ways[static_cast<std::size_t>(round) % ways.size()];
      Group made = make(group, context, fmt::format("round {}", round));
      std::vector<float> data(made.rank() == 0 ? 100 : 10);
      std::string said = "mismatch";
      try {
        if (made.rank() == 0) made.send(data, 1);
        if (made.rank() == 1) said = error_of([&] { made.recv(data, 0); }).what();
      } catch (const Error& error) {  // a send may have ended before
        said = error.what();
      }
      expect(said.starts_with("mismatch"), said);
      group.barrier();
      try {
        made.destroy();
      } catch (const Error& error) {
        expect(error.code() == ErrorCode::mismatch, error.what());
      }
    }
  });
}

TEST_CASE("splits: a rank that leaves its new group early is named, and the parent goes on", "[group]") {
  on_each(3, [](Group& group) {
    Group part = group.dup();
    if (group.rank() == 1) {
      part.destroy();
    } else {
      const Error error = error_of([&] { part.barrier(); });
      expect(error.rank() == 1, error.what());
      part.destroy();
    }
    group.barrier();
    group.dup().barrier();
  });
}

}  // namespace
}  // namespace col::test
