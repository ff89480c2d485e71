#include "launch/nodes/remotes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/command_line.hpp"
#include "common/exit_codes.hpp"
#include "common/text.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/agent_job.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/processes/events.hpp"
#include "launch/processes/limits.hpp"
#include "launch/processes/program.hpp"
#include "launch/processes/signals.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

constexpr int kNoColrun = 254;                           // of remote_command()
constexpr int kSshFailed = 255;                          // ssh's own exit code
constexpr std::size_t kOfSource = std::size_t{1} << 31;  // in an event's index: of where a host's input comes from

// For the launcher of an ssh that may have gone to the background, to join the job.
constexpr std::chrono::seconds kBackgroundTime{5};

// These exit codes are for the ranks' program, and a missing ssh is not its fault.
std::string resolve_ssh(const std::string& name) {
  try {
    return resolve_program(name);
  } catch (const LaunchError& error) {
    throw LaunchError(kLauncher, "hosts are reached by ssh (--ssh): {}", error.what());
  }
}

Unreachable failure(std::string what, int exit_code = kLauncher) {
  return {.what = std::move(what), .exit_code = exit_code};
}

Unreachable describe_failure(const std::string& host, const std::string& ssh, int code, bool is_read = false) {
  if (code == tools::exit_code::kSuccess && is_read)
    return failure(
        fmt::format("host {}: its ssh went to the background, and no colrun came from there within {} s; its input "
                    "is still read. `{} {} echo here` must print 'here' at once; look at what it leaves running",
                    host, kBackgroundTime.count(), ssh, host));
  if (code == tools::exit_code::kSuccess)
    return failure(
        fmt::format("host {}: its ssh ended with 0 and started nothing there. `{} {} echo here` must print 'here'; "
                    "look for an `exit` in .bashrc, a command forced by authorized_keys, or -f in --ssh",
                    host, ssh, host));
  if (code == kSshFailed)
    return failure(
        fmt::format("cannot reach host {} by ssh; what ssh said is above. `ssh -o BatchMode=yes {} true` must "
                    "work, without a question",
                    host, host));
  if (code == kNoColrun)
    return failure(
        fmt::format("host {} has no colrun at {} nor in its PATH; install it there", host, tools::own_path()));
  if (code == tools::exit_code::kNotFound || code == tools::exit_code::kNotExecutable)
    return failure(fmt::format("host {} cannot run the program; what its colrun said is above", host), code);
  return failure(fmt::format("colrun on host {} ended before the job began; what it said is above", host));
}

std::vector<std::string> ssh_command(const std::vector<std::string>& ssh, const HostSpec& host) {
  std::vector<std::string> command = ssh;
  if (std::filesystem::path(ssh.front()).filename() == "ssh") {
    // Nobody is there to answer questions, and a host that is down is to be told soon.
    command.insert(command.end(),
                   {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=2", "-o",
                    "ServerAliveCountMax=3",
                    // A connection for later use would be a process of the job's, and end with its ranks.
                    "-o", "ControlMaster=no", "-o", "ControlPersist=no"});
  }
  command.push_back(host.name);
  command.push_back(remote_command(tools::own_path()));
  return command;
}

}  // namespace

std::string remote_command(const std::string& own_path) {
  const std::string colrun = tools::shell_quoted(own_path);
  // By sh, as the user's own shell may be another kind.
  return "exec sh -c " +
         tools::shell_quoted(fmt::format(
             "[ -x {0} ] && exec {0} --agent; command -v colrun >/dev/null && exec colrun --agent; exit {1}", colrun,
             kNoColrun));
}

Remotes::Remotes(Events& events, Output& output)
    : events_(events, [this](std::size_t index) { on_event(index); }), output_(output) {}

void Remotes::start(const JobSpec& spec, const Rendezvous& meeting, int port) {
  const std::string program = resolve_ssh(spec.nodes.ssh.front());
  ssh_ = fmt::format("{}", fmt::join(spec.nodes.ssh, " "));
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const std::vector<int> changed = changed_signals();
  for (const HostSpec& host : meeting.remotes) {
    PipeEnds input = make_input_pipe();
    std::vector<std::string> command = ssh_command(spec.nodes.ssh, host);
    const std::vector<char*> arguments = pointers_to(command);
    PipeEnds out = make_output_pipe();
    PipeEnds err = make_output_pipe();
    const SpawnResult child = spawn(
        {.path = program.c_str(),
         .arguments = arguments.data(),
         .environment = ::environ,
         .descriptors = {.stdin_fd = input.read.get(), .stdout_fd = out.write.get(), .stderr_fd = err.write.get()},
         .keep_fds = {},
         .open_files = files,
         .changed_signals = changed});
    if (child.exec_error != 0 || child.fork_error != 0)
      throw LaunchError(
          kLauncher, "cannot start {} for host {}: {}", program, host.name,
          child.exec_error != 0
              ? strerror(child.exec_error)
              : why_no_process(child.fork_error, static_cast<int>(meeting.remotes.size() - remotes_.size())));
    output_.add_raw(Output::Stream::out, std::move(out.read));
    output_.add_raw(Output::Stream::err, std::move(err.read));
    Remote remote{.host = host.name,
                  .node_rank = host.node_rank,
                  .pid = child.pid,
                  .input = std::move(input.write),
                  .unsent = agent_job_bytes(spec, meeting, host, port),
                  .source = {}};
    events_.add(remote.input.get(), EPOLLOUT | EPOLLET, remotes_.size());
    remotes_.push_back(std::move(remote));
    pump(remotes_.back());
  }
}

