#include "colbench/machine/other_work.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace col::colbench {
namespace {

constexpr double kMuch = 0.1;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

std::optional<HostTimes> host_times(std::string_view stat, double own_seconds) {
  std::istringstream text{std::string(stat.substr(0, stat.find('\n')))};
  std::string word;
  text >> word;
  // user nice system idle iowait irq softirq steal
  std::array<double, 8> ticks{};
  for (double& tick : ticks) text >> tick;
  if (word != "cpu" || !text) return std::nullopt;
  HostTimes times{.own = own_seconds};
  const auto second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (const double tick : ticks) times.all += tick / second;
  times.idle = (ticks[3] + ticks[4]) / second;
  times.stolen = ticks[7] / second;
  return times;
}

std::optional<HostTimes> host_times() {
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  double own = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (::getrusage(who, &usage) == 0) own += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return host_times(line, own);
}

OtherWork other_work(const HostTimes& before, const HostTimes& after) {
  const double all = after.all - before.all;
  if (all <= 0) return {};
  const auto part = [&](double HostTimes::*times) { return (after.*times - before.*times) / all; };
  const double stolen = part(&HostTimes::stolen);
  // Ticks are coarse: a moment of ours may be in none of them.
  return {.processes = std::max(0.0, 1 - part(&HostTimes::idle) - stolen - part(&HostTimes::own)), .stolen = stolen};
}

std::optional<OtherWork> other_work_now(ReadTimes read, const std::function<void()>& let_time_pass) {
  const std::optional<HostTimes> before = read();
  if (!before) return std::nullopt;
  let_time_pass();
  const std::optional<HostTimes> after = read();
  return after ? std::optional(other_work(*before, *after)) : std::nullopt;
}

std::string other_work_warning(const OtherWork& work) {
  if (work.all() <= kMuch) return {};
  const std::string stolen =
      work.stolen > kMuch / 2 ? fmt::format(", {:.0f} % by way of the hypervisor", 100 * work.stolen) : "";
  return fmt::format(
      "other work takes {:.0f} % of the processors{}: times will be longer, and vary; end it (top shows it), or "
      "measure "
      "later",
      100 * work.all(), stolen);
}

}  // namespace col::colbench
