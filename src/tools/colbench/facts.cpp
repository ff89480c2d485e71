#include "colbench/facts.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "common/text.hpp"
#include "launch/place/cpu_quota.hpp"

extern char** environ;  // NOLINT: declared by no header

namespace col::colbench {
namespace {

constexpr double kMuchOtherWork = 0.05, kMuchStolen = 0.01;  // of all cores' time

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

// Settings of the library and of what it uses; of COL_*, not where the job lives.
bool may_be_told(std::string_view name) {
  constexpr std::array kOthers = {"OMP_NUM_THREADS", "NCCL_ALGO", "NCCL_PROTO", "CUDA_VISIBLE_DEVICES"};
  constexpr std::array kSettings = {"COL_ALGORITHM",     "COL_SELECTION", "COL_NUMERICS", "COL_CHECK",
                                    "COL_PROGRESS",      "COL_TIMEOUT",   "COL_LOG",      "COL_FAULT",
                                    "COL_SOCKET_IFNAME", "COL_BACKEND"};
  const auto is = [&](const char* known) { return name == known; };
  return std::any_of(kOthers.begin(), kOthers.end(), is) || std::any_of(kSettings.begin(), kSettings.end(), is);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

void describe_host(RunFacts& facts) {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) facts.host = name.data();
  facts.cpu = cpu_name();
  facts.cpus = launch::usable_cpus();
  utsname system{};
  if (::uname(&system) == 0) facts.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  facts.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  facts.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !may_be_told(text.substr(0, equals))) continue;
    facts.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(facts.environment.begin(), facts.environment.end());
}

HostWatch::HostWatch() : before_(look()) {}

HostWatch::Times HostWatch::look() {
  Times times;
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;
  // user nice system idle iowait irq softirq steal
  std::array<double, 8> ticks{};
  for (double& tick : ticks) file >> tick;
  const double second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (const double tick : ticks) times.all += tick / second;
  times.stolen = ticks[7] / second;
  times.busy = times.all - (ticks[3] + ticks[4]) / second - times.stolen;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (::getrusage(who, &usage) == 0) times.own += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return times;
}

std::vector<std::string> HostWatch::warnings(const RunFacts& facts) const {
  std::vector<std::string> warnings;
  if (facts.ranks > facts.cpus)
    warnings.push_back(fmt::format("{} ranks on {}: they take turns, and times are not those of {} cores", facts.ranks,
                                   tools::counted(static_cast<std::size_t>(facts.cpus), "core"), facts.ranks));
  if (facts.ranks == 1) warnings.push_back("one rank alone: nothing is communicated");
  const Times now = look();
  const double all = now.all - before_.all;
  if (all > 0) {
    const double stolen = (now.stolen - before_.stolen) / all;
    if (stolen > kMuchStolen)
      warnings.push_back(fmt::format("the hypervisor took {:.0f} % of the cores' time away", 100 * stolen));
    // Under another launcher, the ranks are not children of a process here.
    const double other = (now.busy - before_.busy - (now.own - before_.own)) / all;
    if (facts.launcher == "colbench" && other > kMuchOtherWork)
      warnings.push_back(fmt::format("other processes used {:.0f} % of the cores", 100 * other));
  }
  if (!facts.governor.empty() && facts.governor != "performance")
    warnings.push_back(fmt::format("the cores change their frequency (governor {})", facts.governor));
  return warnings;
}

}  // namespace col::colbench
