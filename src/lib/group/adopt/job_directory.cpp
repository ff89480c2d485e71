#include "group/adopt/job_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/blocked_signal.hpp"
#include "core/text_file.hpp"
#include "group/adopt/user_directory.hpp"

namespace col::group::adopt {
namespace {

namespace fs = std::filesystem;

constexpr Duration kLeavePatience = std::chrono::seconds(2);
constexpr std::size_t kHexDigits = 16;

bool is_hex(std::string_view text) {
  return text.size() == kHexDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "<launcher>-<16 hexadecimal digits>" of "<that>.<16 more>"; empty for a name that is no job's.
std::string_view job_of(std::string_view name) {
  const auto dot = name.rfind('.');
  const auto dash = name.rfind('-', dot);
  if (dot == std::string_view::npos || dash == std::string_view::npos || dash > dot) return {};
  if (!is_hex(name.substr(dot + 1)) || !is_hex(name.substr(dash + 1, dot - dash - 1))) return {};
  return name.substr(0, dot);
}

std::string random_hex() {
  std::random_device device;
  return fmt::format("{:016x}", (std::uint64_t{device()} << 32) | device());
}

std::int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Removes what nobody lives in, and returns the directories of `job` that are left, the newest first.
std::vector<std::string> tidy(const UserDirectory& user, std::string_view job) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  std::error_code failed;  // what cannot be read or removed is left to the next one
  for (fs::directory_iterator entry(user.path(), failed), end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    const std::string_view found_job = job_of(name);
    if (found_job.empty()) continue;
    const std::string path = entry->path().string();
    if (is_left_over(path)) {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    } else if (found_job == job) {
      if (const auto members = read_members(path)) found.emplace_back(members->made_ns, path);
    }
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [made_ns, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

JobDirectory::JobDirectory(JobKey key, std::string parent) : key_(std::move(key)), parent_(std::move(parent)) {}

JobDirectory::~JobDirectory() {
  leave();
}

void JobDirectory::enter(Duration timeout) {
  if (owner_ != 0 && owner_ != ::getpid())
    throw Error(ErrorCode::not_initialized,
                "this process was forked from one that is in the job already; start it with an environment of its own");
  if (entered()) return;
  const UserDirectory user(parent_, Deadline::after(timeout));
  const std::vector<std::string> candidates = tidy(user, key_.job);
  // The ranks that this rank has met there may still be in it, and come back to it.
  for (const std::string& path : candidates) {
    if (path == path_ && join(path, true)) return;
  }
  for (const std::string& path : candidates) {
    if (join(path, false)) return;
  }
  make(user);
}

bool JobDirectory::join(const std::string& path, bool again) {
  const auto members = read_members(path);
  if (!members || members->world_size != key_.world_size) return false;
  if (again ? !members->has(key_.rank) : members->complete() || members->has(key_.rank)) return false;
  core::UniqueFd file = open_members(path);
  if (!file) return false;
  if (!again) add_member(file, key_.rank, path);
  members_ = std::move(file);
  path_ = path;
  owner_ = ::getpid();
  return true;
}

void JobDirectory::make(const UserDirectory& user) {
  const std::string path = fmt::format("{}/{}.{}", user.path(), key_.job, random_hex());
  if (::mkdir(path.c_str(), 0700) != 0) throw_directory_error(errno, "make the directory", path);
  // Should this fail, the next rank that comes removes the directory.
  members_ = make_members(path, {.world_size = key_.world_size, .made_ns = now_ns(), .ranks = {key_.rank}});
  path_ = path;
  owner_ = ::getpid();
}

void JobDirectory::leave() noexcept {
  if (!entered() || owner_ != ::getpid()) return;
  try {
    const UserDirectory user(parent_, Deadline::after(kLeavePatience));
    if (::flock(members_.get(), LOCK_UN) == 0 && is_left_over(path_)) fs::remove_all(path_);
  } catch (const std::exception&) {  // the next job of this user removes it
  }
  // In words: a child forked meanwhile shares the open file, and would keep the lock.
  ::flock(members_.get(), LOCK_UN);
  members_.reset();
}

// ---- The list

namespace {

constexpr int kVersion = 1;

std::string file_in(const std::string& directory) {
  return directory + "/members";
}

core::UniqueFd open_file(const std::string& directory, int flags) {
  return core::UniqueFd(::open(file_in(directory).c_str(), flags | O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
}

// Whole or not at all.
void append(const core::UniqueFd& file, const std::string& text, const std::string& directory) {
  struct stat before {};
  if (::fstat(file.get(), &before) != 0) throw_directory_error(errno, "look at", file_in(directory));
  const core::BlockedSignal too_long(SIGXFSZ);  // EFBIG says it
  errno = ENOSPC;                               // what a short write means
  if (::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) return;
  const int error = errno;
  // A part of a line is no line; should it stay, decode() passes over the file.
  [[maybe_unused]] const int cut = ::ftruncate(file.get(), before.st_size);
  throw_directory_error(error, "write", file_in(directory));
}

}  // namespace

bool Members::has(int rank) const {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::string Members::encode() const {
  std::string text = fmt::format("col members {} {} {}\n", kVersion, world_size, made_ns);
  for (const int rank : ranks) text += fmt::format("{}\n", rank);
  return text;
}

std::optional<Members> Members::decode(std::string_view text) {
  Members members;
  int version = 0, rank = 0;
  std::string col, word;
  std::istringstream stream{std::string(text)};
  if (!text.ends_with('\n') || !(stream >> col >> word >> version >> members.world_size >> members.made_ns))
    return std::nullopt;
  if (col != "col" || word != "members" || version != kVersion) return std::nullopt;
  while (stream >> rank) members.ranks.push_back(rank);
  if (!stream.eof()) return std::nullopt;
  return members;
}

core::UniqueFd make_members(const std::string& directory, const Members& members) {
  core::UniqueFd file = open_file(directory, O_CREAT | O_EXCL);
  if (!file) throw_directory_error(errno, "make", file_in(directory));
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) throw_directory_error(errno, "lock", file_in(directory));
  append(file, members.encode(), directory);
  return file;
}

core::UniqueFd open_members(const std::string& directory) {
  core::UniqueFd file = open_file(directory, 0);
  if (file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0) file.reset();
  return file;
}

void add_member(const core::UniqueFd& file, int rank, const std::string& directory) {
  append(file, fmt::format("{}\n", rank), directory);
}

std::optional<Members> read_members(const std::string& directory) {
  try {
    return Members::decode(core::read_text_file(file_in(directory), "members of a job"));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_left_over(const std::string& directory) noexcept {
  const core::UniqueFd file = open_file(directory, 0);
  // Who makes a directory holds the lock until this file is in it.
  if (!file) return errno == ENOENT;
  return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

}  // namespace col::group::adopt
