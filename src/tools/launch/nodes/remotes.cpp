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
#include "launch/launch_error.hpp"
#include "launch/nodes/agent_job.hpp"
#include "launch/processes/descriptors.hpp"
#include "launch/processes/program.hpp"
#include "launch/processes/spawn.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

constexpr int kSshFailed = 255;  // ssh's own exit code

// Quoted for a POSIX shell.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'')
      result += "'\\''";
    else
      result += letter;
  }
  return result + "'";
}

std::vector<std::string> ssh_command(const std::vector<std::string>& ssh, const HostSpec& host) {
  std::vector<std::string> command = ssh;
  if (std::filesystem::path(ssh.front()).filename() == "ssh") {
    // Nobody is there to answer questions, and a host that is down is to be told soon.
    command.insert(command.end(), {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                                   "ServerAliveInterval=2", "-o", "ServerAliveCountMax=3"});
  }
  command.push_back(host.name);
  command.push_back(remote_command(tools::own_path()));
  return command;
}

}  // namespace

std::string remote_command(const std::string& own_path) {
  return fmt::format("[ -x {0} ] && exec {0} --agent; exec colrun --agent", quoted(own_path));
}

Remotes::Remotes(int epoll_fd, std::uint64_t tag, Output& output) : epoll_fd_(epoll_fd), tag_(tag), output_(output) {}

void Remotes::start(const JobSpec& spec, const Rendezvous& meeting, int port) {
  const std::string program = resolve_program(spec.nodes.ssh.front());
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  for (const HostSpec& host : meeting.remotes) {
    PipeEnds input = make_input_pipe();
    const std::vector<std::string> command = ssh_command(spec.nodes.ssh, host);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    PipeEnds out = make_output_pipe();
    PipeEnds err = make_output_pipe();
    const SpawnResult child = spawn(
        {.path = program.c_str(),
         .arguments = arguments.data(),
         .environment = ::environ,
         .descriptors = {.stdin_fd = input.read.get(), .stdout_fd = out.write.get(), .stderr_fd = err.write.get()},
         .keep_fds = {},
         .open_files = files,
         .ignore_hangup = false});
    if (child.exec_error != 0) refuse_program(program, child.exec_error);
    if (child.fork_error != 0)
      throw LaunchError(kLauncher,
                        fmt::format("cannot start {} for host {}: {}", program, host.name, strerror(child.fork_error)));
    output_.add_raw(Output::Stream::out, std::move(out.read));
    output_.add_raw(Output::Stream::err, std::move(err.read));
    Remote remote{.host = host.name, .pid = child.pid, .input = std::move(input.write), .unsent = {}};
    remote.unsent = agent_job_text(spec, meeting, host, port) + "\n";
    epoll_event event{};
    event.events = EPOLLOUT | EPOLLET;
    event.data.u64 = tag_ | remotes_.size();
    ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, remote.input.get(), &event);
    remotes_.push_back(std::move(remote));
    write(remotes_.back());
  }
}

void Remotes::write(Remote& remote) {
  while (remote.input && !remote.unsent.empty()) {
    const ssize_t written = ::write(remote.input.get(), remote.unsent.data(), remote.unsent.size());
    if (written >= 0) {
      remote.unsent.erase(0, static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      remote.input.reset();  // it has ended; its status says more
    }
  }
}

void Remotes::on_event(std::size_t host) {
  if (host < remotes_.size()) write(remotes_[host]);
}

void Remotes::on_child_end(pid_t pid, int wait_status) {
  for (Remote& remote : remotes_) {
    if (remote.pid != pid) continue;
    remote.pid = 0;
    remote.input.reset();
    if (over_ || wait_status == 0) return;
    const int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
    if (code == kSshFailed) {
      failures_.push_back(
          fmt::format("cannot reach host {} by ssh; what ssh said is above. Does `ssh {} true` work "
                      "without a password?",
                      remote.host, remote.host));
    } else if (code == tools::exit_code::kNotFound) {
      failures_.push_back(
          fmt::format("host {} has no colrun at {} nor in its PATH; install it there", remote.host, tools::own_path()));
    } else {
      failures_.push_back(
          fmt::format("colrun on host {} ended before the job began; what it said is above", remote.host));
    }
  }
}

std::vector<std::string> Remotes::take_failures() {
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
  for (Remote& remote : remotes_) remote.input.reset();
}

}  // namespace col::launch
