// colrun: runs a program as several ranks on this machine. The work is done by tools/launch.
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "colrun/options.hpp"
#include "common/exit_codes.hpp"
#include "launch/descriptors.hpp"
#include "launch/environment.hpp"
#include "launch/launch.hpp"
#include "launch/signals.hpp"

namespace {

// What whoever started us opened for the program, as a shell does for `<(…)`.
std::vector<int> inherited_descriptors() {
  std::vector<int> fds;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) return fds;
  while (const dirent* entry = ::readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > STDERR_FILENO && fd != ::dirfd(directory)) fds.push_back(fd);
  }
  ::closedir(directory);
  std::sort(fds.begin(), fds.end());
  return fds;
}

int print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return col::tools::exit_code::kSuccess;
  std::fprintf(stderr, "colrun: cannot write to stdout: %s; send it to a place that takes it\n", strerror(errno));
  return col::tools::exit_code::kLauncher;
}

int run(int argc, char** argv) {
  using namespace col;
  const auto request = colrun::parse_command_line({argv + 1, argv + argc}, launch::usable_cpus());
  // Before closed descriptors are replaced: a text that nobody gets is an error.
  if (const auto* text = std::get_if<std::string>(&request)) return print(*text);
  col::launch::ensure_standard_descriptors();
  launch::JobSpec spec;
  spec.keep_fds = inherited_descriptors();
  const auto& options = std::get<colrun::Options>(request);
  spec.command = options.command;
  spec.ranks = options.ranks;
  spec.label = options.label;
  spec.title = {argv[0], argv[argc - 1] + strlen(argv[argc - 1]) + 1};

  const launch::JobResult result = launch::run(spec);
  if (!result.error.empty()) std::fprintf(stderr, "colrun: %s\n", result.error.c_str());
  if (result.signal != 0) launch::die_of(result.signal);
  return result.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return argc > 0 ? run(argc, argv) : col::tools::exit_code::kUsage;
  } catch (const col::colrun::UsageError& error) {
    std::fprintf(stderr, "colrun: %s; see colrun --help\n", error.what());
    return col::tools::exit_code::kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "colrun: %s\n", error.what());
    return col::tools::exit_code::kLauncher;
  }
}
