#include "core/job/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "core/unique_fd.hpp"

namespace col::core {

namespace {

struct Stat {
  char state = '?';
  long threads = 0;
  std::uint64_t start = 0;  // clock ticks since boot
};

// /proc/<pid>/stat; nothing when there is no such process or no /proc.
std::optional<Stat> read_stat(std::int64_t pid) {
  const UniqueFd fd(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::array<char, 1024> buffer;
  const ssize_t length = ::read(fd.get(), buffer.data(), buffer.size());
  if (length <= 0) return std::nullopt;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(length));
  // Field 2 is the program's name in parentheses, and may hold spaces and parentheses itself.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  // Parsed by hand: where hundreds of ranks look after one another, a stream takes longer than the kernel.
  std::string_view rest = text.substr(name_end + 1);
  const auto next = [&rest] {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const std::string_view field = rest.substr(0, rest.find(' '));
    rest.remove_prefix(field.size());
    return field;
  };
  const auto number = [](std::string_view field, auto& value) {
    return std::from_chars(field.data(), field.data() + field.size(), value).ec == std::errc();
  };
  const auto skip = [&](int fields) {
    while (fields-- > 0) next();
  };
  Stat stat;
  const std::string_view state = next();  // field 3
  if (state.empty()) return std::nullopt;
  stat.state = state.front();
  skip(16);
  if (!number(next(), stat.threads)) return std::nullopt;  // field 20
  skip(1);
  if (!number(next(), stat.start)) return std::nullopt;  // field 22
  return stat;
}

}  // namespace

ProcessId ProcessId::self() {
  if (Scheduler* const simulated = scheduler()) return ProcessId(simulated->pid(), 1);
  const std::int64_t pid = ::getpid();
  const auto stat = read_stat(pid);
  return ProcessId(pid, stat ? stat->start : 0);
}

bool ProcessId::alive() const {
  if (nobody()) return false;
  if (Scheduler* const simulated = scheduler()) return simulated->condition_of(pid()) != Condition::gone;
  if (::kill(static_cast<pid_t>(pid()), 0) != 0 && errno == ESRCH) return false;
  const auto stat = read_stat(pid());
  // Gone in between; or a system without /proc, where the signal's answer has to do.
  if (!stat) return ::kill(static_cast<pid_t>(pid()), 0) == 0 || errno != ESRCH;
  if (stat->state == 'X' || stat->state == 'x') return false;
  // The first thread of a process can end before the others: it then shows as a zombie while they go on.
  if (stat->state == 'Z' && stat->threads <= 1) return false;
  return start() == 0 || (stat->start & kStartMask) == start();
}

ProcessId::Condition ProcessId::condition() const {
  if (Scheduler* const simulated = scheduler(); simulated != nullptr && !nobody())
    return simulated->condition_of(pid());
  const auto stat = nobody() ? std::nullopt : read_stat(pid());
  if (!stat) return alive() ? Condition::runs : Condition::gone;
  const bool is_another = start() != 0 && (stat->start & kStartMask) != start();
  const bool has_ended = stat->state == 'X' || stat->state == 'x' || (stat->state == 'Z' && stat->threads <= 1);
  if (is_another || has_ended) return Condition::gone;
  return stat->state == 'T' || stat->state == 't' ? Condition::stopped : Condition::runs;
}

}  // namespace col::core
