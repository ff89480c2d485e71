#include "launch/nodes/remotes.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "common/exit_codes.hpp"
#include "common/text.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/nodes/agent_job.hpp"
#include "launch/nodes/wire.hpp"
#include "launch/processes/descriptors.hpp"
#include "launch/processes/program.hpp"
#include "launch/processes/signals.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

constexpr int kNoColrun = 254;                           // of remote_command()
constexpr int kSshFailed = 255;                          // ssh's own exit code
constexpr std::size_t kOfSource = std::size_t{1} << 31;  // in an event's index: of where a host's input comes from

// These exit codes are for the ranks' program, and a missing ssh is not its fault.
std::string resolve_ssh(const std::string& name) {
  try {
    return resolve_program(name);
  } catch (const LaunchError& error) {
    throw LaunchError(kLauncher, "hosts are reached by ssh (--ssh): {}", error.what());
  }
}

Remotes::Failure describe_failure(const std::string& host, int code) {
  if (code == kSshFailed)
    return {fmt::format("cannot reach host {} by ssh; what ssh said is above. `ssh -o BatchMode=yes {} true` must "
                        "work, without a question",
                        host, host),
            kLauncher};
  if (code == kNoColrun)
    return {fmt::format("host {} has no colrun at {} nor in its PATH; install it there", host, tools::own_path()),
            kLauncher};
  if (code == tools::exit_code::kNotFound || code == tools::exit_code::kNotExecutable)
    return {fmt::format("host {} cannot run the program; what its colrun said is above", host), code};
  return {fmt::format("colrun on host {} ended before the job began; what it said is above", host), kLauncher};
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

Remotes::Remotes(int epoll_fd, std::uint64_t tag, Output& output) : epoll_fd_(epoll_fd), tag_(tag), output_(output) {}

void Remotes::start(const JobSpec& spec, const Rendezvous& meeting, int port) {
  const std::string program = resolve_ssh(spec.nodes.ssh.front());
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
    if (const int error = child.exec_error != 0 ? child.exec_error : child.fork_error; error != 0)
      throw LaunchError(kLauncher, "cannot start {} for host {}: {}", program, host.name, strerror(error));
    output_.add_raw(Output::Stream::out, std::move(out.read));
    output_.add_raw(Output::Stream::err, std::move(err.read));
    Remote remote{.host = host.name,
                  .pid = child.pid,
                  .input = std::move(input.write),
                  .unsent = agent_job_text(spec, meeting, host, port) + "\n",
                  .source = {}};
    watch(epoll_fd_, remote.input.get(), EPOLLOUT | EPOLLET, tag_ | remotes_.size());
    remotes_.push_back(std::move(remote));
    pump(remotes_.back());
  }
}

void Remotes::give_input(std::size_t host, tools::UniqueFd input) {
  Remote& remote = remotes_[host];
  ::fcntl(input.get(), F_SETFL, O_NONBLOCK);
  if (!watch(epoll_fd_, input.get(), EPOLLIN | EPOLLET, tag_ | kOfSource | host))
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
  namespace frames = input_frames;
  if (!remote.source) return false;
  remote.unsent.resize(frames::kHeadBytes + frames::kMaxBytes);
  ssize_t length = 0;
  do {
    length = ::read(remote.source.get(), remote.unsent.data() + frames::kHeadBytes, frames::kMaxBytes);
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
  remote.input.reset();
  remote.source.reset();
}

void Remotes::on_event(std::size_t index) {
  if (const std::size_t host = index & ~kOfSource; host < remotes_.size()) pump(remotes_[host]);
}

void Remotes::on_child_end(pid_t pid, int wait_status) {
  for (Remote& remote : remotes_) {
    if (remote.pid != pid) continue;
    remote.pid = 0;
    end_input(remote);
    if (over_ || wait_status == 0) return;
    failures_.push_back(describe_failure(remote.host, WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1));
  }
}

std::vector<Remotes::Failure> Remotes::take_failures() {
  return std::exchange(failures_, {});
}

std::vector<pid_t> Remotes::pids() const {
  std::vector<pid_t> pids;
  for (const Remote& remote : remotes_) {
    if (remote.pid != 0) pids.push_back(remote.pid);
  }
  return pids;
}

void Remotes::let_go() {
  over_ = true;
  for (Remote& remote : remotes_) end_input(remote);
}

}  // namespace col::launch
