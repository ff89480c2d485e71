#include "group/adopt/job_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
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
#include "core/clock/clock.hpp"
#include "core/text_file.hpp"
#include "group/adopt/user_directory.hpp"
#include "group/call/operation.hpp"
#include "group/diagnosis/failure.hpp"

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

std::int64_t wall_now_ns() {
  return std::chrono::nanoseconds(core::wall_now().time_since_epoch()).count();
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
  add_member(file, key_.rank, core::ProcessId::self(), path);
  members_ = std::move(file);
  path_ = path;
  owner_ = ::getpid();
  return true;
}

void JobDirectory::make(const UserDirectory& user) {
  const std::string path = fmt::format("{}/{}.{}", user.path(), key_.job, random_hex());
  if (::mkdir(path.c_str(), 0700) != 0) throw_directory_error(errno, "make the directory", path);
  // Should this fail, the next rank that comes removes the directory.
  Members members{.world_size = key_.world_size, .made_ns = wall_now_ns()};
  members.enter(key_.rank, core::ProcessId::self());
  members_ = make_members(path, members);
  path_ = path;
  owner_ = ::getpid();
}

void JobDirectory::leave() noexcept {
  if (!entered() || owner_ != ::getpid()) return;
  try {
    const UserDirectory user(parent_, Deadline::after(kLeavePatience));
    if (::flock(members_.get(), LOCK_UN) == 0 && is_left_over(path_))
      fs::remove_all(path_);
    else
      add_member(members_, key_.rank, {}, path_);
  } catch (const std::exception&) {  // the next job of this user removes it
  }
  // In words: a child forked meanwhile shares the open file, and would keep the lock.
  ::flock(members_.get(), LOCK_UN);
  members_.reset();
}

// ---- Those who wait in vain

namespace {

std::string refusal_in(const std::string& directory) {
  return directory + "/refused";
}

// Requires the lock of the UserDirectory. Best effort: who is not told waits until its deadline, and finds out by
// itself.
void leave_refusal(const std::string& directory, const Error& why) {
  const core::BlockedSignal too_long(SIGXFSZ);
  std::ofstream(refusal_in(directory)) << encode_error(why) << '\n';
}

std::optional<Error> refusal_of(const std::string& directory) {
  try {
    return decode_error(core::read_text_file(refusal_in(directory), "refusal of a job"));
  } catch (const Error&) {
    return std::nullopt;
  }
}

Members living_of(const Members& all) {
  Members living{.world_size = all.world_size, .made_ns = all.made_ns};
  for (std::size_t i = 0; i < all.ranks.size(); ++i) {
    if (all.processes[i].alive()) living.enter(all.ranks[i], all.processes[i]);
  }
  return living;
}

Error different_worlds(const Members& one, const Members& other) {
  const auto says = [](const Members& members) {
    std::vector<int> ranks = members.ranks;
    std::sort(ranks.begin(), ranks.end());
    return fmt::format("{} {} {}", ranks_text(ranks), ranks.size() == 1 ? "says" : "say", members.world_size);
  };
  const std::size_t few = std::min(one.ranks.size(), other.ranks.size());
  const bool is_odd = few < std::max(one.ranks.size(), other.ranks.size());
  const Members& fewer = few == one.ranks.size() ? one : other;
  return Error(ErrorCode::mismatch,
               fmt::format("ranks disagree on the world size: {}, and {}; start all ranks with the same value",
                           says(one), says(other)),
               {}, is_odd ? *std::min_element(fewer.ranks.begin(), fewer.ranks.end()) : -1);
}

Error started_twice(int rank, const core::ProcessId& other) {
  return Error(ErrorCode::already_initialized,
               fmt::format("rank {} was started twice: processes {} and {} both are that rank of one job; end one of "
                           "them, give it another number, or give the jobs names of their own (COL_JOB_ID, or what the "
                           "launcher calls a job)",
                           rank, other.pid(), ::getpid()),
               {}, rank);
}

}  // namespace

// Two of one size that are both incomplete may come to either, so they are one job. Of two sizes, they are one if no
// rank has come to both. Otherwise it may be another job of that name, with ranks that come late.
std::optional<Error> JobDirectory::why_apart(const std::string& entered_path, Duration timeout,
                                             bool is_last_look) const {
  const UserDirectory user(parent_, Deadline::after(timeout));
  const auto own = read_members(entered_path);
  if (!own || own->complete()) return std::nullopt;
  if (auto said = refusal_of(entered_path)) return said;
  for (const std::string& path : tidy(user, key_.job)) {
    const auto other = path != entered_path ? read_members(path) : std::nullopt;
    const Members living = other ? living_of(*other) : Members();
    if (living.ranks.empty()) continue;  // a process that one of them has forked holds the lock
    const core::ProcessId twin = living.process_of(key_.rank);
    const bool is_disjoint =
        std::none_of(own->ranks.begin(), own->ranks.end(), [&](int rank) { return other->has(rank); });
    const bool differs = other->world_size != own->world_size && is_disjoint;
    if (!differs && (twin.nobody() || twin == core::ProcessId::self())) continue;
    const bool is_certain = differs || (other->world_size == own->world_size && !other->complete());
    if (!is_certain && !is_last_look) continue;
    Error why = differs ? different_worlds(living_of(*own), living) : started_twice(key_.rank, twin);
    if (is_certain) leave_refusal(entered_path, why);
    if (is_certain && !other->complete()) leave_refusal(path, why);
    return why;
  }
  return std::nullopt;
}

// ---- The list

namespace {

constexpr int kVersion = 2;

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

void Members::enter(int rank, core::ProcessId process) {
  const auto place = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  if (place == ranks.size()) {
    ranks.push_back(rank);
    processes.emplace_back();
  }
  processes[place] = process;
}

bool Members::has(int rank) const {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

core::ProcessId Members::process_of(int rank) const {
  const auto place = static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  return place == ranks.size() ? core::ProcessId() : processes[place];
}

std::string Members::encode() const {
  std::string text = fmt::format("col members {} {} {}\n", kVersion, world_size, made_ns);
  for (std::size_t i = 0; i < ranks.size(); ++i) text += fmt::format("{} {}\n", ranks[i], processes[i].word());
  return text;
}

std::optional<Members> Members::decode(std::string_view text) {
  Members members;
  int version = 0, rank = 0;
  std::uint64_t process = 0;
  std::string col, word;
  std::istringstream stream{std::string(text)};
  if (!text.ends_with('\n') || !(stream >> col >> word >> version >> members.world_size >> members.made_ns))
    return std::nullopt;
  if (col != "col" || word != "members" || version != kVersion) return std::nullopt;
  while (stream >> rank) {
    if (!(stream >> process)) return std::nullopt;
    members.enter(rank, core::ProcessId::from_word(process));
  }
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

void add_member(const core::UniqueFd& file, int rank, core::ProcessId process, const std::string& directory) {
  append(file, fmt::format("{} {}\n", rank, process.word()), directory);
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
