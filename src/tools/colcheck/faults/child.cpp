#include "colcheck/faults/child.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <system_error>

#include <col/job.hpp>

namespace col::colcheck {
namespace {

constexpr int kFirstOther = 4;  // the lowest descriptor that the child does not get

#ifdef __aarch64__
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#endif

// Everything that the child needs, made before it exists: it may only make system calls until it has become another
// program, as threads of this process may have held locks.
struct Plan {
  const ChildSpec& spec;
  int null_fd;
  pid_t parent;
  std::vector<char*> arguments, environment;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

[[noreturn]] void give_up(const char* what) {
  const char* const why = ::strerrordesc_np(errno);
  for (const char* part : {"cannot ", what, ": ", why != nullptr ? why : "?", "\n"}) {
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  ::_exit(127);
}

bool refuse_memfd() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof filter / sizeof filter[0], filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void reset_signals() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Out of the way of the numbers that are wanted.
int moved(int fd) {
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstOther + 4);
  if (high < 0) give_up("move a descriptor");
  return high;
}

[[noreturn]] void become(const Plan& plan) {
  const ChildSpec& spec = plan.spec;
  ::setpgid(0, 0);
  const int null = moved(plan.null_fd), output = moved(spec.output_fd), talk = moved(spec.talk_fd);
  if (::dup2(output, STDERR_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0) ::_exit(127);
  if (spec.user_namespace >= 0 && ::setns(spec.user_namespace, CLONE_NEWUSER) != 0) give_up("enter a user namespace");
  if (spec.mount_namespace >= 0 && ::setns(spec.mount_namespace, CLONE_NEWNS) != 0) give_up("enter a mount namespace");
  if (::dup2(null, STDIN_FILENO) < 0 || ::dup2(talk, kFirstOther - 1) < 0) give_up("place a descriptor");
  ::close_range(kFirstOther, ~0U, 0);
  // A change of user namespace clears it, so not before.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(127);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  reset_signals();
  if (spec.without_memfd && !refuse_memfd()) give_up("filter system calls");
  ::execve(spec.program.c_str(), plan.arguments.data(), plan.environment.data());
  give_up("execute the program");
}

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Child::Child(const ChildSpec& spec) {
  const tools::UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) throw_errno("/dev/null");
  std::vector<std::string> arguments = {spec.program};
  arguments.insert(arguments.end(), spec.arguments.begin(), spec.arguments.end());
  const Plan plan{spec, null.get(), ::getpid(), pointers(arguments), pointers(spec.environment)};
  pid_ = ::fork();
  if (pid_ == 0) become(plan);
  if (pid_ < 0) throw_errno("cannot start a process");
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

Child::~Child() {
  if (try_end()) return;
  signal(SIGKILL);
  // Only a process that is stuck in the kernel takes longer; it is left to init.
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  pollfd end{pidfd_.get(), POLLIN, 0};
  while (!try_end() && !deadline.expired()) ::poll(&end, 1, longest_nap_ms().value_or(100));
}

const std::optional<Ending>& Child::try_end() {
  if (ending_) return ending_;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return ending_;
  ending_ = info.si_code == CLD_EXITED ? Ending{info.si_status, 0} : Ending{-1, info.si_status};
  return ending_;
}

bool Child::stopped() const {
  siginfo_t info{};
  return running() && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

void Child::signal(int number) const {
  if (running()) ::kill(pid_, number);  // not reaped, so the pid is its own
}

}  // namespace col::colcheck
