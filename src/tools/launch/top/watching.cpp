#include "launch/top/watching.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>

#include <col/error.hpp>
#include <col/job.hpp>

#include "common/exit_codes.hpp"
#include "common/screen.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/top/live_terminal.hpp"
#include "launch/top/view.hpp"

namespace col::launch {
namespace {

// The page is there as soon as the first rank is about to be started.
constexpr std::chrono::milliseconds kPagePause{20};
// How long the view gets to give the terminal back.
constexpr std::chrono::seconds kViewEnd{2};
constexpr std::chrono::milliseconds kEndPause{5};

tools::UniqueFd unnamed_file() {
  const char* const chosen = std::getenv("TMPDIR");
  tools::UniqueFd file(
      ::open(chosen != nullptr && *chosen != '\0' ? chosen : "/tmp", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
  // Some file systems have none.
  if (!file) file.reset(::memfd_create("col-output", MFD_CLOEXEC));
  return file;
}

[[noreturn]] void show_job(const std::string& job_id, pid_t front) {
  // Whatever ends the launcher, the terminal is given back.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != front) ::_exit(0);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const JobDirectory directory(job_id);
  std::shared_ptr<ControlPage> page;
  // A launcher that has no ranks on this host has no page, but a desk. It ends this process if there never is either.
  while (!page && !AskingLauncher::can_ask(directory.path())) {
    try {
      page = ControlPage::look_at(directory.control());
    } catch (const Error&) {
      core::sleep_for(kPagePause);
    }
  }
  try {
    run_view({.tool = "colrun", .job = {job_id, directory.path(), page}, .style = tools::Screen::own().style()});
  } catch (const std::exception&) {  // the job goes on without it
  }
  ::_exit(0);
}

}  // namespace

Watching::Watching(JobSpec& spec) : out_(spec.stdout_fd) {
  if (spec.stdout_fd != STDOUT_FILENO || !is_live_terminal())
    throw LaunchError(tools::exit_code::kUsage,
                      "--watch shows a live view, and stdin and stdout are no terminal that could; leave it out, and "
                      "look with coljob top");
  file_ = unnamed_file();
  if (!file_ || ::tcgetattr(STDIN_FILENO, &before_) != 0)
    throw LaunchError(tools::exit_code::kLauncher, "--watch: cannot make a file for the ranks' output: {}",
                      strerror(errno));
  spec.stdout_fd = file_.get();
  if (::isatty(spec.stderr_fd) == 1) spec.stderr_fd = file_.get();
  if (::isatty(spec.stdin_fd) == 1) spec.stdin_fd = -1;
}

void Watching::start(const std::string& job_id, int lifeline) {
  const pid_t front = ::getpid();
  view_ = ::fork();
  if (view_ == 0) {
    ::close(lifeline);
    show_job(job_id, front);
  }
  if (view_ < 0) view_ = 0;  // the job runs; its output is shown
}

void Watching::work() {
  int wait_status = 0;
  if (is_shown() && ::waitpid(view_, &wait_status, WNOHANG) == view_) {
    view_ = 0;
    if (WIFSIGNALED(wait_status)) restore_terminal(before_);
  }
  if (!is_shown()) pass_output();
}

void Watching::finish() {
  if (is_shown()) ::kill(view_, SIGTERM);
  const auto latest = core::Clock::now() + kViewEnd;
  for (work(); is_shown(); work()) {
    if (core::Clock::now() > latest) ::kill(view_, SIGKILL);
    core::sleep_for(kEndPause);
  }
}

void Watching::pass_output() {
  std::array<char, 64 * 1024> part;
  for (;;) {
    const ssize_t count = ::pread(file_.get(), part.data(), part.size(), passed_);
    if (count <= 0) return;
    for (ssize_t done = 0; done < count;) {
      const ssize_t written = ::write(out_, part.data() + done, static_cast<std::size_t>(count - done));
      if (written < 0 && errno == EAGAIN) {
        pollfd writable{out_, POLLOUT, 0};
        core::poll_for({&writable, 1}, Deadline::kMaxBudget);
        continue;
      }
      if (written < 0 && errno != EINTR) return;  // the terminal has gone
      done += std::max<ssize_t>(written, 0);
    }
    passed_ += count;
    // What has been passed takes no more room. No harm where the file system cannot.
    static_cast<void>(::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, passed_));
  }
}

}  // namespace col::launch