void Remotes::give_input(std::size_t host, tools::UniqueFd input) {
  Remote& remote = remotes_[host];
  ::fcntl(input.get(), F_SETFL, O_NONBLOCK);
  if (!events_.add(input.get(), EPOLLIN | EPOLLET, kOfSource | host))
    throw LaunchError(kLauncher, "cannot watch the input for host {}: {}", remote.host, strerror(errno));
  remote.source = std::move(input);
  pump(remote);
}

// One frame is read when the one before it is sent.
void Remotes::pump(Remote& remote) {
  while (write(remote) && read(remote)) continue;
}

// Returns whether all is sent.
bool Remotes::write(Remote& remote) {
  while (remote.input && remote.sent < remote.unsent.size()) {
    const ssize_t written =
        ::write(remote.input.get(), remote.unsent.data() + remote.sent, remote.unsent.size() - remote.sent);
    if (written >= 0) {
      remote.sent += static_cast<std::size_t>(written);
      remote.written += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {
      return false;
    } else if (errno != EINTR) {
      end_input(remote);  // it has ended; its status says more
    }
  }
  return bool(remote.input);
}

// Returns whether there is something new to send.
bool Remotes::read(Remote& remote) {
  if (!remote.source) return false;
  remote.unsent.resize(frames::kHeadBytes + kMaxInputBytes);
  ssize_t length = 0;
  do {
    length = ::read(remote.source.get(), remote.unsent.data() + frames::kHeadBytes, kMaxInputBytes);
  } while (length < 0 && errno == EINTR);
  remote.sent = 0;
  if (length < 0 && errno == EAGAIN) {
    remote.unsent.clear();
    return false;
  }
  const std::size_t bytes = length > 0 ? static_cast<std::size_t>(length) : 0;
  if (bytes == 0) remote.source.reset();
  frames::put_head(remote.unsent, bytes);
  remote.unsent.resize(frames::kHeadBytes + bytes);
  return true;
}

void Remotes::end_input(Remote& remote) {
  int unread = 0;
  if (remote.input && ::ioctl(remote.input.get(), FIONREAD, &unread) == 0)
    remote.was_read = static_cast<std::size_t>(unread) < remote.written;
  remote.input.reset();
  remote.source.reset();
}

// Nothing else tells whether an ssh that has ended goes on in the background.
void Remotes::look_for_reader(Remote& remote) {
  pollfd input{remote.input.get(), 0, 0};
  if (remote.pid == 0 && core::poll_for({&input, 1}, Duration::zero()) > 0 && (input.revents & POLLERR) != 0)
    end_input(remote);
}

void Remotes::on_event(std::size_t index) {
  const std::size_t host = index & ~kOfSource;
  if (host >= remotes_.size()) return;
  pump(remotes_[host]);
  look_for_reader(remotes_[host]);
}

void Remotes::on_child_end(pid_t pid, int wait_status) {
  for (Remote& remote : remotes_) {
    if (remote.pid != pid) continue;
    remote.pid = 0;
    if (wait_status == 0) {
      look_for_reader(remote);
      if (!over_) remote.awaited_until = core::Clock::now() + kBackgroundTime;
      return;
    }
    end_input(remote);
    if (over_) return;
    failures_.push_back(describe_failure(remote.host, ssh_, WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1));
  }
}

std::vector<Unreachable> Remotes::take_failures(Time now) {
  for (Remote& remote : remotes_) {
    const bool may_come = remote.input || remote.was_read;
    if (!remote.awaited_until || (may_come && now < *remote.awaited_until)) continue;
    remote.awaited_until.reset();
    failures_.push_back(describe_failure(remote.host, ssh_, tools::exit_code::kSuccess, bool(remote.input)));
    failures_.back().unless_came = remote.node_rank;
  }
  return std::exchange(failures_, {});
}

std::optional<Remotes::Time> Remotes::deadline() const {
  std::optional<Time> first;
  for (const Remote& remote : remotes_) {
    if (remote.awaited_until) first = std::min(first.value_or(*remote.awaited_until), *remote.awaited_until);
  }
  return first;
}

bool Remotes::any_left() const {
  return std::ranges::any_of(remotes_, [](const Remote& remote) { return remote.pid != 0; });
}

void Remotes::let_go() {
  over_ = true;
  for (Remote& remote : remotes_) {
    end_input(remote);
    remote.awaited_until.reset();
  }
}

}  // namespace col::launch
