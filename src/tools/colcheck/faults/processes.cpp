#include "colcheck/faults/processes.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "launch/job/small_file.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/processes/program.hpp"
#include "launch/processes/signals.hpp"

namespace col::colcheck {
namespace {

[[noreturn]] void throw_error(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

// ---- Processes

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// As long as it lives, this thread takes no signal: a child that has not executed its program yet uses this memory.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

// ---- A private /dev/shm

// Made before the holder is, which may only make system calls.
struct HolderPlan {
  std::string users, groups, options;
  int status_fd;
  pid_t parent;
};

bool write_file(const char* path, std::string_view text) {
  const tools::UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool make_namespaces(const HolderPlan& plan) {
  if (::unshare(CLONE_NEWNS) == 0) return true;
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_file("/proc/self/uid_map", plan.users) &&
         write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", plan.groups);
}

// Says 0 when it is ready, or else the error.
[[noreturn]] void hold(const HolderPlan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(0);
  const bool good = make_namespaces(plan) && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                    ::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, plan.options.c_str()) == 0;
  const int error = good ? 0 : errno != 0 ? errno : EPERM;
  if (::write(plan.status_fd, &error, sizeof error) != static_cast<ssize_t>(sizeof error)) ::_exit(1);
  // The namespace change has cleared it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (good) core::sleep_for(Deadline::kMaxBudget);
  ::_exit(0);
}

constexpr const char* kCannotMount = "cannot mount a /dev/shm of one's own";

// ---- Traces

constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kPause = std::chrono::milliseconds(5);
// How the library calls what it puts into /dev/shm.
constexpr std::string_view kShmPrefix = "col-";

std::vector<std::string> names_in(const std::string& directory) {
  return launch::names_in(directory).value_or(std::vector<std::string>());
}

using Found = std::vector<std::string>;  // in words

// Within execve() a process has neither environment nor arguments for a moment, so nobody can tell whose it is. A
// process of the kernel and one that has ended have no program either.
bool is_changing_program(const std::string& process) {
  std::error_code none;
  return launch::read_small_file(process + "/environ").value_or("-").empty() &&
         launch::read_small_file(process + "/cmdline").value_or("-").empty() &&
         !std::filesystem::read_symlink(process + "/exe", none).empty();
}

void find_processes(const std::string& job_id, Found& found) {
  const std::string mark = "COL_JOB_ID=" + job_id;
  for (const std::string& name : names_in("/proc")) {
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    const std::string process = "/proc/" + name;
    const std::string environment = launch::read_small_file(process + "/environ").value_or("");
    if (environment.find(mark) != std::string::npos || is_changing_program(process))
      found.push_back(fmt::format("process {}", name));
  }
}

// Not what a process has open: a process of this job is found as such, and a file of another job is no trace of it.
void find_shm(const Traces& traces, Found& found) {
  // File times come from a coarser clock.
  const auto since = std::chrono::system_clock::to_time_t(traces.started - kPatience);
  for (const std::string& name : names_in(traces.shm_directory)) {
    struct stat status {};
    const std::string path = traces.shm_directory + "/" + name;
    if (!name.starts_with(kShmPrefix) || ::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (status.st_uid != ::geteuid() || status.st_mtim.tv_sec < since || launch::is_in_use(path)) continue;
    found.push_back(fmt::format("/dev/shm/{}", name));
  }
}

void find_files(const Traces& traces, Found& found) {
  for (const std::string& name : names_in(traces.scratch_directory)) found.push_back(fmt::format("$TMPDIR/{}", name));
  const std::filesystem::path own(traces.job_directory);
  for (const std::string& name : names_in(own.parent_path())) {
    if (name != own.filename() && name.find(traces.job_id) != std::string::npos)
      found.push_back(own.parent_path() / name);
  }
}

Found all_of(const Traces& traces) {
  Found found;
  find_processes(traces.job_id, found);
  find_shm(traces, found);
  find_files(traces, found);
  return found;
}

}  // namespace

Process::Process(std::vector<std::string> command, std::vector<std::string> environment, int stdin_fd, int output_fd) {
  const std::vector<int> changed = launch::changed_signals();
  rlimit open_files{};
  ::getrlimit(RLIMIT_NOFILE, &open_files);
  launch::SpawnResult child;
  {
    const NoSignals no_signals;
    child = launch::spawn({.path = command.front().c_str(),
                           .arguments = pointers(command).data(),
                           .environment = pointers(environment).data(),
                           .descriptors = {stdin_fd, output_fd, output_fd},
                           .keep_fds = {},
                           .open_files = open_files,
                           .changed_signals = changed,
                           .core_dumps = false});
  }
  if (child.fork_error != 0) throw_error(child.fork_error, "cannot start a process");
  if (child.exec_error != 0) {
    ending_ = Ending{.exit_code = 127};
    why_not_executed_ =
        fmt::format("cannot execute the program: {}\n", std::generic_category().message(child.exec_error));
    return;
  }
  pid_ = child.pid;
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Process::~Process() {
  if (try_end()) return;
  signal(SIGKILL);
  // Only a process that is stuck in the kernel takes longer; it is left to init.
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  pollfd end{pidfd_.get(), POLLIN, 0};
  while (!try_end() && !deadline.expired()) core::poll_for({&end, 1}, longest_nap().value_or(deadline.remaining()));
}

const std::optional<Ending>& Process::try_end() {
  if (ending_) return ending_;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return ending_;
  ending_ = info.si_code == CLD_EXITED ? Ending{info.si_status, 0} : Ending{-1, info.si_status};
  return ending_;
}

bool Process::stopped() const {
  siginfo_t info{};
  return running() && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

void Process::signal(int number) const {
  if (running()) ::kill(pid_, number);  // not reaped, so the pid is its own
}

PrivateShm::PrivateShm(std::size_t bytes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_error(errno, kCannotMount);
  const tools::UniqueFd reading(ends[0]);
  tools::UniqueFd writing(ends[1]);
  const HolderPlan plan{fmt::format("{0} {0} 1", ::geteuid()), fmt::format("{0} {0} 1", ::getegid()),
                        fmt::format("size={},mode=1777", bytes), writing.get(), ::getpid()};
  holder_ = ::fork();
  if (holder_ == 0) hold(plan);
  if (holder_ < 0) throw_error(errno, kCannotMount);
  writing.reset();
  int error = 0;
  constexpr std::chrono::seconds kPatienceWithHolder{10};
  pollfd ready{reading.get(), POLLIN, 0};
  const bool told = core::poll_for({&ready, 1}, kPatienceWithHolder) == 1 &&
                    ::read(reading.get(), &error, sizeof error) == static_cast<ssize_t>(sizeof error);
  if (told && error == 0) return;
  end();
  throw_error(told ? error : ETIMEDOUT, kCannotMount);
}

PrivateShm::~PrivateShm() {
  end();
}

void PrivateShm::end() noexcept {
  ::kill(holder_, SIGKILL);
  while (::waitpid(holder_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string PrivateShm::path() const {
  return fmt::format("/proc/{}/root/dev/shm", holder_);
}

// As the holder, root needs no user namespace.
void enter_private_shm(pid_t holder) {
  const auto open_namespace = [&](const char* kind) {
    return tools::UniqueFd(::open(fmt::format("/proc/{}/ns/{}", holder, kind).c_str(), O_RDONLY | O_CLOEXEC));
  };
  const pid_t parent = ::getppid();
  const tools::UniqueFd users = open_namespace("user"), mounts = open_namespace("mnt");
  if (::setns(mounts.get(), CLONE_NEWNS) != 0 &&
      (::setns(users.get(), CLONE_NEWUSER) != 0 || ::setns(mounts.get(), CLONE_NEWNS) != 0))
    throw_error(errno, "cannot enter a mount namespace");
  // The namespace change may have cleared it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
}

void refuse_memfd() {
#ifdef __aarch64__
  constexpr unsigned kOwnArchitecture = AUDIT_ARCH_AARCH64;
#else
  constexpr unsigned kOwnArchitecture = AUDIT_ARCH_X86_64;
#endif
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOwnArchitecture, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    throw_error(errno, "cannot filter system calls");
}

// The kernel tells nobody when the last trace is gone, and jobs of others come and go in /dev/shm too: so what counts
// is what is there at every look for a while.
std::string leftover(const Traces& traces) {
  Found left = all_of(traces);
  for (const Deadline deadline = Deadline::after(kPatience); !left.empty() && !deadline.expired();) {
    core::sleep_for(kPause);
    const Found now = all_of(traces);
    std::erase_if(left,
                  [&](const std::string& trace) { return std::find(now.begin(), now.end(), trace) == now.end(); });
  }
  return left.empty() ? std::string() : left.front();
}

}  // namespace col::colcheck
