#include "launch/processes/processes.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/small_file.hpp"

namespace col::launch {
namespace {

// The part of its stat line behind the name of the program; empty if it is gone.
std::string stat_of(pid_t pid, const std::string& proc) {
  std::string line = read_small_file(fmt::format("{}/{}/stat", proc, pid)).value_or("");
  // The name is in brackets and may contain anything, including brackets and spaces.
  const std::size_t end_of_name = line.rfind(") ");
  return end_of_name == line.npos ? std::string() : line.substr(end_of_name + 2);
}

// Field `number` (counted as in proc(5)) of that.
std::uint64_t stat_field(std::string_view behind_name, int number) {
  constexpr int kFirstField = 3;  // the state
  for (int field = kFirstField; field < number; ++field) {
    const std::size_t space = behind_name.find(' ');
    if (space == std::string_view::npos) return 0;
    behind_name.remove_prefix(space + 1);
  }
  return std::strtoull(std::string(behind_name.substr(0, behind_name.find(' '))).c_str(), nullptr, 10);
}

std::vector<ProcessInfo> every_process() {
  std::vector<ProcessInfo> processes;
  for (const std::string& name : names_in("/proc").value_or(std::vector<std::string>{})) {
    if (!std::isdigit(static_cast<unsigned char>(name.front()))) continue;
    const ProcessInfo info = read_process(static_cast<pid_t>(std::atoi(name.c_str())));
    if (info.pid != 0) processes.push_back(info);
  }
  return processes;
}

// Waits until a child may have changed its state, 10 ms at most.
void wait_for_a_child() {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const tools::UniqueFd signals(::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  pollfd ready{signals.get(), POLLIN, 0};
  core::poll_for({&ready, 1}, std::chrono::milliseconds(10));
  signalfd_siginfo taken;
  while (::read(signals.get(), &taken, sizeof taken) > 0) continue;
}

}  // namespace

ProcessInfo read_process(pid_t pid) {
  const std::string fields = stat_of(pid, "/proc");
  if (fields.empty()) return {};
  return {pid, static_cast<pid_t>(stat_field(fields, 4)), stat_field(fields, 22)};
}

std::optional<ProcessSample> sample_process(pid_t pid, const std::string& proc) {
  const std::string fields = stat_of(pid, proc);
  if (fields.empty()) return std::nullopt;
  const std::uint64_t ticks = stat_field(fields, 14) + stat_field(fields, 15);  // of user and system
  ProcessSample sample{.cpu_seconds = static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)),
                       .rss_bytes = stat_field(fields, 24) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))};
  const std::string times = read_small_file(fmt::format("{}/{}/schedstat", proc, pid)).value_or("");
  char* behind = nullptr;
  sample.on_cpu_seconds = std::strtod(times.c_str(), &behind) / 1e9;
  sample.queued_seconds = std::strtod(behind, nullptr) / 1e9;
  return sample;
}

std::vector<ProcessInfo> children_of(pid_t parent) {
  std::vector<ProcessInfo> children = every_process();
  std::erase_if(children, [&](const ProcessInfo& info) { return info.parent != parent; });
  return children;
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  std::vector<ProcessInfo> others = every_process();
  std::vector<pid_t> found = {ancestor};
  for (std::size_t index = 0; index < found.size(); ++index) {
    const auto is_other = [parent = found[index]](const ProcessInfo& info) { return info.parent != parent; };
    const auto first = std::partition(others.begin(), others.end(), is_other);
    for (auto child = first; child != others.end(); ++child) found.push_back(child->pid);
    others.erase(first, others.end());
  }
  found.erase(found.begin());
  return found;
}

bool has_no_children() noexcept {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == -1 && errno == ECHILD;
}

std::size_t kill_children(std::uint64_t since_ticks, core::Clock::time_point deadline, std::span<const pid_t> kept,
                          const std::function<void()>& meanwhile) {
  while (!has_no_children()) {
    std::size_t left = 0;
    bool reaped = false;
    for (const ProcessInfo& child : children_of(::getpid())) {
      if (child.start_ticks < since_ticks || std::ranges::find(kept, child.pid) != kept.end()) continue;
      ::kill(child.pid, SIGKILL);
      if (::waitpid(child.pid, nullptr, WNOHANG) == child.pid) {
        reaped = true;
      } else {
        ++left;
      }
    }
    // A reaped child may have left us its children: look again even when none is left.
    if (left == 0 && !reaped) return 0;
    if (core::Clock::now() >= deadline) return left;
    if (left > 0) wait_for_a_child();
    if (meanwhile) meanwhile();
  }
  return 0;
}

}  // namespace col::launch
