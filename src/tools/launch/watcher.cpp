#include "launch/watcher.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/processes.hpp"
#include "launch/supervise.hpp"

namespace col::launch {
namespace {

constexpr std::string_view kName = "col-watcher";

// Another name than the launcher's, so that `pkill colrun` does not take the one that cleans up after it.
void take_own_name(std::span<char> title) {
  ::prctl(PR_SET_NAME, kName.data());
  std::fill(title.begin(), title.end(), '\0');
  if (!title.empty()) kName.copy(title.data(), title.size() - 1);
}

JobResult failed(int exit_code, std::string error) {
  JobResult result;
  result.exit_code = exit_code;
  result.cause = EndCause::launcher_failed;
  result.error = std::move(error);
  return result;
}

}  // namespace

void watch_job(const WatcherParts& parts) {
  ::setsid();  // a terminal's signals are for the front alone
  take_own_name(parts.job.spec.title);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  ::fcntl(parts.job.lifeline, F_SETFL, O_NONBLOCK);

  JobResult result;
  try {
    Supervisor supervisor(parts.job);
    result = supervisor.run();
  } catch (const LaunchError& error) {
    result = failed(error.exit_code(), error.what());
  } catch (const Error& error) {
    result = failed(tools::exit_code::kLauncher, fmt::format("cannot set up the job: {}", error.message()));
  } catch (const std::exception& error) {
    result = failed(tools::exit_code::kLauncher, fmt::format("the launcher failed: {}", error.what()));
  }
  // Whatever went wrong above, nothing of the job outlives this.
  if (!has_no_children()) kill_children(0, Ending::Clock::now() + Ending::kKillWait);
  parts.report.publish(result);
  ::_exit(0);
}

}  // namespace col::launch
