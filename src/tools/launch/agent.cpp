#include "launch/launch.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/agent_job.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/processes/events.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

constexpr std::chrono::seconds kJobTime{60};

struct Beginning {
  AgentJob job;
  std::string rest;  // that came with it
};

Beginning read_job() {
  const auto latest = core::Clock::now() + kJobTime;
  std::string begun;
  for (;;) {
    if (const auto size = agent_job_size(begun))
      return {parse_agent_job(std::string_view(begun).substr(0, *size)), begun.substr(*size)};
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (core::poll_for({&input, 1}, latest - core::Clock::now()) == 0)
      throw LaunchError(kLauncher, "no job came on stdin within {} s", kJobTime.count());
    char buffer[64 * 1024];
    const ssize_t length = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) throw LaunchError(kLauncher, "stdin ended before a job came; --agent is for colrun itself");
    begun.append(buffer, static_cast<std::size_t>(length));
  }
}

void enter(const std::string& directory) {
  std::error_code failed;
  std::filesystem::current_path(directory, failed);
  if (failed)
    throw LaunchError(kLauncher,
                      "cannot enter the directory {} ({}); the job was started there, and its ranks on "
                      "other hosts start in the same one: make it, or start the job elsewhere",
                      directory, failed.message());
}

}  // namespace

int run_agent(std::span<char> title) {
  ensure_standard_descriptors();
  Beginning beginning = read_job();
  AgentJob& job = beginning.job;
  enter(job.directory);
  for (const std::string& assignment : job.environment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) continue;
    ::setenv(assignment.substr(0, equals).c_str(), assignment.c_str() + equals + 1, 1);
  }
  job.spec.title = title;
  ::signal(SIGPIPE, SIG_IGN);
  const bool has_input = job.spec.input.to != InputSpec::To::none;
  HeadLink head(STDIN_FILENO, std::move(beginning.rest), has_input);
  job.spec.stdin_fd = head.ranks_end();
  const JobResult result = run_node(job.spec, job.rendezvous, &head);
  // If another node is the reason, it is reported there.
  const bool own = result.cause == EndCause::launcher_failed || result.cause == EndCause::node_lost;
  if (!result.error.empty() && own) std::fprintf(stderr, "%s: %s\n", job.spec.tool.c_str(), result.error.c_str());
  return result.exit_code;
}

}  // namespace col::launch
