#include "launch/watcher.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/job.hpp>

#include "common/exit_codes.hpp"
#include "launch/environment.hpp"
#include "launch/launch_error.hpp"
#include "launch/processes.hpp"
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

std::shared_ptr<ControlPage> make_page(const WatcherParts& parts) {
  try {
    return ControlPage::create(parts.directory.control(), parts.spec.ranks, parts.job_id);
  } catch (const Error& error) {
    // What libcol advises behind its last semicolon is for programs that choose the file themselves.
    const std::string& message = error.message();
    throw LaunchError(tools::exit_code::kLauncher,
                      message.substr(0, message.rfind(';')) + "; set TMPDIR to a directory with space");
  }
}

JobResult run_job(const WatcherParts& parts) {
  parts.directory.create();
  const std::shared_ptr<ControlPage> page = make_page(parts);
  Environment environment(::environ, parts.spec.ranks, usable_cpus(), pick_free_port(), parts.job_id, parts.directory);
  Supervisor supervisor({.spec = parts.spec,
                         .program = parts.program,
                         .directory = parts.directory,
                         .environment = environment,
                         .page = *page,
                         .signals = parts.signals,
                         .lifeline = parts.lifeline});
  return supervisor.run();
}

JobResult failed(int exit_code, std::string error) {
  JobResult result;
  result.exit_code = exit_code;
  result.error = std::move(error);
  return result;
}

}  // namespace

void watch_job(const WatcherParts& parts) {
  ::setsid();  // a terminal's signals are for the front alone
  take_own_name(parts.spec.title);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  ::fcntl(parts.lifeline, F_SETFL, O_NONBLOCK);

  JobResult result;
  try {
    result = run_job(parts);
  } catch (const LaunchError& error) {
    result = failed(error.exit_code(), error.what());
  } catch (const Error& error) {
    result = failed(tools::exit_code::kLauncher,
                    fmt::format("cannot set up the job in {}: {}", parts.directory.path(), error.message()));
  } catch (const std::exception& error) {
    result = failed(tools::exit_code::kLauncher, fmt::format("the launcher failed: {}", error.what()));
  }
  // Whatever went wrong above, nothing of the job outlives this.
  if (!has_no_children()) kill_children(0, Ending::Clock::now() + Ending::kKillWait);
  if (!parts.directory.remove() && result.error.empty()) {
    result.error = fmt::format("cannot remove the job directory {}; remove it by hand", parts.directory.path());
  }
  parts.report.publish(result);
  ::_exit(0);
}

}  // namespace col::launch
