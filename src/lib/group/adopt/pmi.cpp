#include "group/adopt/pmi.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/job.hpp>

#include "core/clock/clock.hpp"
#include "core/duration.hpp"
#include "net/stream.hpp"

namespace col::group::adopt {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::string_view kBarrier = "barrier_in";
constexpr std::string_view kPmiAdvice =
    "start the program with colrun, or set COL_STORE=file:///a/directory/all/ranks/share";

[[noreturn]] void refuse(int fd, const std::string& what) {
  throw Error(ErrorCode::unavailable, fmt::format("PMI_FD={}: {}; {}", fd, what, kPmiAdvice));
}

// One line without its end, for a message.
std::string printable(std::string_view line) {
  std::string text;
  for (const char c : line.substr(0, 80)) text += c >= ' ' && c <= '~' ? c : '?';
  return text;
}

// The value of `key` in "key=value key=value"; empty when it is not there.
std::string_view value_of(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const std::string_view pair = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(pair.size() + 1, line.size()));
    if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=')
      return pair.substr(key.size() + 1);
  }
  return {};
}

class Conversation {
 public:
  Conversation(int fd, Duration timeout) : fd_(fd), deadline_(Deadline::after(timeout)) {
    // What has that number may be a file of the program's own by now: nothing is written into it.
    int type = 0;
    socklen_t length = sizeof type;
    if (::getsockopt(fd_, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM)
      refuse(fd_, "is not the launcher's socket; something between mpiexec and this program has closed it");
  }

  // Sends "cmd=<command>" and returns the answer, which must be "cmd=<expected> …" without a code of failure.
  std::string ask(std::string_view command, std::string_view expected) {
    command_ = command.substr(0, command.find(' '));
    send(fmt::format("cmd={}\n", command));
    const std::string line = receive();
    const std::string_view code = value_of(line, "rc");
    if (value_of(line, "cmd") != expected || (!code.empty() && code != "0"))
      refuse(fd_, fmt::format("the launcher answers '{}' to cmd={}", printable(line), command_));
    return line;
  }

 private:
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const net::Moved moved = net::send(fd_, bytes);
      if (moved.has_ended) end("write to", moved.error);
      bytes.remove_prefix(moved.bytes);
      if (moved.bytes == 0) wait_for(POLLOUT);
    }
  }

  std::string receive() {
    std::string line;
    for (;;) {
      std::array<char, 512> buffer;
      const net::Moved moved = net::receive(fd_, buffer);
      if (moved.has_ended) end("read from", moved.error);
      if (moved.bytes == 0) wait_for(POLLIN);
      line.append(buffer.data(), moved.bytes);
      // The launcher speaks only when asked, so nothing comes behind the end of the line.
      if (const auto end = line.find('\n'); end != std::string::npos) return line.substr(0, end);
      if (line.size() > kLongestLine)
        refuse(fd_, fmt::format("the launcher answers '{}…' without an end to cmd={}", printable(line), command_));
    }
  }

  void wait_for(short events) {
    pollfd entry{fd_, events, 0};
    if (core::poll_for({&entry, 1}, deadline_.remaining()) < 0 && errno != EINTR) fail("wait for", errno);
    if (deadline_.expired() && command_ == kBarrier)
      throw Error(ErrorCode::timeout,
                  fmt::format("not all ranks have come to the launcher's barrier within {}; see whether each of them "
                              "calls col::init() and finds the same variables, or allow more time (COL_TIMEOUT)",
                              core::format_duration(deadline_.budget())));
    if (deadline_.expired())
      throw Error(
          ErrorCode::timeout,
          fmt::format("the launcher has not answered cmd={} on PMI_FD={} for {}; see whether mpiexec still runs, "
                      "or allow more time (COL_TIMEOUT)",
                      command_, fd_, core::format_duration(deadline_.budget())));
  }

  [[noreturn]] void end(std::string_view action, int error) const {
    if (error == 0 || error == EPIPE || error == ECONNRESET)
      refuse(fd_,
             "the launcher has closed it; it has ended, or another program of this rank, or MPI in this process, has "
             "used it before");
    fail(action, error);
  }
  [[noreturn]] void fail(std::string_view action, int error) const {
    throw Error(ErrorCode::io, fmt::format("cannot {} the launcher's socket PMI_FD={} ({}); {}", action, fd_,
                                           std::generic_category().message(error), kPmiAdvice));
  }

  int fd_;
  Deadline deadline_;
  std::string command_;
};

// Returns the name of the job.
std::string begin(Conversation& launcher, int fd) {
  launcher.ask("init pmi_version=1 pmi_subversion=1", "response_to_init");
  const std::string answer = launcher.ask("get_my_kvsname", "my_kvsname");
  std::string job(value_of(answer, "kvsname"));
  if (job.empty()) refuse(fd, fmt::format("the launcher answers '{}' without a name", printable(answer)));
  return job;
}

}  // namespace

std::string ask_pmi_for_job(int fd, Duration timeout) {
  Conversation launcher(fd, timeout);
  std::string job = begin(launcher, fd);
  launcher.ask("finalize", "finalize_ack");
  return job;
}

PmiJob ask_pmi_for_meeting(int fd, int rank, const std::string& host, Duration timeout) {
  if (host.empty() || host.find_first_of(" \t\n=") != std::string::npos)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}' is no host that the other ranks can connect to; set COL_RDZV_ENDPOINT=host:port on "
                            "all ranks, to the host of rank 0 and a free port there",
                            printable(host)));
  Conversation launcher(fd, timeout);
  PmiJob job{begin(launcher, fd), {}};
  constexpr std::string_view kKey = "col-rank0";
  if (rank == 0) launcher.ask(fmt::format("put kvsname={} key={} value={}", job.name, kKey, host), "put_result");
  launcher.ask(kBarrier, "barrier_out");
  const std::string answer = launcher.ask(fmt::format("get kvsname={} key={}", job.name, kKey), "get_result");
  job.first_host = value_of(answer, "value");
  if (job.first_host.empty()) refuse(fd, fmt::format("the launcher answers '{}' without a value", printable(answer)));
  launcher.ask("finalize", "finalize_ack");
  return job;
}

}  // namespace col::group::adopt
