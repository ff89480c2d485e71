#include "group/adopt/members.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/blocked_signal.hpp"
#include "core/text_file.hpp"
#include "group/adopt/user_directory.hpp"

namespace col::group::adopt {
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
