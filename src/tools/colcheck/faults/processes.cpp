#include "colcheck/faults/processes.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <col/job.hpp>

#include "common/text.hpp"
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
                           .arguments = launch::pointers_to(command).data(),
                           .environment = launch::pointers_to(environment).data(),
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
  while (!try_end() && !deadline.expired()) core::poll_for({&end, 1}, longest_nap());
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
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_error(errno, "cannot make a pipe");
  const tools::UniqueFd reading(ends[0]), nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  tools::UniqueFd writing(ends[1]);
  std::vector<std::string> command = {launch::resolve_program("unshare"), "--mount"};
  if (::geteuid() != 0) command.emplace_back("--map-root-user");
  command.insert(command.end(), {"sh", "-c",
                                 fmt::format("mount -t tmpfs -o size={},mode=1777 tmpfs /dev/shm && echo ready && "
                                             "exec sleep 1h",
                                             bytes)});
  const char* const path = std::getenv("PATH");
  holder_.emplace(std::move(command), std::vector{fmt::format("PATH={}", path != nullptr ? path : "/usr/bin:/bin")},
                  nothing.get(), writing.get());
  writing.reset();
  constexpr std::chrono::seconds kPatienceWithHolder{10};
  pollfd ready{reading.get(), POLLIN, 0};
  std::array<char, 200> said{};
  if (core::poll_for({&ready, 1}, kPatienceWithHolder) == 1 &&
      ::read(reading.get(), said.data(), said.size() - 1) >= 0 && std::string_view(said.data()) == "ready\n")
    return;
  throw std::runtime_error(fmt::format("cannot mount a /dev/shm of one's own: {}", tools::one_line(said.data())));
}

// As the holder, root needs no user namespace.
std::vector<std::string> PrivateShm::entering() const {
  std::vector<std::string> command = {launch::resolve_program("nsenter"), "--mount"};
  if (::geteuid() != 0) command.insert(command.end(), {"--user", "--preserve-credentials"});
  command.insert(command.end(), {"--target", std::to_string(holder_->pid()), "--"});
  return command;
}

std::string PrivateShm::path() const {
  return fmt::format("/proc/{}/root/dev/shm", holder_->pid());
}

int filter_calls(unsigned number, unsigned action, unsigned flags) {
#ifdef __aarch64__
  constexpr unsigned kOwnArchitecture = AUDIT_ARCH_AARCH64;
#else
  constexpr unsigned kOwnArchitecture = AUDIT_ARCH_X86_64;
#endif
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kOwnArchitecture, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, action),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
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
