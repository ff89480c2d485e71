#include "conformance/backend/backend_ranks.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/fork.hpp"
#include "support/memory_channel.hpp"
#include "support/temp_dir.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

// Connects, runs the body, and returns what went wrong.
std::string run_rank(BackendFactory& factory, std::shared_ptr<Store> store, int rank, int size,
                     const BackendBody& body) {
  try {
    std::vector<PeerInfo> peers(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r)
      peers[static_cast<std::size_t>(r)] = {
          .rank = r, .global_rank = r, .pid = 0, .hostname = "here", .boot_id = "b", .network_namespace = "n"};
    const ConnectRequest request{.group = "conformance",
                                 .rank = rank,
                                 .size = size,
                                 .store = make_prefix_store(store, "mesh"),
                                 .peers = peers,
                                 .same_host = true,
                                 .token = 0xc01'c01ULL,
                                 .socket_ifname = {}};
    WaitContext wait(Deadline::after(20s));
    {
      const auto channel = factory.connect(request, wait);
      BackendRank self{.rank = rank, .size = size, .channel = *channel, .store = make_prefix_store(store, "body")};
      body(self);
    }
    make_prefix_store(store, "body")->set(fmt::format("left/{}", rank), "yes");
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

struct Child {
  pid_t pid;
  int from;
};

Child fork_rank(const std::vector<Child>& siblings, const std::function<std::string()>& run) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork_at_rest();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    for (const Child& other : siblings) ::close(other.from);
    ::close(ends[0]);
    const std::string problem = run();
    const bool written = ::write(ends[1], problem.data(), problem.size()) == static_cast<ssize_t>(problem.size());
    std::_Exit(problem.empty() && written ? 0 : 1);
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

// One line per rank that did not end well. Ranks that outlive 60 s are killed.
std::string problems_of_processes(BackendFactory& factory, int size, const BackendBody& body) {
  const TempDir dir;
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) {
    children.push_back(
        fork_rank(children, [&] { return run_rank(factory, make_file_store(dir.path()), rank, size, body); }));
  }
  std::string text;
  const Deadline deadline = Deadline::after(60s);
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    pollfd entry{children[rank].from, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining()).count();
    if (poll(&entry, 1, static_cast<int>(left)) <= 0) ::kill(children[rank].pid, SIGKILL);
    char words[2000];
    const ssize_t got = ::read(children[rank].from, words, sizeof(words));
    ::close(children[rank].from);
    int status = 0;
    waitpid(children[rank].pid, &status, 0);
    if (status != 0) {
      text += fmt::format("rank {} of {}: status {:#x} {}\n", rank, size, status,
                          std::string(words, got > 0 ? static_cast<std::size_t>(got) : 0));
    }
  }
  return text;
}

std::string problems_of_threads(BackendFactory& factory, int size, const BackendBody& body) {
  const auto store = make_memory_store();
  std::vector<std::string> problems(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back(
          [&, rank] { problems[static_cast<std::size_t>(rank)] = run_rank(factory, store, rank, size, body); });
    }
  }
  std::string text;
  for (std::size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty()) text += fmt::format("rank {} of {}: {}\n", rank, size, problems[rank]);
  }
  return text;
}

// The reference, plain and with messages that overtake one another.
void register_memory_backends() {
  register_memory_backend();
  register_memory_backend({.name = "late_memory", .longest_delay = 2ms, .seed = 4, .rendezvous = false});
}

}  // namespace

bool BackendRank::has(Collective collective) const {
  const auto entries = channel.native_entries();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const NativeEntry& entry) { return entry.collective == collective; });
}

void BackendRank::each_entry(Request request, const std::function<void()>& prepare,
                             const std::function<void()>& check) {
  for (const NativeEntry& entry : channel.native_entries()) {
    if (entry.collective != request.collective) continue;
    request.algorithm = entry.name;
    request.fingerprint = next_slot();
    prepare();
    WaitContext wait_context(Deadline::after(20s));
    channel.native(request, wait_context);
    check();
  }
}

int BackendRank::wait(Ticket ticket, Duration timeout) {
  WaitContext wait_context(Deadline::after(timeout));
  return channel.wait(ticket, wait_context);
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not as expected: " + what);
}

void on_every_backend(const BackendBody& body, const std::vector<int>& sizes) {
  register_memory_backends();
  for (const std::string& name : backend_names()) {
    BackendFactory* const factory = find_backend(name);
    REQUIRE(factory != nullptr);
    if (factory->unavailable_reason() || factory->device() != Device::Type::cpu) continue;
    const bool is_memory = name.find("memory") != std::string::npos;
    for (const int size : sizes) {
      INFO("backend " << name << ", " << size << " ranks");
      // Processes first: a fork after threads have run is the harder start.
      if (!is_memory) CHECK(problems_of_processes(*factory, size, body) == "");
      if (is_memory || name == "shm") CHECK(problems_of_threads(*factory, size, body) == "");
    }
  }
}

std::vector<std::int32_t> input_of(int rank, std::size_t count) {
  std::vector<std::int32_t> data(count);
  std::iota(data.begin(), data.end(), 1000 * rank);
  return data;
}

}  // namespace col::test
