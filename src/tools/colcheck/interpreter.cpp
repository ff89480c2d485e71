#include "colcheck/interpreter.hpp"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <col/job.hpp>

#include "common/command_line.hpp"
#include "core/clock/clock.hpp"
#include "json/json_fields.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/program.hpp"

namespace col::colcheck {
namespace {

namespace fs = std::filesystem;

// All ranks import torch at once, which takes seconds.
constexpr Duration kStartTime = std::chrono::minutes(1);
constexpr Duration kEndTime = std::chrono::seconds(5);

// A case makes a few calls at most, each of which ends with its timeout.
Duration longest_case(Duration timeout) {
  return 3 * timeout + std::chrono::seconds(5);
}

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// The folder that has the package `col`: this program is COL/bin/colcheck in a wheel, and src/tools/colcheck/colcheck
// in a build.
std::optional<fs::path> package_folder() {
  const fs::path place = fs::path(tools::own_path()).parent_path().parent_path().parent_path();
  std::error_code ignored;
  for (const fs::path& folder : {place, place / "python"}) {
    if (fs::exists(folder / "col" / "check.py", ignored)) return folder;
  }
  return std::nullopt;
}

struct Greeting {
  std::string has;
};

// What col.init() takes.
struct Place {
  std::string store, token, job_id;
  int rank = 0, world_size = 1;
  double timeout = 0;
};

template <class Visit>
void fields(Greeting& greeting, Visit& visit) {
  auto& [has] = greeting;
  visit("has", has);
}

template <class Visit>
void fields(Place& place, Visit& visit) {
  auto& [store, token, job_id, rank, world_size, timeout] = place;
  visit("store", store);
  visit("token", token);
  visit("job_id", job_id);
  visit("rank", rank);
  visit("world_size", world_size);
  visit("timeout", timeout);
}

}  // namespace

std::string default_interpreter() {
  if (const auto folder = package_folder(); folder && folder->filename() == "site-packages") {
    // PREFIX/lib/python3.11/site-packages
    const fs::path python = folder->parent_path().parent_path().parent_path() / "bin" / "python3";
    if (::access(python.c_str(), X_OK) == 0) return python;
  }
  return "python3";
}

Interpreter::Interpreter(const std::string& program, bool only_ask) {
  start(program, only_ask);
  const Deadline deadline = Deadline::after(kStartTime);
  std::string last = "it said nothing";
  while (const auto line = read_line(deadline)) {
    if (line->starts_with('{')) {
      has_ = core::parsed_json<Greeting>(*line, "greeting").has;
      return;
    }
    if (!line->empty()) last = *line;
  }
  end({});
  throw tools::UsageError(
      "--python: '{} -m col.check' does not work ({}); install col and numpy for that Python, set PYTHONPATH, or name "
      "another Python with --interpreter",
      program, last);
}

Interpreter::~Interpreter() {
  end(kEndTime);
}

void Interpreter::start(const std::string& program, bool only_ask) {
  if (const auto folder = package_folder()) {
    const char* const others = std::getenv("PYTHONPATH");
    const bool is_alone = others == nullptr || *others == '\0';
    ::setenv("PYTHONPATH", (folder->string() + (is_alone ? "" : ":" + std::string(others))).c_str(), 1);
  }
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pair of sockets");
  talk_.reset(ends[0]);
  const tools::UniqueFd its_end(ends[1]);
  try {
    std::vector<std::string> command = {launch::resolve_program(program), "-m", "col.check"};
    rlimit open_files{};
    ::getrlimit(RLIMIT_NOFILE, &open_files);
    // Those of the note of a crash.
    const std::array<int, 5> handled = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const launch::SpawnResult child =
        launch::spawn({.path = command.front().c_str(),
                       .arguments = launch::pointers_to(command).data(),
                       .environment = environ,
                       .descriptors = {.stdin_fd = its_end.get(),
                                       .stdout_fd = its_end.get(),
                                       .stderr_fd = only_ask ? its_end.get() : STDERR_FILENO},
                       .keep_fds = {},
                       .open_files = open_files,
                       .changed_signals = handled});
    if (child.exec_error != 0) launch::refuse_program(command.front(), child.exec_error);
    if (child.pid < 0) throw std::system_error(child.fork_error, std::generic_category(), "cannot start a process");
    pid_ = child.pid;
  } catch (const launch::LaunchError& error) {
    throw tools::UsageError("--python: {}; name a Python with --interpreter", error.what());
  }
  if (only_ask) ::shutdown(talk_.get(), SHUT_WR);
}

void Interpreter::join(const ContextSpec& spec, Store& store) {
  if (spec.local_world_size != spec.world_size)
    throw tools::UsageError(
        "--python checks ranks on one host, and those of this world are on several; start them on one");
  const std::string key = "colcheck/python";
  Place place;
  place.job_id = "colcheck";
  place.rank = spec.rank;
  place.world_size = spec.world_size;
  place.timeout = seconds_of(kStartTime);
  if (spec.rank == 0) {
    const std::string host = "127.0.0.1";
    place.token = make_store_token();
    meeting_ = std::make_unique<StoreServer>(StoreServerSpec{.host = host, .token = place.token});
    place.store = fmt::format("tcp://{}:{}", host, meeting_->port());
    store.set(key, place.token + " " + place.store);
  } else {
    WaitContext context(Deadline::after(kStartTime), spec.control.get());
    const std::string text = store.wait(key, context);
    const std::size_t space = text.find(' ');
    place.token = text.substr(0, space);
    place.store = text.substr(space + 1);
  }
  say(core::json_line(place));
}

Answer Interpreter::run(const Order& order, std::uint64_t number, const ObeyOptions& options) {
  say(fmt::format(R"({{"number":{},"timeout":{},"order":{}}})", number, seconds_of(options.timeout), encode(order)));
  Answer answer;
  for (;;) {
    const Deadline deadline = Deadline::after(longest_case(options.timeout));
    const auto line = read_line(deadline);
    if (!line) {
      const bool hangs = deadline.expired();
      const std::string how = end(hangs ? Duration::zero() : kEndTime);
      answer.ended = "its Python process " + (hangs ? "did not go on, and was killed" : how);
      if (answer.done > 0) answer.entries.push_back({answer.done - 1, Finding::fail(answer.ended)});
      return answer;
    }
    if (line->starts_with("end")) {
      if (line->size() > 3) answer.trouble = line->substr(4);
      return answer;
    }
    if (line->starts_with('{')) {
      answer.entries.push_back(decode_entry(*line));
    } else {
      const auto index = static_cast<std::size_t>(std::stoul(*line));
      answer.done = index + 1;
      if (options.on_case) options.on_case(order.cases.at(index));
    }
  }
}

void Interpreter::say(const std::string& line) {
  std::string_view left = line;
  while (!left.empty() && left.ends_with('\n')) left.remove_suffix(1);
  const std::string whole = std::string(left) + "\n";
  const Deadline deadline = Deadline::after(kStartTime);
  for (left = whole; !left.empty() && !deadline.expired();) {
    pollfd ready{talk_.get(), POLLOUT, 0};
    if (core::poll_for({&ready, 1}, deadline.remaining()) <= 0) continue;
    const ssize_t sent = ::send(talk_.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return;
    if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::optional<std::string> Interpreter::read_line(Deadline deadline) {
  for (;;) {
    if (const std::size_t newline = read_.find('\n'); newline != std::string::npos) {
      std::string line = read_.substr(0, newline);
      read_.erase(0, newline + 1);
      return line;
    }
    if (deadline.expired()) return std::nullopt;
    pollfd ready{talk_.get(), POLLIN, 0};
    if (core::poll_for({&ready, 1}, deadline.remaining()) <= 0) continue;
    std::array<char, 4096> part{};
    const ssize_t got = ::recv(talk_.get(), part.data(), part.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    read_.append(part.data(), static_cast<std::size_t>(got));
  }
}

std::string Interpreter::end(Duration patience) {
  if (pid_ <= 0) return {};
  ::shutdown(talk_.get(), SHUT_WR);
  const Deadline deadline = Deadline::after(patience);
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (deadline.expired()) ::kill(pid_, SIGKILL);
    core::sleep_for(std::chrono::milliseconds(2));
  }
  pid_ = -1;
  return WIFSIGNALED(status)
             ? fmt::format("was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
             : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace col::colcheck
