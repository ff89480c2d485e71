#include "launch/own_ranks.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "common/command_line.hpp"
#include "common/exit_codes.hpp"
#include "common/status_line.hpp"
#include "common/unique_fd.hpp"
#include "launch/launch.hpp"

namespace col::launch {
namespace {

// The ranks inherit the end that is written to.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_NONBLOCK) != 0)
      throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  tools::UniqueFd out, in;
};

// Rank 0's verdict; nothing if it did not get that far.
std::optional<int> verdict_from(int fd) {
  unsigned char code = 0;
  if (::read(fd, &code, 1) != 1) return std::nullopt;
  return code;
}

}  // namespace

OwnResult run_own_ranks(const OwnRanks& job) {
  namespace exit_code = tools::exit_code;
  ::setenv("OMP_NUM_THREADS", "1", 0);  // no word about it: no rank computes
  JobSpec spec;
  spec.keep_fds = job.keep_fds;
  tools::Screen screen = job.screen;
  // The ranks' own standard streams go through the launcher, which passes on whole lines.
  tools::UniqueFd terminal;
  if (screen.progress_fd >= 0) {
    terminal.reset(::fcntl(screen.progress_fd, F_DUPFD, STDERR_FILENO + 1));
    screen.progress_fd = terminal.get();
    if (terminal) spec.keep_fds.push_back(terminal.get());
  }
  const Pipe verdict;
  screen.verdict_fd = verdict.in.get();
  spec.keep_fds.push_back(verdict.in.get());
  std::ranges::sort(spec.keep_fds);
  Program program{.command = {tools::own_path(), "--spawned", screen.text()}, .ranks = job.ranks};
  program.command.insert(program.command.end(), job.arguments.begin(), job.arguments.end());
  spec.programs.push_back(std::move(program));
  spec.tool = job.tool;
  spec.stdin_fd = -1;
  spec.title = job.title;

  // Never of several nodes, whatever scheduler runs this tool.
  const JobResult result = run_node(spec, Rendezvous());
  if (!result.error.empty()) {
    tools::StatusLine::clear_any(screen.progress_fd);  // of a rank that could not do it any more
    std::fprintf(stderr, "%s: %s\n", job.tool.c_str(), result.error.c_str());
  }
  const std::optional<int> found = verdict_from(verdict.out.get());
  int code = result.exit_code;
  if (code == exit_code::kSuccess)
    code = found.value_or(exit_code::kRankDied);
  else if (result.cause == EndCause::output_closed)
    code = result.error.empty() ? exit_code::kOutputClosed : exit_code::kUsage;
  else if (code > exit_code::kSignalBase)
    code = exit_code::kRankDied;
  return {code, result.signal};
}

bool leave_verdict(const tools::Screen& screen, int code) {
  const auto byte = static_cast<unsigned char>(code);
  return screen.verdict_fd >= 0 && ::write(screen.verdict_fd, &byte, 1) == 1;
}

}  // namespace col::launch
