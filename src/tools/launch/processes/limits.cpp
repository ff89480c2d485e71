#include "launch/processes/limits.hpp"

#include <string.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/job/small_file.hpp"
#include "launch/place/cpu_quota.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

// "16 ranks and 2 other hosts need".
std::string subject(const Needs& needs) {
  const auto counted = [](int number, const char* noun) {
    return number == 0 ? std::string() : fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
  };
  const std::string ranks = counted(needs.ranks, "rank"), hosts = counted(needs.hosts, "other host");
  return fmt::format("{}{}{} {}", ranks, ranks.empty() || hosts.empty() ? "" : " and ", hosts,
                     needs.ranks + needs.hosts == 1 ? "needs" : "need");
}

// From a file such as /proc/self/status; 0 if it is not there.
template <class Number>
Number number_in(std::string_view status, std::string_view name, int base = 10) {
  const std::string_view text = field(status, name);
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, base);
  return number;
}

// Then root and capabilities count for nothing outside of it, where the kernel counts processes.
bool in_user_namespace(const std::string& proc) {
  std::string map = read_small_file(proc + "/self/uid_map").value_or("");
  std::erase_if(map, [](char c) { return c == ' ' || c == '\n'; });
  return !map.empty() && map != "004294967295";  // all users from 0 on are those from 0 on
}

// Nothing where the limit binds nobody, or this cannot be known: the kernel spares root, and who has one of two
// capabilities.
std::optional<long long> bound_user(const std::string& proc) {
  const std::optional<std::string> status = read_small_file(proc + "/self/status");
  if (!status) return std::nullopt;
  const long long user = number_in<long long>(*status, "Uid");
  if (in_user_namespace(proc)) return user;
  constexpr unsigned kSysAdmin = 21, kSysResource = 24;
  const unsigned long long capabilities = number_in<unsigned long long>(*status, "CapEff", 16);
  if ((capabilities >> kSysAdmin & 1) != 0 || (capabilities >> kSysResource & 1) != 0) return std::nullopt;
  return user == 0 ? std::nullopt : std::optional(user);
}

// For all users; nothing if this cannot be known.
std::optional<rlim_t> all_processes(const std::string& proc) {
  const std::string loads = read_small_file(proc + "/loadavg").value_or("");  // "0.20 0.18 0.12 1/80 11206"
  std::string_view rest = loads;
  take(rest, '/');
  const std::string_view number = take(rest, ' ');
  rlim_t count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  return error == std::errc() ? std::optional(count) : std::nullopt;
}

// As the kernel counts them for the limit: each thread is one.
long long processes_of(long long user, const std::string& proc) {
  long long count = 0;
  for (const std::string& name : names_in(proc).value_or(std::vector<std::string>())) {
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const std::optional<std::string> status = read_small_file(proc + "/" + name + "/status");
    if (status && number_in<long long>(*status, "Uid") == user)
      count += std::max(1LL, number_in<long long>(*status, "Threads"));
  }
  return count;
}

std::optional<std::uint64_t> kills_in(const std::string& path) {
  const std::string text = read_small_file(path).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take(rest, '\n');
    if (take(line, ' ') != "oom_kill") continue;
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), count);
    return error == std::errc() && end == line.data() + line.size() ? std::optional(count) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

rlimit limit_of(decltype(RLIMIT_NPROC) resource) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(resource, &limit);
  return limit;
}

void check_open_files(const Needs& needs, rlim_t hard_limit) {
  if (hard_limit >= needs.files) return;
  throw LaunchError(kLauncher, "{} {} open files, but the hard limit is {}; raise it (ulimit -Hn) or use fewer ranks",
                    subject(needs), needs.files_of_all, hard_limit);
}

void check_processes(const Needs& needs, rlim_t limit, const std::string& proc) {
  for (const std::string& directory : control_groups("pids", proc)) {
    const std::optional<long long> most = read_number(directory + "/pids.max");
    if (!most) continue;
    const long long present = read_number(directory + "/pids.current").value_or(0);
    if (present + needs.processes <= *most) continue;
    throw LaunchError(kLauncher,
                      "{} {} processes, but the control group {} may have {} and has {} now; raise its pids.max to {} "
                      "or use fewer ranks",
                      subject(needs), needs.processes, directory, *most, present, present + needs.processes);
  }
  if (limit == RLIM_INFINITY) return;
  // Counting a user's reads all of /proc, so it is for a limit that those of all users could reach.
  const auto needed = static_cast<rlim_t>(needs.processes);
  if (const auto all = all_processes(proc); all && *all + needed <= limit) return;
  const std::optional<long long> user = bound_user(proc);
  if (!user) return;
  const auto present = static_cast<rlim_t>(processes_of(*user, proc));
  if (present + needed <= limit) return;
  throw LaunchError(kLauncher,
                    "{} {} processes, but this user may have {} and has {} now; raise the limit to {} (ulimit -u) or "
                    "use fewer ranks",
                    subject(needs), needed, limit, present, present + needed);
}

std::string why_no_process(int error, int missing, rlim_t limit, const std::string& proc) {
  if (error != EAGAIN) return strerror(error);
  for (const std::string& directory : control_groups("pids", proc)) {
    const std::optional<long long> most = read_number(directory + "/pids.max");
    if (!most || read_number(directory + "/pids.current").value_or(0) < *most) continue;
    return fmt::format("the control group {} may have {} processes; raise its pids.max to {} or use fewer ranks",
                       directory, *most, *most + missing);
  }
  if (limit == RLIM_INFINITY)
    return fmt::format("{}; allow more processes (pids.max, kernel.pid_max)", strerror(error));
  return fmt::format("this user may have {} processes; raise the limit to {} (ulimit -u) or use fewer ranks", limit,
                     limit + static_cast<rlim_t>(missing));
}

OutOfMemoryWatch::OutOfMemoryWatch(const std::string& proc) {
  const std::vector<std::string> groups = control_groups("memory", proc);
  std::vector<std::string> files;
  // Memory is counted by one version; where version 1 has it, it is not in version 2.
  for (const std::string& group : groups) files.push_back(group + "/memory.oom_control");
  for (const std::string& group : groups) files.push_back(group + "/memory.events");
  files.push_back(proc + "/vmstat");
  for (const std::string& file : files) {
    const std::optional<std::uint64_t> kills = kills_in(file);
    if (!kills) continue;
    file_ = file;
    claimed_ = *kills;
    return;
  }
}

std::uint64_t OutOfMemoryWatch::unclaimed() const {
  const std::uint64_t count = file_.empty() ? 0 : kills_in(file_).value_or(0);
  return count > claimed_ ? count - claimed_ : 0;
}

bool OutOfMemoryWatch::claim() {
  if (unclaimed() == 0) return false;
  ++claimed_;
  return true;
}

}  // namespace col::launch
