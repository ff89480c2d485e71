#include "launch/place/preflight.hpp"

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/job/small_file.hpp"
#include "launch/place/control_groups.hpp"

namespace col::launch {

using tools::exit_code::kLauncher;

rlim_t open_files_needed(int ranks) noexcept {
  constexpr rlim_t kFilesPerRank = 3;  // two pipes and a pidfd
  constexpr rlim_t kOtherFiles = 64;
  return static_cast<rlim_t>(ranks) * kFilesPerRank + kOtherFiles;
}

void check_open_files(int ranks, rlim_t hard_limit) {
  const rlim_t needed = open_files_needed(ranks);
  if (hard_limit >= needed) return;
  throw LaunchError(kLauncher,
                    fmt::format("{} ranks need {} open files, but the hard limit is {}; raise it (ulimit -Hn) or use "
                                "fewer ranks",
                                ranks, needed, hard_limit));
}

void check_process_limit(int ranks, const std::string& proc) {
  const long long needed = ranks + 1LL;  // the watcher as well
  for (const std::string& directory : control_groups("pids", proc)) {
    const std::optional<long long> most = read_number(directory + "/pids.max");
    if (!most) continue;
    const long long present = read_number(directory + "/pids.current").value_or(0);
    if (present + needed <= *most) continue;
    throw LaunchError(kLauncher,
                      fmt::format("{} ranks need {} processes, but the control group {} may have {} and has {} now; "
                                  "raise its pids.max or use fewer ranks",
                                  ranks, needed, directory, *most, present));
  }
}

void preflight(int ranks, const std::string& proc) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) check_open_files(ranks, files.rlim_max);
  check_process_limit(ranks, proc);
}

}  // namespace col::launch
