#include "launch/processes/job_directory.hpp"

#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {
namespace {

std::string parent_directory() {
  const char* chosen = std::getenv("TMPDIR");
  if (chosen == nullptr || *chosen == '\0') return "/tmp";
  std::error_code failed;  // the current directory may be gone
  std::string path = std::filesystem::absolute(chosen, failed).lexically_normal().string();
  while (path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

std::string make_job_id() {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    random = static_cast<std::uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto today = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(today);
  const std::chrono::hh_mm_ss time(now - today);
  return fmt::format("{:04}{:02}{:02}-{:02}{:02}{:02}-{}-{:08x}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count(), ::getpid(), random);
}

JobDirectory::JobDirectory(const std::string& job_id) : path_(fmt::format("{}/col-{}", parent_directory(), job_id)) {}

std::string JobDirectory::error_file(int rank) const {
  return fmt::format("{}/error.{}.json", path_, rank);
}
std::string JobDirectory::torch_error_file(int rank) const {
  return fmt::format("{}/torch-error.{}.json", path_, rank);
}

void JobDirectory::create() const {
  for (const std::string& folder : {path_, store()}) {
    if (::mkdir(folder.c_str(), 0700) == 0) continue;
    const int error = errno;
    if (folder != path_) ::rmdir(path_.c_str());
    throw LaunchError(tools::exit_code::kLauncher,
                      fmt::format("cannot create the job directory {}: {}; set TMPDIR to a directory with space that "
                                  "you may write to",
                                  folder, strerror(error)));
  }
}

bool JobDirectory::remove() const noexcept {
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
  return !failed;
}

}  // namespace col::launch
