// What the channels of all backends check before a call. All of it is inline: a backend may be a library of its own.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <col/error.hpp>

namespace col::backend {

// Why a channel is broken: the first cause stays. Any thread may use it.
class FirstCause {
 public:
  void set(const Error& cause) noexcept {
    const std::lock_guard lock(mutex_);
    if (!cause_) cause_ = cause;
    // Pairs with is_set(). seq_cst: shm rings its own doorbell next (doorbell.hpp).
    is_set_.store(true, std::memory_order_seq_cst);
  }
  // seq_cst, as it is the last look of a rank that goes to sleep (doorbell.hpp).
  bool is_set() const noexcept { return is_set_.load(std::memory_order_seq_cst); }
  // Requires: is_set().
  Error get() const {
    const std::lock_guard lock(mutex_);
    return *cause_;
  }
  // Throws `aborted` if it is set.
  void check(const char* call, const std::string& group) const {
    if (!is_set()) return;
    const Error first = get();
    throw Error(
        ErrorCode::aborted,
        fmt::format("{}: the group was broken by an earlier error; destroy it and create it anew. First cause: {}",
                    call, first.what()),
        group, first.rank(), first.world_rank(), first.is_loss());
  }

 private:
  std::atomic<bool> is_set_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::optional<Error> cause_;
};

[[noreturn]] inline void throw_forked(const char* call, const std::string& group) {
  throw Error(ErrorCode::not_initialized,
              fmt::format("{}: this process was forked after the group was made; create groups after fork()", call),
              group);
}

inline void check_peer(const char* call, int peer, int rank, int size, const std::string& group) {
  if (peer >= 0 && peer < size && peer != rank) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: peer {} is {}; this is rank {} of {}", call, peer,
                          peer == rank ? "this rank itself" : "not in the group", rank, size),
              group, peer);
}

}  // namespace col::backend
