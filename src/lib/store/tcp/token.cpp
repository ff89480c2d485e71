#include "store/tcp/token.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>
#include <col/proof.hpp>
#include <col/store.hpp>

#include "core/env.hpp"
#include "core/unique_fd.hpp"
#include "store/base/text.hpp"
#include "store/tcp/protocol.hpp"

namespace col {
namespace store::tcp {
namespace {

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("COL_STORE_TOKEN_FILE='{}' {}; the token is a secret of the job: keep it in a file of this user "
                  "(id {}) with mode 0600, one line of at most {} bytes",
                  printable(path), why, ::geteuid(), kMaxTokenBytes));
}

[[noreturn]] void fail(const std::string& path, std::string_view action) {
  throw Error(ErrorCode::io,
              fmt::format("cannot {} COL_STORE_TOKEN_FILE='{}' ({}); name the file that the job's server "
                          "was started with, or set COL_STORE_TOKEN",
                          action, printable(path), std::generic_category().message(errno)));
}

}  // namespace

void check_token(std::string_view token) {
  if (!token.empty() && token.size() <= kMaxTokenBytes) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("the token of a TCP store has {} bytes, and needs 1 to {}; set COL_STORE_TOKEN, or "
                          "COL_STORE_TOKEN_FILE, to the token of the job (make_store_token() makes one)",
                          token.size(), kMaxTokenBytes));
}

void check_job(std::string_view job) {
  if (job.size() <= kMaxJobBytes) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("the job of a TCP store has a name of {} bytes, and {} fit; use "
                                                       "a shorter one (COL_JOB_ID)",
                                                       job.size(), kMaxJobBytes));
}

std::string read_token_file(const std::string& path) {
  // Not blocked by a FIFO that nobody writes.
  const core::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) fail(path, "open");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "look at");
  if (!S_ISREG(status.st_mode)) refuse(path, "is no regular file");
  if (status.st_uid != ::geteuid()) refuse(path, fmt::format("belongs to user id {}", status.st_uid));
  if ((status.st_mode & 077) != 0) refuse(path, fmt::format("has mode {:04o}", status.st_mode & 07777));
  std::array<char, kMaxTokenBytes + 2> buffer{};
  std::size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t got = ::read(file.get(), buffer.data() + size, buffer.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  std::string token(buffer.data(), size);
  if (token.ends_with('\n')) token.pop_back();
  if (token.empty()) refuse(path, "holds no token");
  if (token.size() > kMaxTokenBytes) refuse(path, "is too long");
  if (token.find('\n') != std::string::npos) refuse(path, "holds more than one line");
  return token;
}

std::string token_from_environment() {
  if (auto token = core::env::get("COL_STORE_TOKEN")) return *std::move(token);
  if (const auto path = core::env::get("COL_STORE_TOKEN_FILE")) return read_token_file(*path);
  return {};
}

std::string job_from_environment() {
  const auto id = core::env::get("COL_JOB_ID");
  if (!id) return {};
  return store_job(
      *id, static_cast<int>(core::env::get_int("COL_RESTART_COUNT", 0, std::numeric_limits<int>::max()).value_or(0)));
}

}  // namespace store::tcp

std::string store_job(std::string_view job_id, int restart) {
  return fmt::format("{}/{}", job_id, restart);
}

std::string make_store_token() {
  return make_nonce().substr(0, 32);
}

}  // namespace col
