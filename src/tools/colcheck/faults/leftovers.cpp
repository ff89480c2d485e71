#include "colcheck/faults/leftovers.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace col::colcheck {
namespace {

namespace fs = std::filesystem;

constexpr auto kPatience = std::chrono::seconds(1);
constexpr auto kPause = std::chrono::milliseconds(5);
// How the library calls what it puts into /dev/shm.
constexpr std::string_view kShmPrefix = "col-";

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename());
  return names;
}

std::string left_process(const std::string& job_id) {
  const std::string mark = "COL_JOB_ID=" + job_id;
  for (const std::string& name : names_in("/proc")) {
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) continue;
    std::ifstream file("/proc/" + name + "/environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    if (environment.find(mark) != std::string::npos) return fmt::format("process {}", name);
  }
  return {};
}

std::string left_shm(const Traces& traces) {
  // File times come from a coarser clock.
  const auto since = std::chrono::system_clock::to_time_t(traces.started - kPatience);
  for (const std::string& name : names_in(traces.shm_directory)) {
    struct stat status {};
    const std::string path = traces.shm_directory + "/" + name;
    if (!name.starts_with(kShmPrefix) || ::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (status.st_uid == ::geteuid() && status.st_mtim.tv_sec >= since) return fmt::format("/dev/shm/{}", name);
  }
  return {};
}

std::string left_file(const Traces& traces) {
  for (const std::string& name : names_in(traces.scratch_directory)) return fmt::format("$TMPDIR/{}", name);
  const fs::path own(traces.job_directory);
  for (const std::string& name : names_in(own.parent_path())) {
    if (name != own.filename() && name.find(traces.job_id) != std::string::npos) return own.parent_path() / name;
  }
  return {};
}

std::string look(const Traces& traces) {
  for (std::string found : {left_process(traces.job_id), left_shm(traces), left_file(traces)}) {
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

// The kernel tells nobody when the last trace is gone, and jobs of others come and go in /dev/shm too: so it is looked
// at again for a while.
std::string leftover(const Traces& traces) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::string found = look(traces);
    if (found.empty() || std::chrono::steady_clock::now() >= until) return found;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace col::colcheck
