// What users dread: a rank that dies, leaves, never comes, or calls something else. On a real backend, every other rank
// gets an error that names the culprit, soon.
#include <signal.h>
#include <unistd.h>

#include <vector>

#include <fmt/format.h>

#include <col/col.hpp>

#include "conformance/group/backends.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using col::ErrorCode;
using col::test::Outcome;
using namespace std::chrono_literals;

namespace {

constexpr int kFailingRanks = 4;

col::Group join(col::Context& context, int rank, const std::string& backend) {
  return context.init_group({.rank = rank, .world_size = kFailingRanks, .backend_name = backend});
}

// Everyone but `culprit` got `code` about it within `seconds`.
void check_survivors(const std::vector<Outcome>& outcomes, int culprit, ErrorCode code, double seconds) {
  for (int rank = 0; rank < kFailingRanks; ++rank) {
    if (rank == culprit) continue;
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    CHECK(outcome.code == code);
    CHECK(outcome.error_rank == culprit);
    CHECK(outcome.seconds < seconds);
  }
}

}  // namespace

TEST_CASE("failures: a rank killed between allreduces is named by all survivors within a second or two", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    for (const std::size_t count : {10u, 1000000u}) {
      const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
        col::Group group = join(context, rank, backend);
        std::vector<float> data(count);
        for (int round = 0;; ++round) {
          if (rank == 2 && round == 5) kill(getpid(), SIGKILL);
          group.allreduce(data);
        }
      });
      INFO(backend << ", count " << count << "\n" << col::test::show(outcomes));
      CHECK(outcomes[2].signal == SIGKILL);
      check_survivors(outcomes, 2, ErrorCode::peer_lost, count > 1000 ? 10 : 3);
    }
  }
}

TEST_CASE("failures: a rank that leaves with operations unfinished is named", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, backend);
      if (rank == 1) _exit(3);
      group.barrier();
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    check_survivors(outcomes, 1, ErrorCode::peer_lost, 3);
  }
}

TEST_CASE("failures: a rank that calls something else is named on all ranks", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, backend);
      std::vector<float> data(rank == 3 ? 11u : 10u);
      group.allreduce(data);
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.code == ErrorCode::mismatch);
      CHECK(outcome.error_rank == 3);
      CHECK(outcome.seconds < 3);
    }
  }
}

TEST_CASE("failures: two ranks that both take themselves for the root learn of it at the next call", "[group]") {
  // Each only sends, or puts its data for others: in that call itself, nobody meets anything that is wrong.
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_threads(2, [&](int rank, col::Context& context) {
      col::Group group = context.init_group({.rank = rank, .world_size = 2, .backend_name = backend, .timeout = 5s});
      std::vector<int> data(10, rank);
      group.broadcast(data, {.root = rank});
      group.barrier();
    });
    INFO(backend << ": " << show(outcomes));
    for (const auto& outcome : outcomes) CHECK(outcome.code == ErrorCode::mismatch);
  }
}

TEST_CASE("failures: ranks that name different algorithms never exchange a byte", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    if (backend != "gloo") continue;  // the one with two algorithms for the same call
    const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, backend);
      std::vector<float> data(1, 1.0f);
      group.allreduce(data, {.algorithm = rank == 0 ? "gloo_ring" : "gloo_bcube"});
    });
    INFO(col::test::show(outcomes));
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.code == ErrorCode::mismatch);
      CHECK(outcome.error_rank == 0);
    }
  }
}

TEST_CASE("failures: a rank that stays away is named by the timeout", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, backend);
      std::vector<float> data(10);
      group.allreduce(data);
      if (rank == 0)
        context.spec().store->wait_for("the others gave up", 20s);
      else {
        try {
          group.allreduce(data, {.timeout = 700ms});
        } catch (const col::Error&) {
          if (context.spec().store->add("gave up", 1) == kFailingRanks - 1)
            context.spec().store->set("the others gave up", "");
          throw;
        }
      }
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(outcomes[0].good);
    check_survivors(outcomes, 0, ErrorCode::timeout, 5);
  }
}

TEST_CASE("failures: a rank stopped for less than the timeout is waited for", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, backend);
      std::vector<float> data(10, 1.0f);
      if (rank == 1) {
        // A helper process continues this one: long enough after for the others to start to wonder.
        const pid_t self = getpid();
        if (fork() == 0) {
          usleep(400000);  // the length of the stop is the subject
          kill(self, SIGCONT);
          _exit(0);
        }
        kill(self, SIGSTOP);
      }
      group.allreduce(data);
      col::test::expect(data[0] == kFailingRanks);
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(col::test::all_good(outcomes));
  }
}

TEST_CASE("failures: a rank stopped for longer than the timeout is named, and that it was stopped", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, backend);
      std::vector<float> data(10, 1.0f);
      if (rank == 1) {
        // A process of its own continues this one when the others have given up.
        const pid_t self = getpid();
        if (fork() == 0) {
          try {
            context.spec().store->wait_for("the others gave up", 20s);
          } catch (const col::Error&) {
          }
          kill(self, SIGCONT);
          _exit(0);
        }
        kill(self, SIGSTOP);
        return;
      }
      try {
        group.allreduce(data, {.timeout = 700ms});
      } catch (const col::Error& error) {
        if (context.spec().store->add("gave up", 1) == kFailingRanks - 1)
          context.spec().store->set("the others gave up", "");
        col::test::expect(error.message().find("SIGSTOP") != std::string::npos, error.what());
        throw;
      }
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    check_survivors(outcomes, 1, ErrorCode::timeout, 5);
  }
}

TEST_CASE("failures: of two that stay away, the one furthest behind is named", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
      col::Group group = join(context, rank, backend);
      std::vector<float> data(10);
      group.allreduce(data);
      if (rank == 2) {
        context.spec().store->wait_for("the others gave up", 20s);
        return;
      }
      try {
        // Rank 0 waits for rank 2 in the call before; ranks 1 and 3 have sent it their part of that one.
        std::vector<float> all(data.size() * kFailingRanks);
        if (rank == 0)
          group.gather(data, all, {.algorithm = "linear", .timeout = 1200ms});
        else
          group.gather(data, {}, {.algorithm = "linear"});
        group.allreduce(data, {.timeout = 700ms});
      } catch (const col::Error&) {
        if (context.spec().store->add("gave up", 1) == kFailingRanks - 1)
          context.spec().store->set("the others gave up", "");
        throw;
      }
    });
    INFO(backend << "\n" << col::test::show(outcomes));
    CHECK(outcomes[2].good);
    check_survivors(outcomes, 2, ErrorCode::timeout, 5);
  }
}

TEST_CASE("failures: leaving right after the last collective takes nothing from slower ranks", "[group]") {
  for (const std::string& backend : col::test::usable_backends()) {
    for (int round = 0; round < 10; ++round) {
      const auto outcomes = col::test::run_processes(kFailingRanks, [&](int rank, col::Context& context) {
        col::Group group = join(context, rank, backend);
        std::vector<float> data(20000, static_cast<float>(rank));
        group.broadcast(data, {.root = 1});
        group.allreduce(data);
        col::test::expect(data[19999] == kFailingRanks);
        context.finalize();
        _exit(0);  // and the process is gone at once
      });
      INFO(backend << "\n" << col::test::show(outcomes));
      for (const Outcome& outcome : outcomes) {
        CHECK(outcome.text == "ended without a word");
        CHECK(outcome.signal == 0);
      }
    }
  }
}
