// How long a job's start takes.
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include <col/store.hpp>

#include "support/catch.hpp"
#include "support/prompt.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/child.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int kRanks = 32;
constexpr int kRuns = 20;

double median(std::vector<Milliseconds> times) {
  std::sort(times.begin(), times.end());
  return (times[times.size() / 2 - 1] + times[times.size() / 2]).count() / 2;
}

// From before the first fork to after the last exit: each sets its key and waits for those of all.
Milliseconds rendezvous() {
  const TempDir directory;
  const auto start = std::chrono::steady_clock::now();
  std::vector<Child> children;
  for (int i = 0; i < kRanks; ++i) {
    children.emplace_back([&] {
      const auto store = make_file_store(directory / "store");
      store->set("rank/" + std::to_string(i), "address");
      for (int peer = 0; peer < kRanks; ++peer) store->wait_for("rank/" + std::to_string(peer), 20s);
    });
  }
  for (auto& child : children) REQUIRE(child.outcome() == "");
  return std::chrono::steady_clock::now() - start;
}

Milliseconds fork_and_exec() {
  const auto start = std::chrono::steady_clock::now();
  std::vector<pid_t> pids(kRanks);
  std::string program = "true";
  char* const arguments[] = {program.data(), nullptr};
  for (pid_t& pid : pids) REQUIRE(::posix_spawnp(&pid, "true", nullptr, nullptr, arguments, environ) == 0);
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  return std::chrono::steady_clock::now() - start;
}

}  // namespace

TEST_CASE("file store: 32 processes that set a key each and wait for all meet at once", "[store]") {
  std::vector<Milliseconds> meeting;
  std::vector<Milliseconds> baseline;
  for (int run = 0; run < kRuns; ++run) {
    meeting.push_back(rendezvous());
    baseline.push_back(fork_and_exec());
  }
  std::cout << "rendezvous of " << kRanks << " processes, fork to exit: median " << median(meeting) << " ms, slowest "
            << std::max_element(meeting.begin(), meeting.end())->count() << " ms of " << kRuns
            << " runs; fork and exec of as many: median " << median(baseline) << " ms" << std::endl;
  CHECK(median(meeting) < Milliseconds(kPrompt).count());  // none waits for its deadline
}
