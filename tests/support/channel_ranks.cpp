#include "support/channel_ranks.hpp"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "support/fork.hpp"

namespace col::test {

Ending ending_of(const std::function<void()>& body) {
  Ending ending;
  const auto start = std::chrono::steady_clock::now();
  try {
    body();
  } catch (const Error& error) {
    ending = {error.code(), error.what(), error.rank()};
  } catch (const std::exception& error) {
    ending = {ErrorCode::internal, error.what()};
  }
  ending.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return ending;
}

Ending ending_when_aborted(Channel& channel, const std::function<void(WaitContext& wait)>& body) {
  const auto page = ControlPage::in_memory(1);
  RankRecord& record = page->record(0);
  record.join(0);
  std::chrono::steady_clock::time_point aborted_at;
  Ending ending;
  {
    const std::jthread other([&] {
      const Deadline deadline = Deadline::after(std::chrono::seconds(10));
      while (record.read().state != RankActivity::State::waiting && !deadline.expired()) std::this_thread::yield();
      aborted_at = std::chrono::steady_clock::now();
      channel.abort(Error(ErrorCode::aborted, "the test says stop"));
      channel.abort(Error(ErrorCode::internal, "a second cause, which must not win"));
    });
    WaitContext wait(Deadline::after(kDeadline), page.get(), &record);
    ending = ending_of([&] { body(wait); });
  }
  ending.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - aborted_at).count();
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
  return std::none_of(endings.begin(), endings.end(), [](const Ending& ending) { return ending.code.has_value(); });
}

std::vector<Ending> run_each(int size, const std::function<void(int rank)>& body) {
  std::vector<Ending> endings(static_cast<std::size_t>(size));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] { endings[static_cast<std::size_t>(rank)] = ending_of([&] { body(rank); }); });
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
  ::signal(SIGPIPE, SIG_DFL);
  const Ending ending = ending_of(body);
  const int code = ending.code ? static_cast<int>(*ending.code) : -1;
  const std::string text = fmt::format("{} {} {} {}", code, ending.rank, ending.seconds, ending.text);
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
      return {ErrorCode::internal, fmt::format("hangs: killed after {} ms", limit.count() / 1'000'000)};
    }
    const ssize_t got = ::read(pipe_, chunk, sizeof(chunk));
    if (got <= 0) break;
    text.append(chunk, static_cast<std::size_t>(got));
  }
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  if (WIFSIGNALED(status)) return {ErrorCode::internal, fmt::format("signal {}", WTERMSIG(status))};
  if (text.empty()) return {ErrorCode::internal, fmt::format("ended without a word, exit status {:#x}", status)};
  Ending ending;
  int code = -1;
  std::istringstream words(text);
  words >> code >> ending.rank >> ending.seconds;
  words.get();
  ending.text.assign(std::istreambuf_iterator<char>(words), {});
  if (code >= 0) ending.code = static_cast<ErrorCode>(code);
  return ending;
}

std::vector<int> own_descriptors() {
  std::vector<int> fds;
  DIR* const dir = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] != '.' && std::stoi(entry->d_name) != dirfd(dir)) fds.push_back(std::stoi(entry->d_name));
  }
  closedir(dir);
  return fds;
}

void meet_all(Channel& channel, int rank, int size, std::uint64_t slot, std::int32_t first) {
  std::vector<std::int32_t> own(1, first + rank), theirs(static_cast<std::size_t>(size), -1);
  std::vector<Ticket> tickets;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const auto place = static_cast<std::size_t>(peer);
    tickets.push_back(channel.post_recv(peer, slot, theirs[place]));
    tickets.push_back(channel.post_send(peer, slot, own));
  }
  for (const Ticket ticket : tickets) wait_for(channel, ticket);
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) expect(theirs[static_cast<std::size_t>(peer)] == first + peer, "what that rank has sent");
  }
}

void await_all(Store& store, const std::string& point, int size) {
  if (store.add(point, 1) == size) store.set("all " + point, "");
  store.wait_for("all " + point, kDeadline);
}

}  // namespace col::test
