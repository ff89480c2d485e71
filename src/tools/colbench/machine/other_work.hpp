// The work that the processors of this host do beside this program's own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace col::colbench {

// Sums what all processors of the host have done since it started, and this program with the processes that it has
// waited for; in seconds of one processor.
struct HostTimes {
  double all = 0, idle = 0;
  double stolen = 0;  // by a hypervisor, for other machines
  double own = 0;
};

// From the text of /proc/stat; nothing if it has no such line.
std::optional<HostTimes> host_times(std::string_view stat, double own_seconds);
// Looks at this host, now.
std::optional<HostTimes> host_times();
using ReadTimes = std::optional<HostTimes> (*)();

// Parts of all processors' time between two looks.
struct OtherWork {
  double processes = 0;  // neither idle, nor stolen, nor ours
  double stolen = 0;
  double all() const { return processes + stolen; }
};
OtherWork other_work(const HostTimes& before, const HostTimes& after);

// Looks twice, with `let_time_pass` between: 200 ms of it. Nothing if the host does not tell.
std::optional<OtherWork> other_work_now(ReadTimes read, const std::function<void()>& let_time_pass);

// "other work takes 35 % of the processors …": what it does to the results, and what to do. Empty up to 10 %.
std::string other_work_warning(const OtherWork& work);

}  // namespace col::colbench
