#include "support/ranks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "support/fork.hpp"
#include "support/temp_dir.hpp"

namespace col::test {
namespace {

using Clock = std::chrono::steady_clock;

ContextSpec make_spec(int rank, int ranks, const RankOptions& options, std::shared_ptr<Store> store,
                      std::shared_ptr<ControlPage> control) {
  ContextSpec spec;
  spec.rank = spec.local_rank = rank;
  spec.world_size = spec.local_world_size = ranks;
  spec.job_id = options.job_id;
  spec.store = std::move(store);
  spec.control = std::move(control);
  spec.timeout = options.timeout;
  if (options.adapt) options.adapt(spec);
  return spec;
}

Outcome run_body(int rank, const Body& body, ContextSpec spec) {
  Outcome outcome;
  const auto start = Clock::now();
  try {
    Context context(std::move(spec));
    const Context::Scope scope(context);
    body(rank, context);
    outcome.good = true;
  } catch (const Error& error) {
    outcome.code = error.code();
    outcome.error_rank = error.rank();
    outcome.text = error.what();
  } catch (const std::exception& error) {
    outcome.text = error.what();
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

// Outcome as bytes through a pipe: "<good> <code> <rank> <seconds> <text>".
std::string encode(const Outcome& outcome) {
  return fmt::format("{} {} {} {} {}", outcome.good ? 1 : 0, outcome.code ? static_cast<int>(*outcome.code) : -1,
                     outcome.error_rank, outcome.seconds, outcome.text);
}

Outcome decode(const std::string& text) {
  Outcome outcome;
  int good = 0, code = -1, used = 0;
  if (std::sscanf(text.c_str(), "%d %d %d %lf %n", &good, &code, &outcome.error_rank, &outcome.seconds, &used) < 4) {
    outcome.text = "ended without a word";
    return outcome;
  }
  outcome.good = good == 1;
  if (code >= 0) outcome.code = static_cast<ErrorCode>(code);
  outcome.text = text.substr(static_cast<std::size_t>(used));
  return outcome;
}

struct Child {
  pid_t pid = -1;
  int pipe = -1;
  std::string text;
};

Child start(int rank, const std::function<Outcome()>& run, const std::vector<Child>& siblings) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  const pid_t pid = fork_at_rest();
  if (pid < 0) throw std::runtime_error(fmt::format("fork of rank {} failed: {}", rank, std::strerror(errno)));
  if (pid == 0) {
    close(ends[0]);
    for (const Child& sibling : siblings) close(sibling.pipe);
    const std::string text = encode(run());
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  return {pid, ends[0], {}};
}

// Reads until the pipe closes, which happens when the child ends; false when `deadline` comes first.
bool drain(Child& child, const Deadline& deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining()).count();
    pollfd entry{child.pipe, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t got = read(child.pipe, buffer, sizeof buffer);
    if (got <= 0) return true;
    child.text.append(buffer, static_cast<std::size_t>(got));
  }
}

Outcome finish(Child& child, const Deadline& deadline) {
  const bool ended = drain(child, deadline);
  if (!ended) kill(child.pid, SIGKILL);
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  close(child.pipe);
  Outcome outcome = decode(child.text);
  if (WIFSIGNALED(status)) {
    outcome.good = false;
    outcome.signal = WTERMSIG(status);
  }
  if (!ended) outcome.text = "did not end in time and was killed; " + outcome.text;
  return outcome;
}

}  // namespace

void expect(bool condition, const std::string& what, CallPlace where) {
  if (!condition) throw std::runtime_error(fmt::format("{}:{}: not as expected: {}", where.file, where.line, what));
}

std::string show(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    const Outcome& o = outcomes[r];
    text += fmt::format("rank {}: {}{} after {:.2f} s {}\n", r, o.good ? "good" : "bad",
                        o.signal != 0 ? fmt::format(", signal {}", o.signal) : "", o.seconds, o.text);
  }
  return text;
}

bool all_good(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    if (!outcome.good) return false;
  }
  return true;
}

std::vector<Outcome> run_threads(int ranks, const Body& body, const RankOptions& options) {
  const auto store = make_memory_store();
  const auto control = options.control_page ? ControlPage::in_memory(ranks) : nullptr;
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        outcomes[static_cast<std::size_t>(rank)] =
            run_body(rank, body, make_spec(rank, ranks, options, store, control));
      });
    }
  }
  return outcomes;
}

std::vector<Outcome> run_processes(int ranks, const Body& body, const RankOptions& options, Duration limit) {
  const TempDir directory;
  if (options.control_page) ControlPage::create(directory / "control", ranks, options.job_id);
  std::vector<Child> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto run = [&, rank] {
      try {
        auto control = options.control_page ? ControlPage::open(directory / "control", options.job_id) : nullptr;
        return run_body(rank, body,
                        make_spec(rank, ranks, options, make_file_store(directory / "store"), std::move(control)));
      } catch (const std::exception& error) {
        Outcome outcome;
        outcome.text = error.what();
        return outcome;
      }
    };
    children.push_back(start(rank, run, children));
  }
  const Deadline deadline = Deadline::after(limit);
  std::vector<Outcome> outcomes;
  for (Child& child : children) outcomes.push_back(finish(child, deadline));
  return outcomes;
}

}  // namespace col::test
