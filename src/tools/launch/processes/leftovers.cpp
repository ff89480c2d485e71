#include "launch/processes/leftovers.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace col::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigits = 32;  // of the random part of a name

bool is_shared_memory_of_col(const std::string& name) {
  constexpr std::string_view kPrefix = "col-";
  return name.size() == kPrefix.size() + kDigits && name.starts_with(kPrefix) &&
         std::all_of(name.begin() + kPrefix.size(), name.end(),
                     [](unsigned char letter) { return std::isxdigit(letter) != 0; });
}

// The entries of a directory, without those that are gone when they are looked at.
std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code failed;
  for (fs::directory_iterator entry(directory, failed), end; !failed && entry != end; entry.increment(failed))
    entries.push_back(entry->path());
  return entries;
}

bool has_open(const fs::path& process, const std::string& path) {
  std::error_code failed;
  for (const fs::path& link : entries_of(process / "fd")) {
    if (fs::read_symlink(link, failed) == path) return true;
  }
  return false;
}

bool has_mapped(const fs::path& process, const std::string& path) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(" " + path)) return true;
  }
  return false;
}

// A process that cannot be looked into is another user's, and so has no file of this one's with mode 0600.
bool is_in_use(const std::string& path) {
  bool any = false;
  for (const fs::path& process : entries_of("/proc")) {
    if (!std::isdigit(static_cast<unsigned char>(process.filename().string().front()))) continue;
    any = true;
    if (has_open(process, path) || has_mapped(process, path)) return true;
  }
  return !any;  // no /proc: nobody knows
}

}  // namespace

std::vector<std::string> remove_leftover_shared_memory(const std::string& directory) {
  std::vector<std::string> removed;
  for (const fs::path& entry : entries_of(directory)) {
    struct stat info {};
    const std::string path = entry;
    if (!is_shared_memory_of_col(entry.filename()) || ::lstat(path.c_str(), &info) != 0) continue;
    if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || is_in_use(path)) continue;
    if (::unlink(path.c_str()) == 0) removed.push_back(path);
  }
  return removed;
}

std::string current_directory() {
  std::error_code failed;
  return fs::current_path(failed).string();
}

}  // namespace col::launch
