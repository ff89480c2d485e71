#include "backend/shm/native/cma.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/hash.hpp"
#include "core/log.hpp"

namespace col::shm_backend {
namespace {

// Between two looks at whether the group has ended. The kernel is slower with much less at a time: 6.5 ms instead
// of 4.6 for 32 MiB by 64 KiB.
constexpr std::size_t kAtOnce = std::size_t{1} << 20;

// Bytes that were read; -1 with errno.
ssize_t read_some(std::int64_t pid, std::uint64_t from, void* to, std::size_t bytes) {
  const iovec here{to, bytes};
  // The address means something in the other process only.
  const iovec there{reinterpret_cast<void*>(static_cast<std::uintptr_t>(from)), bytes};  // NOLINT
  return ::process_vm_readv(static_cast<pid_t>(pid), &here, 1, &there, 1, 0);
}

}  // namespace

Cma::Cma(std::string group, int rank, std::uint64_t token)
    : group_(std::move(group)), rank_(rank), proof_(core::Hash().add(token).add(rank).value()) {}

Identity Cma::identity() const noexcept {
  return {.pid = ::getpid(),
          .proof_at = reinterpret_cast<std::uintptr_t>(&proof_),
          .proof = proof_,
          .reaches_all = reaches_all_ ? 1U : 0U};
}

void Cma::learn(std::span<const Presence> all) {
  if (state_ == State::unknown) {
    state_ = State::tried;
    int error = 0;
    reaches_all_ = std::all_of(all.begin(), all.end(), [&](const Presence& presence) {
      const Identity& other = presence.identity;
      std::uint64_t seen = 0;
      errno = 0;
      const bool read = read_some(other.pid, other.proof_at, &seen, sizeof seen) == sizeof seen;
      error = errno;
      return read && seen == other.proof;
    });
    pids_.clear();
    for (const Presence& other : all) pids_.push_back(other.identity.pid);
    if (!reaches_all_)
      core::log::info(
          "group '{}': rank {} cannot read the memory of all others through the kernel ({}); data goes "
          "through shared memory",
          group_, rank_, error != 0 ? std::generic_category().message(error) : "another process is there");
  } else if (state_ == State::tried) {
    const bool works =
        std::all_of(all.begin(), all.end(), [](const Presence& other) { return other.identity.reaches_all != 0; });
    state_ = works ? State::yes : State::no;
  }
}

bool Cma::all_have_read(std::span<const Presence> all) noexcept {
  if (!std::all_of(all.begin(), all.end(), [](const Presence& each) { return each.identity.reaches_all != 0; }))
    state_ = State::no;
  return state_ == State::yes;
}

bool Cma::read(int rank, std::uint64_t from, std::byte* to, std::size_t bytes,
               const std::function<void()>& rest) const {
  const std::int64_t pid = pids_[static_cast<std::size_t>(rank)];
  while (bytes > 0) {
    const ssize_t got = read_some(pid, from, to, std::min(bytes, kAtOnce));
    if (got <= 0) {
      const int error = errno;
      rest();  // throws the reason, if the group has ended
      if (got < 0 && error == ESRCH)
        throw Error(ErrorCode::peer_lost, fmt::format("rank {} has ended while its memory was read", rank), group_,
                    rank);
      core::log::info(
          "group '{}': rank {} cannot read memory of rank {} through the kernel ({}); data goes through "
          "shared memory from now on",
          group_, rank_, rank, got == 0 ? "nothing there" : std::generic_category().message(error));
      return false;
    }
    from += static_cast<std::uint64_t>(got);
    to += got;
    bytes -= static_cast<std::size_t>(got);
    if (bytes > 0) rest();
  }
  return true;
}

}  // namespace col::shm_backend
