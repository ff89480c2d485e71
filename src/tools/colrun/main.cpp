// colrun: runs a program as several ranks. The work is done by tools/launch.
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "colrun/options.hpp"
#include "common/guarded.hpp"
#include "common/write_file.hpp"
#include "launch/job/job_result.hpp"
#include "launch/launch.hpp"
#include "launch/place/cpu_quota.hpp"
#include "launch/place/placement.hpp"
#include "launch/processes/events.hpp"
#include "launch/processes/signals.hpp"

namespace {

// The files that the process that started us opened for the program, as a shell does for `<(…)`.
std::vector<int> inherited_descriptors() {
  std::vector<int> fds;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return fds;
  while (const dirent* entry = ::readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > STDERR_FILENO && fd != ::dirfd(directory)) fds.push_back(fd);
  }
  ::closedir(directory);
  std::ranges::sort(fds);
  return fds;
}

int run(int argc, char** argv) {
  using namespace col;
  const colrun::Surroundings surroundings{argv[0], environ, [] { return launch::usable_cpus(); },
                                          [] { return launch::visible_gpu_count(); }};
  colrun::Request request = colrun::parse_options({argv + 1, argv + argc}, surroundings);
  // Before closed descriptors are replaced: a text that nobody gets is an error.
  if (const auto* text = std::get_if<colrun::Text>(&request)) {
    tools::print(text->text);
    return tools::exit_code::kSuccess;
  }
  launch::ensure_standard_descriptors();
  const std::span<char> title(argv[0], argv[argc - 1] + strlen(argv[argc - 1]) + 1);
  if (std::holds_alternative<colrun::Agent>(request)) return launch::run_agent(title);

  auto& [spec, warnings] = std::get<colrun::Job>(request);
  for (const std::string& warning : warnings) std::fprintf(stderr, "colrun: %s\n", warning.c_str());
  spec.keep_fds = inherited_descriptors();
  // That of a colrun around this one: our ranks get their own.
  if (const char* const outer = std::getenv("PMI_FD")) std::erase(spec.keep_fds, std::atoi(outer));
  spec.title = title;
  const launch::JobResult result = launch::run(spec);
  if (!result.error.empty()) std::fprintf(stderr, "colrun: %s\n", result.error.c_str());
  if (result.signal != 0) launch::die_of(result.signal);
  return result.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 1) return col::tools::exit_code::kUsage;
  constexpr int kFailure = col::tools::exit_code::kLauncher;
  return col::tools::guarded({.tool = "colrun", .failure = kFailure, .unwritten = kFailure},
                             [&] { return run(argc, argv); });
}
