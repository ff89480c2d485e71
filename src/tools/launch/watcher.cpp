#include "launch/watcher.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <new>

#include <fmt/format.h>
#include <col/error.hpp>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/processes.hpp"
#include "launch/supervise/supervisor.hpp"

namespace col::launch {
namespace {

constexpr std::string_view kName = "col-watcher";

// Another name than the launcher's, so that `pkill colrun` does not take the one that cleans up after it.
void take_own_name(std::span<char> title) {
  ::prctl(PR_SET_NAME, kName.data());
  std::fill(title.begin(), title.end(), '\0');
  if (!title.empty()) kName.copy(title.data(), title.size() - 1);
}

}  // namespace

struct SharedReport::Header {
  std::atomic<bool> complete;  // release by publish, acquire by read: the data after it is complete
  int exit_code;
  int signal;
  EndCause cause;
  int culprit;
  std::size_t error_bytes;
  char error[1024];
};

SharedReport::SharedReport() {
  void* memory = ::mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw LaunchError(tools::exit_code::kLauncher, "cannot get shared memory: {}", strerror(errno));
  header_ = new (memory) Header{};
}

SharedReport::~SharedReport() {
  ::munmap(header_, sizeof(Header));
}

void SharedReport::publish(const JobResult& result) noexcept {
  header_->exit_code = result.exit_code;
  header_->signal = result.signal;
  header_->cause = result.cause;
  header_->culprit = result.culprit;
  header_->error_bytes = result.error.copy(header_->error, sizeof header_->error);
  header_->complete.store(true, std::memory_order_release);
}

bool SharedReport::read(JobResult& result) const {
  if (!header_->complete.load(std::memory_order_acquire)) return false;
  result.exit_code = header_->exit_code;
  result.signal = header_->signal;
  result.cause = header_->cause;
  result.culprit = header_->culprit;
  result.error.assign(header_->error, header_->error_bytes);
  return true;
}

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
    result = launcher_failure(error.exit_code(), error.what());
  } catch (const Error& error) {
    result = launcher_failure(tools::exit_code::kLauncher, fmt::format("cannot set up the job: {}", error.message()));
  } catch (const std::exception& error) {
    result = launcher_failure(tools::exit_code::kLauncher, fmt::format("the launcher failed: {}", error.what()));
  }
  // Whatever went wrong above, nothing of the job outlives this.
  if (!has_no_children()) kill_children(0, Ending::Clock::now() + Ending::kKillWait);
  parts.report.publish(result);
  ::_exit(0);
}

}  // namespace col::launch
