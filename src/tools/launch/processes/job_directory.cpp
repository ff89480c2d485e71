#include "launch/processes/job_directory.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/exit_codes.hpp"
#include "common/text.hpp"
#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "json/json_text.hpp"
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

// Torch writes the whole stack of the exception.
constexpr std::size_t kMaxFileBytes = 1024 * 1024;
constexpr std::size_t kMaxMessageColumns = 2000;

// The content of the file as JSON; discarded (no object) if it is not JSON.
nlohmann::json read_json(const std::string& path) {
  nlohmann::json nothing(nlohmann::json::value_t::discarded);
  // Non-blocking: a rank could have put a FIFO there.
  tools::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file) return nothing;
  std::string text(kMaxFileBytes, '\0');
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length <= 0) return nothing;
  text.resize(static_cast<std::size_t>(length));
  return core::json_from(text);
}

// A field that is text, else "".
std::string text_field(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  const std::string line = tools::one_line(found->get_ref<const std::string&>());
  return std::string(tools::cut(line, kMaxMessageColumns));
}

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

}  // namespace

std::string make_job_id() {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    random = static_cast<std::uint32_t>(core::clock_ns());
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(core::wall_now());
  const auto today = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(today);
  const std::chrono::hh_mm_ss time(now - today);
  return fmt::format("{:04}{:02}{:02}-{:02}{:02}{:02}-{}-{:08x}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count(), ::getpid(), random);
}

JobDirectory::JobDirectory(const std::string& job_id, const std::string& parent)
    : path_(fmt::format("{}/col-{}", parent.empty() ? parent_directory() : parent, job_id)) {}

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
                      "cannot create the job directory {}: {}; set TMPDIR to a directory with space that "
                      "you may write to",
                      folder, strerror(error));
  }
}

void JobDirectory::make_trace() const {
  if (::mkdir(trace().c_str(), 0700) == 0) return;
  throw LaunchError(tools::exit_code::kLauncher, "cannot create the directory {} for --trace: {}", trace(),
                    strerror(errno));
}

bool JobDirectory::remove() const noexcept {
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
  return !failed;
}

std::optional<RankError> read_error_file(const std::string& path) {
  const nlohmann::json object = read_json(path);
  if (!object.is_object()) return std::nullopt;
  RankError error{text_field(object, "code"), text_field(object, "message")};
  return error.code.empty() ? std::nullopt : std::make_optional(std::move(error));
}

std::optional<RankError> read_torch_error_file(const std::string& path) {
  const nlohmann::json object = read_json(path);
  if (!object.is_object()) return std::nullopt;
  const auto inner = object.find("message");
  if (inner == object.end()) return std::nullopt;
  RankError error{{}, text_field(inner->is_object() ? *inner : object, "message")};
  return error.message.empty() ? std::nullopt : std::make_optional(std::move(error));
}

std::optional<RankError> read_error_files(const std::string& path, const std::string& torch_path) {
  if (auto error = read_error_file(path)) return error;
  return read_torch_error_file(torch_path);
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
