#include "unit/gloo/mesh.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "backend/gloo/connect.hpp"
#include "support/fork.hpp"

namespace col::test {

std::unique_ptr<GlooChannel> connect(const Place& place, WaitContext& wait) {
  const ConnectRequest request{.group = place.group,
                               .rank = place.rank,
                               .size = place.size,
                               .store = place.store,
                               .peers = {},
                               .same_host = true,
                               .token = place.token,
                               .socket_ifname = {}};
  return std::make_unique<GlooChannel>(place.group, gloo_backend::connect_mesh(request, wait));
}

std::unique_ptr<GlooChannel> connect(const Place& place, Duration timeout) {
  WaitContext wait = wait_for(timeout);
  return connect(place, wait);
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
  std::vector<Ending> endings(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      endings[static_cast<std::size_t>(rank)] = ending_of([&] {
        const auto channel = connect({.rank = rank, .size = size, .store = store});
        body(rank, *channel);
      });
    });
  }
  for (auto& thread : threads) thread.join();
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
  std::signal(SIGPIPE, SIG_DFL);
  const Ending ending = ending_of(body);
  const std::string text = nlohmann::json{
      {"code", ending.code ? static_cast<int>(*ending.code) : -1},
      {"text", ending.text},
      {"rank", ending.rank},
      {"seconds",
       ending.seconds}}.dump();
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

Ending RankProcess::wait(Duration limit) {
  const Deadline deadline = Deadline::after(limit);
  std::string text;
  for (char chunk[4096];;) {
    pollfd entry{pipe_, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining()).count();
    if (poll(&entry, 1, static_cast<int>(left)) <= 0) {
      kill();
      return {ErrorCode::internal, fmt::format("hangs: killed after {} ms", limit.count() / 1'000'000), -1, 0};
    }
    const ssize_t got = ::read(pipe_, chunk, sizeof(chunk));
    if (got <= 0) break;
    text.append(chunk, static_cast<std::size_t>(got));
  }
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  if (WIFSIGNALED(status)) return {ErrorCode::internal, fmt::format("signal {}", WTERMSIG(status)), -1, 0};
  const auto json = nlohmann::json::parse(text);
  Ending ending{std::nullopt, json["text"], json["rank"], json["seconds"]};
  if (json["code"] >= 0) ending.code = static_cast<ErrorCode>(json["code"].get<int>());
  return ending;
}

void barrier(GlooChannel& channel, std::uint64_t sequence, Duration timeout) {
  WaitContext wait = wait_for(timeout);
  channel.native(request_for(Collective::barrier, sequence, 0), wait);
}

}  // namespace col::test
