#include "coljob/unnamed_pages.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

namespace col::coljob {
namespace {

namespace fs = std::filesystem;

// As core::create_unnamed_page() calls it, and as the kernel shows that.
constexpr std::string_view kBefore = "/memfd:col-control:", kBehind = " (deleted)";

bool is_pid(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

// Pids in a page are those of its ranks' namespace.
bool shares_pids(const fs::path& process) {
  std::error_code failed;
  const fs::path own = fs::read_symlink("/proc/self/ns/pid", failed);
  return !failed && fs::read_symlink(process / "ns/pid", failed) == own && !failed;
}

// "run 17-0f3a…": a job's own words and a number, in one word.
std::string id_of(std::string_view link) {
  link.remove_prefix(kBefore.size());
  if (link.ends_with(kBehind)) link.remove_suffix(kBehind.size());
  std::string id(link);
  std::ranges::replace(id, ' ', '-');
  return id;
}

}  // namespace

std::vector<UnnamedPage> find_unnamed_pages() {
  std::vector<UnnamedPage> pages;
  std::set<ino_t> seen;
  std::error_code failed;
  for (fs::directory_iterator process("/proc", failed), end; !failed && process != end; process.increment(failed)) {
    struct stat info {};
    if (!is_pid(process->path().filename().native()) || ::stat(process->path().c_str(), &info) != 0 ||
        info.st_uid != ::geteuid() || !shares_pids(process->path()))
      continue;
    std::error_code gone;  // a process that ends meanwhile
    for (fs::directory_iterator file(process->path() / "fd", gone), last; !gone && file != last; file.increment(gone)) {
      std::error_code closed;
      const std::string link = fs::read_symlink(file->path(), closed);
      if (closed || !link.starts_with(kBefore) || ::stat(file->path().c_str(), &info) != 0) continue;
      if (seen.insert(info.st_ino).second) pages.push_back({id_of(link), file->path()});
    }
  }
  return pages;
}

}  // namespace col::coljob
