#include "unit/shm/shm_ranks.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "support/fork.hpp"

namespace col::test {

std::unique_ptr<ShmChannel> connect(const Place& place, Duration timeout) {
  const ConnectRequest request{.group = "g",
                               .rank = place.rank,
                               .size = place.size,
                               .store = place.store,
                               .peers = {},
                               .same_host = true,
                               .token = place.token,
                               .socket_ifname = {}};
  shm_backend::LocalSegments none;
  WaitContext wait(Deadline::after(timeout));
  auto segment =
      shm_backend::connect_segment(request, wait, place.local != nullptr ? *place.local : none, place.places);
  return std::make_unique<ShmChannel>("g", place.rank, std::move(segment));
}

Ending ending_of(const std::function<void()>& body) {
  Ending ending;
  const auto start = std::chrono::steady_clock::now();
  try {
    body();
  } catch (const Error& error) {
    ending.code = error.code();
    ending.text = error.what();
    ending.rank = error.rank();
  } catch (const std::exception& error) {
    ending.code = ErrorCode::internal;
    ending.text = error.what();
  }
  ending.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ending;
}

std::string show(const std::vector<Ending>& endings) {
  std::string text;
  for (std::size_t r = 0; r < endings.size(); ++r) {
    text +=
        fmt::format("rank {}: {} after {:.3f} s\n", r, endings[r].code ? endings[r].text : "well", endings[r].seconds);
  }
  return text;
}

bool all_well(const std::vector<Ending>& endings) {
  for (const Ending& ending : endings) {
    if (ending.code) return false;
  }
  return true;
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("not as expected: " + what);
}

std::vector<Ending> run_ranks(int size, const RankBody& body) {
  const auto store = make_memory_store();
  shm_backend::LocalSegments local;
  std::vector<Ending> endings(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        endings[static_cast<std::size_t>(rank)] = ending_of([&] {
          const auto channel = connect({.rank = rank, .size = size, .store = store, .local = &local});
          body(rank, *channel);
        });
      });
    }
  }
  return endings;
}

RankProcess::RankProcess(const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  pid_ = fork_at_rest();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ > 0) {
    ::close(ends[1]);
    pipe_ = ends[0];
    return;
  }
  ::close(ends[0]);
  const Ending ending = ending_of(body);
  const std::string text = ending.code ? "failed: " + ending.text : "";
  const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
  std::_Exit(written ? 0 : 1);
}

RankProcess::RankProcess(RankProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}

RankProcess::~RankProcess() {
  kill();
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  if (pipe_ >= 0) ::close(pipe_);
}

void RankProcess::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

std::string RankProcess::wait(Duration limit) {
  const Deadline deadline = Deadline::after(limit);
  std::string text;
  for (char chunk[4096];;) {
    pollfd entry{pipe_, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining()).count();
    if (poll(&entry, 1, static_cast<int>(left)) <= 0) {
      kill();
      return "hangs";
    }
    const ssize_t got = ::read(pipe_, chunk, sizeof(chunk));
    if (got <= 0) break;
    text.append(chunk, static_cast<std::size_t>(got));
  }
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return status == 0 ? text : fmt::format("exit status {:#x}", status);
}

int wait_for(ShmChannel& channel, Ticket ticket, Duration timeout) {
  WaitContext wait(Deadline::after(timeout));
  return channel.wait(ticket, wait);
}

void send(ShmChannel& channel, int peer, std::uint64_t slot, ConstTensorView data) {
  wait_for(channel, channel.post_send(peer, slot, data));
}

void recv(ShmChannel& channel, int peer, std::uint64_t slot, TensorView data) {
  wait_for(channel, channel.post_recv(peer, slot, data));
}

std::vector<std::string> leftovers(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.rfind("col-", 0) == 0) names.push_back(name);
  }
  return names;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace col::test
